"""zsRE records as edits of the five relations.

A zsRE record is a question with an answer, and names neither the relation nor any identifier. The relation is the
record's `relation_id` where it has one, else the one that the question's words ask for; answers are linked by name to
the values that the packaged tables list. What is not one of the five, or cannot be linked, is counted by its reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from seesaw_cf.base.types import Case, Entity
from seesaw_cf.builder_scripts.make.edits import listed_values
from seesaw_cf.builder_scripts.source.people import Facts
from seesaw_cf.records.relations import RELATIONS

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
