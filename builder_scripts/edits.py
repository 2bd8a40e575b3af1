"""The facts to edit: subject, old value and new value.

Source: SEESAW-CF section 3.2 and Appendix B: the other gender; a field of another of the four areas; a country or place
on another continent; another language.
Deviates: drawn with a seed; subjects are half men and half women, so genders are edited in both directions equally
often; new values are balanced over areas and continents and avoid everything the subject really holds. The reference
code drew from 7 fields, 9 cities and 58 countries, and 276 of 290 gender edits went one way.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice, zip_longest

from seesaw_cf.builder_scripts.people import FEMALE, MALE, Facts, RecordedPerson
from seesaw_cf.records import groups
from seesaw_cf.records.relations import PAIRS

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
    if relation_id not in ATTRIBUTES:
        return facts.common(relation_id)
    two_genders = relation_id == "P21" and not facts.options.other_genders
    return facts.present(relation_id, [FEMALE, MALE] if two_genders else listed_values(relation_id))


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


def _shared(facts: Facts, relation_id: str, value: str) -> bool:
    """Return whether enough others hold a subject's value; nobody is counted where any number is enough."""
    least = facts.options.min_true_holders
    return not least or holder_count(facts, relation_id, value) > least


def _edit(
    facts: Facts, relation_id: str, values: list[str], subject: RecordedPerson, used: Counter[str]
) -> Edit | None:
    """Make the edit of one person, None when no value fits; count the new value and its area or continent as used."""
    rng = random.Random(f"{facts.options.seed} {relation_id} {subject.id}")
    true = [value for value in subject.holds(relation_id) if value in values and _shared(facts, relation_id, value)]
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
