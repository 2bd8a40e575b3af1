"""Edits out of files: CounterFact, the released `_eff`, SEESAW-CF and zsRE records.

The files name their subjects, they do not identify them. A subject is linked to the human of that name who holds the
old value, or who has most sitelinks; names of things other than humans, and relations that are not one of the five,
make no edit. Both are counted.

A zsRE record is a question with an answer, and names neither the relation nor any identifier. The relation is the
record's `relation_id` where it has one, else the one that the question's words ask for; answers are linked by name to
the values that the packaged tables list. What is not one of the five, or cannot be linked, is counted by its reason.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Case, Entity
from seesaw_cf.builder_scripts.edits import Edit, listed_values
from seesaw_cf.builder_scripts.people import Facts, RecordedPerson
from seesaw_cf.records.arrow import read_cases
from seesaw_cf.records.relations import RELATIONS


def read_seeds(paths: Iterable[str | os.PathLike[str]]) -> list[Case]:
    """Read the records of edit files, in their order.

    Raises:
        StorageError: A file is missing.
        RecordError: A file is damaged or malformed, or two records share a case_id.
    """
    cases: dict[tuple[bool, int], Case] = {}
    for path in paths:
        for case in read_cases(path):
            key = (case.record_format == "zsre", case.case_id)  # zsRE records have no numbers but their places
            if key in cases:
                raise RecordError(
                    f"{path}: case_id {case.case_id} is in another edits file too, expected every edit to have its "
                    "own. Renumber one of the files."
                )
            cases[key] = case
    return list(cases.values())


def _unusable(case: Case) -> str:
    """Return why a record can make no edit; "" when it can."""
    request = case.request
    if request.relation_id not in RELATIONS:
        return f"relation {request.relation_id or 'not given'}"
    lacking = [name for name in ("target_new", "target_true") if not getattr(request, name).id]
    return f"no id of {' and '.join(lacking)}" if lacking else ""


def likeliest(case: Case, people: Sequence[RecordedPerson]) -> tuple[RecordedPerson, bool]:
    """Resolve a record's subject to one of its namesakes; return the person and whether another is as likely."""
    true = case.request.target_true.id
    holders = [person for person in people if true in person.holds(case.request.relation_id)]
    likely = sorted(holders or people, key=lambda person: (-(person.sitelinks or 0), person.id))
    tied = len(likely) > 1 and likely[0].sitelinks == likely[1].sitelinks
    return likely[0], tied


def seed_edits(facts: Facts, cases: Sequence[Case]) -> tuple[list[Edit], Counter[str]]:
    """Turn records into edits of identified people.

    Args:
        facts: Where people come from.
        cases: Records with a name, a relation and two identified targets, or zsRE records; see `read_seeds`.

    Returns:
        The edits, and reason -> number of records that make none. An edit is flagged
        "ambiguous_subject" when its subject could be another person of the same name: both hold the old value, or none
        does, and their sitelinks are equal.
    """
    cases, skipped = rewrites(facts, cases)
    usable = []
    for case in cases:
        reason = _unusable(case)
        skipped.update([reason] if reason else [])
        usable += [] if reason else [case]
    humans = facts.named(case.request.subject for case in usable)
    facts.people(id for ids in humans.values() for id in ids)
    edits = []
    for case in usable:
        people = facts.people(humans[case.request.subject])
        if people:
            edits.append(_edit(case, *likeliest(case, people)))
        else:
            skipped.update(["no human of that name"])
    return edits, skipped


def _edit(case: Case, person: RecordedPerson, tied: bool) -> Edit:
    request = case.request
    return Edit(
        person,
        request.relation_id,
        str(request.target_true.id),
        str(request.target_new.id),
        names=(request.target_true.label, request.target_new.label),
        prompt=request.prompt,
        case_id=None if case.record_format == "zsre" else case.case_id,
        flags=("ambiguous_subject",) if tied else (),
    )


# zsRE records as edits of the five relations.

# relation -> words of questions that ask for it, lower case
_WORDS: Mapping[str, re.Pattern[str]] = {
    "P21": re.compile(r"\b(gender|sex)\b"),
    "P101": re.compile(r"\b(field|area|domain)s? of (work|study|activity|expertise|research)\b|\bspeciali[sz]e"),
    "P27": re.compile(r"\b(citizen|citizenship|nationality)\b"),
    "P19": re.compile(
        r"\bbirth ?place\b|\b(place|city|town) of birth\b|\b(where|(which|what) (city|place|town))\b.*born\b"
    ),
    "P103": re.compile(r"\b(native|first) language\b|\bmother tongue\b|\bnatively\b"),
}


def asked_relation(case: Case) -> str:
    """Return the one of the five relations that a zsRE record is about, "" when none or more than one fits."""
    named = case.extra.get("relation_id")
    if named:
        return str(named) if named in RELATIONS else ""
    question = case.request.prompt.lower()
    matches = [id for id, words in _WORDS.items() if words.search(question)]
    return matches[0] if len(matches) == 1 else ""


def _names(facts: Facts, relation_id: str) -> dict[str, set[str]]:
    """Return name in lower case -> identifiers, of a relation's values: the packaged names and the source's."""
    listed = listed_values(relation_id)
    ids: dict[str, set[str]] = {}
    for id, name in [*((id, row["label"]) for id, row in listed.items()), *facts.labels(listed).items()]:
        ids.setdefault(name.casefold(), set()).add(id)
    return ids


def rewrites(facts: Facts, cases: Iterable[Case]) -> tuple[list[Case], Counter[str]]:
    """Turn zsRE records into counterfactual edits with relation and identified targets; other records pass.

    The new target is the record's alternative answer `alt`, the old one its (true) answer.

    Args:
        facts: Knows the values' names.
        cases: Records of any format, in their order.

    Returns:
        The usable records, and reason -> number of zsRE records that are none.
    """
    names: dict[str, dict[str, set[str]]] = {}
    counterfactuals, skipped = [], Counter[str]()
    for case in cases:
        if case.record_format != "zsre":
            counterfactuals.append(case)
            continue
        relation_id = asked_relation(case)
        new, true = str(case.extra.get("alt") or "").strip(), case.request.target_new.label
        if not relation_id or not new or new == true:
            skipped["zsRE: no alternative answer" if relation_id else "zsRE: question about none of the relations"] += 1
            continue
        if relation_id not in names:
            names[relation_id] = _names(facts, relation_id)
        linked = [names[relation_id].get(label.casefold(), set()) for label in (new, true)]
        if any(len(ids) != 1 for ids in linked):
            some = "several values" if any(len(ids) > 1 for ids in linked) else "no value"
            skipped[f"zsRE: answer is the name of {some} of {relation_id}"] += 1
            continue
        targets = [Entity(next(iter(ids)), label) for ids, label in zip(linked, (new, true), strict=True)]
        request = replace(case.request, relation_id=relation_id, target_new=targets[0], target_true=targets[1])
        counterfactuals.append(replace(case, request=request))
    return counterfactuals, skipped
