"""The facts to edit: subject, old value and new value; drawn, or out of files.

Source: SEESAW-CF section 3.2 and Appendix B: the other gender; a field of another of the four areas; a country or place
on another continent; another language.
Deviates: drawn with a seed; subjects are half men and half women, so genders are edited in both directions equally
often; new values are balanced over areas and continents and avoid everything the subject really holds. The reference
code drew from 7 fields, 9 cities and 58 countries, and 276 of 290 gender edits went one way.

CounterFact, the released `_eff`, SEESAW-CF and zsRE records name their subjects, they do not identify them. A subject
is linked to the human of that name who holds the old value, or who has most sitelinks. A zsRE record is a question with
an answer: its relation is the record's `relation_id` where it has one, else the one that the question's words ask for,
and answers are linked by name to the values that the packaged tables list. What makes no edit is counted by its reason.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, zip_longest
from typing import Any

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Case, Entity
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sparql import FEMALE, MALE, RecordedPerson
from seesaw_cf.records import groups
from seesaw_cf.records.arrow import read_cases
from seesaw_cf.records.relations import PAIRS, RELATIONS

# relation -> (table of its attribute set, column whose value must change with the edit; "" = none).
# The values of a relation that is not here are asked of the source (`queries/values.rq`).
ATTRIBUTES: Mapping[str, tuple[str, str]] = {
    "P21": ("genders", ""),
    "P101": ("fields_of_work", "area"),
    "P27": ("countries", "continent"),
    "P19": ("cities", "continent"),
    "P103": ("languages", ""),
}
# Gender edits are about people with a field of work, as the papers' are: nearly everybody has a gender.
# The others have a field of work or a citizenship too, the properties that pairs watch.
_ALSO = {"P21": "P101", "P27": "P101", "P19": "P101", "P101": "P27"}
# relation -> words of questions that ask for it, lower case
_WORDS: Mapping[str, str] = {
    "P21": r"\b(gender|sex)\b",
    "P101": r"\b(field|area|domain)s? of (work|study|activity|expertise|research)\b|\bspeciali[sz]e",
    "P27": r"\b(citizen|citizenship|nationality)\b",
    "P19": r"\bbirth ?place\b|\b(place|city|town) of birth\b|\b(where|(which|what) (city|place|town))\b.*born\b",
    "P103": r"\b(native|first) language\b|\bmother tongue\b|\bnatively\b",
}


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit (s, P, p_i, p_j).

    Attributes:
        subject: Person to edit.
        relation_id: The property P.
        true: Identifier of p_i, which the subject holds.
        new: Identifier of p_j, which the subject does not hold.
        names: Labels of `true` and `new` where a file of edits gives them; empty = the source's.
        prompt: Template with one "{}" where a file of edits gives it; "" = one of the papers' templates.
        case_id: Number where a file of edits gives it.
        flags: What is doubtful about the edit.
    """

    subject: RecordedPerson
    relation_id: str
    true: str
    new: str
    names: tuple[str, str] | tuple[()] = ()
    prompt: str = ""
    case_id: int | None = None
    flags: tuple[str, ...] = ()


def listed_values(relation_id: str) -> Mapping[str, Mapping[str, str]]:
    """Return identifier -> row of the packaged table of a relation's values; empty when it has none."""
    return groups.table(ATTRIBUTES[relation_id][0]) if relation_id in ATTRIBUTES else {}


def attribute_set(facts: Facts, relation_id: str) -> list[str]:
    """Return the values of a relation: the papers' (plus the sample's) lists, as far as the source has holders.

    A relation without a list has the values that most hold.
    """
    two_genders = relation_id == "P21" and not facts.options.other_genders
    return facts.values(relation_id, [FEMALE, MALE] if two_genders else listed_values(relation_id))


def holder_count(facts: Facts, relation_id: str, value: str) -> int:
    """Count the men and women who hold a value, as far as the sample of holders reaches."""
    return sum(len(facts.holders(relation_id, value, gender)) for gender in (MALE, FEMALE))


@cache
def _kinds(relation_id: str, value: str) -> frozenset[str]:
    """Return the areas or continents of a value."""
    column = ATTRIBUTES.get(relation_id, ("", ""))[1]
    row = listed_values(relation_id).get(value) if column else None
    return frozenset(groups.values(row[column])) if row else frozenset()


def _new_values(
    relation_id: str, values: list[str], subject: RecordedPerson, used: Counter[str], rng: random.Random
) -> Iterator[str]:
    """Yield possible new values: from the least used areas or continents first, in each the least used value first."""
    held = set(subject.holds(relation_id))
    avoided = frozenset().union(*(_kinds(relation_id, value) for value in held))
    by_kind: dict[str, list[str]] = {}
    for value in values:
        kinds = _kinds(relation_id, value)
        if value not in held and not kinds & avoided:
            by_kind.setdefault("|".join(sorted(kinds)), []).append(value)
    for kind in _least_used(sorted(by_kind), used, rng):
        yield from _least_used(by_kind[kind], used, rng)


def _least_used(names: list[str], used: Counter[str], rng: random.Random) -> list[str]:
    """Sort names by how often they were used, ties in random order."""
    return sorted(rng.sample(names, len(names)), key=lambda name: used[name])


def _edit(
    facts: Facts, relation_id: str, values: list[str], subject: RecordedPerson, used: Counter[str]
) -> Edit | None:
    """Make the edit of one person, None when no value fits; count the new value and its area or continent as used."""
    rng, least = random.Random(f"{facts.options.seed} {relation_id} {subject.id}"), facts.options.min_true_holders
    true = [value for value in subject.holds(relation_id) if value in values]
    if least:  # nobody is counted where any number is enough
        true = [value for value in true if holder_count(facts, relation_id, value) > least]
    for new in _new_values(relation_id, values, subject, used, rng) if true else ():
        if holder_count(facts, relation_id, new) >= facts.options.min_holders:
            used.update([new, "|".join(sorted(_kinds(relation_id, new)))])
            return Edit(subject, relation_id, rng.choice(true), new)
    return None


def _unanswered(facts: Facts, relation_id: str, person: RecordedPerson) -> int:
    """Return how many of the pairs of a relation have no gold answer for a person."""
    watched = (effect for edited, effect in PAIRS if edited == relation_id)
    return sum(set(person.holds(effect)).isdisjoint(attribute_set(facts, effect)) for effect in watched)


def generate(facts: Facts, relation_id: str) -> list[Edit]:
    """Draw the edits of one relation, men and women alternating.

    Args:
        facts: Where people and values come from, with the rules.
        relation_id: One of the five relations.

    Returns:
        `options.edits[relation_id]` edits, fewer when the source has too few people (none of gender when the source
        does not name both genders in the language). Only people with one recorded gender are edited, so that the two
        directions of gender edits are equal in number. Of the people drawn, those with a gold answer for every pair of
        the relation come first.
    """
    total = facts.options.edits.get(relation_id, 0)
    if not total:
        return []
    values = attribute_set(facts, relation_id) if relation_id != "P21" else list(facts.labels([FEMALE, MALE]))
    used: Counter[str] = Counter()
    by_gender = []
    for gender, number in ((MALE, total - total // 2), (FEMALE, total // 2)):
        listed = [gender] if relation_id == "P21" else values
        drawn = number * (8 if facts.options.min_true_holders else 2)  # many places are those of one person
        people = facts.subjects(relation_id, _ALSO.get(relation_id, relation_id), listed, gender, drawn)
        single = [person for person in people if person.holds("P21") == (gender,)]
        single.sort(key=lambda person: _unanswered(facts, relation_id, person))
        edits = (_edit(facts, relation_id, values, person, used) for person in single)
        by_gender.append(list(islice(filter(None, edits), number)))
    return [edit for pair in zip_longest(*by_gender) for edit in pair if edit]


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
                raise RecordError(f"{path}: case_id {case.case_id} is in another edits file too. Renumber one of them.")
            cases[key] = case
    return list(cases.values())


def likeliest(case: Case, people: Sequence[RecordedPerson]) -> tuple[RecordedPerson, bool]:
    """Resolve a record's subject to one of its namesakes; return the person and whether another is as likely."""
    true = case.request.target_true.id
    holders = [person for person in people if true in person.holds(case.request.relation_id)]
    likely = sorted(holders or people, key=lambda person: (-(person.sitelinks or 0), person.id))
    return likely[0], len(likely) > 1 and likely[0].sitelinks == likely[1].sitelinks


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
    skipped, usable = Counter[str](), []
    for case in cases:
        rewrite = counterfactual(facts, case)
        if isinstance(rewrite, str):
            skipped[rewrite] += 1
        else:
            usable.append(rewrite)
    humans = facts.named(case.request.subject for case in usable)
    facts.people(id for ids in humans.values() for id in ids)
    edits = []
    for case in usable:
        request, people = case.request, facts.people(humans[case.request.subject])
        if not people:
            skipped["no human of that name"] += 1
            continue
        person, tied = likeliest(case, people)
        true, new = request.target_true, request.target_new
        number = None if case.record_format == "zsre" else case.case_id
        about = ((true.label, new.label), request.prompt, number, ("ambiguous_subject",) if tied else ())
        edits.append(Edit(person, request.relation_id, str(true.id), str(new.id), *about))
    return edits, skipped


def counterfactual(facts: Facts, case: Case) -> Case | str:
    """Return a record whose relation and targets are identified, or why it can make no edit.

    The new target of a zsRE record is its alternative answer `alt`, the old one its (true) answer.
    """
    request = case.request
    if case.record_format != "zsre":
        if request.relation_id not in RELATIONS:
            return f"relation {request.relation_id or 'not given'}"
        lacking = [name for name in ("target_new", "target_true") if not getattr(request, name).id]
        return f"no id of {' and '.join(lacking)}" if lacking else case
    relation_id = asked_relation(case)
    new, true = str(case.extra.get("alt") or "").strip(), request.target_new.label
    if not relation_id:
        return "zsRE: question about none of the relations"
    if not new or new == true:
        return "zsRE: no alternative answer"
    listed = listed_values(relation_id)
    names = [*((id, row["label"]) for id, row in listed.items()), *facts.labels(listed).items()]
    linked = [{id for id, name in names if name.casefold() == label.casefold()} for label in (new, true)]
    if any(len(ids) != 1 for ids in linked):
        some = "several values" if any(len(ids) > 1 for ids in linked) else "no value"
        return f"zsRE: answer is the name of {some} of {relation_id}"
    targets: Any = {"target_new": Entity(linked[0].pop(), new), "target_true": Entity(linked[1].pop(), true)}
    return replace(case, request=replace(request, relation_id=relation_id, **targets))


def asked_relation(case: Case) -> str:
    """Return the one of the five relations that a zsRE record is about, "" when none or more than one fits."""
    if named := case.extra.get("relation_id"):
        return str(named) if named in RELATIONS else ""
    matches = [id for id, words in _WORDS.items() if re.search(words, case.request.prompt.lower())]
    return matches[0] if len(matches) == 1 else ""
