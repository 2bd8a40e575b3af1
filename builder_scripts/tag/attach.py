"""Tags onto prompts, and candidates with gold answers onto records of pairs of properties.

Source: SEESAW-CF section 3.2 and Appendix A: an answer is ranked among all values of the paper's table of the watched
property; gold are those recorded for the edited person; a record without gold has no candidates.
Deviates: an edited person that a record only names is a person who holds the edited fact, never just the first of that
name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from seesaw_cf.builder_scripts.make.cross_property import asked_about, gold_answers
from seesaw_cf.builder_scripts.make.edits import listed_values
from seesaw_cf.builder_scripts.make.seeds import likeliest
from seesaw_cf.builder_scripts.source.people import FEMALE, MALE, RecordedPerson
from seesaw_cf.builder_scripts.tag.ask import People, is_pair, subject_id, tested
from seesaw_cf.builder_scripts.tag.coverage import Coverage
from seesaw_cf.builder_scripts.tag.known import TAGS
from seesaw_cf.types import AttributePrompt, Case, Entity

# How the provenance of the papers' values begins, in the table of each property that pairs watch.
_PAPER_VALUES = {"P101": "SEESAW-CF field table", "P27": "SEESAW-CF citizenship table", "P19": "SEESAW-CF city table"}


@cache
def paper_candidates(relation_id: str) -> Mapping[str, str]:
    """Return identifier -> name of the papers' 219 fields, 90 countries, 232 places or 2 genders, else {}.

    Two countries share a name, as do two places, so that there are 89 and 231 candidates.
    """
    rows = listed_values(relation_id)
    if relation_id == "P21":
        return {id: rows[id]["label"] for id in (MALE, FEMALE)}
    begin = _PAPER_VALUES.get(relation_id)
    return {id: row["label"] for id, row in rows.items() if begin and row["provenance"].startswith(begin)}


def attach(cases: Sequence[Case], people: People, coverage: Coverage) -> list[Case]:
    """Tag every prompt about a person that a source knows, and answer every pair with an identified person.

    Args:
        cases: Records.
        people: What the sources say.
        coverage: Counts what was found.

    Returns:
        The same cases in the same order. Tags that they had are kept in addition to the new ones.
    """
    own = _own(cases)
    tags = {id: person for id, rows in own.items() if (person := people.of(id, rows)) is not None}
    coverage.count_people(people, own, tags)
    return [_case(case, people, tags, coverage) for case in cases]


def _own(cases: Iterable[Case]) -> dict[str, list[RecordedPerson]]:
    """Return the records' own tags of each identified person: one tag each, without repeats."""
    people: dict[str, list[RecordedPerson]] = {}
    for case in cases:
        for row in tested(case):
            if row.subject.id:
                rows = people.setdefault(row.subject.id, [])
                person = _person(row)
                if any(getattr(person, tag) not in ((), None) for tag in TAGS) and person not in rows:
                    rows.append(person)
    return people


def _person(row: AttributePrompt) -> RecordedPerson:
    return RecordedPerson(Entity(row.subject.id, ""), {}, row.gender, row.race, row.region, row.living, row.sitelinks)


def _case(
    case: Case, people: People, tags: Mapping[str, tuple[RecordedPerson, frozenset[str]]], coverage: Coverage
) -> Case:
    case = replace(
        case,
        attribute_prompts=tuple(_tagged(row, tags) for row in case.attribute_prompts),
        effect_prompts=tuple(_tagged(row, tags) for row in case.effect_prompts),
    )
    if is_pair(case):
        case, reason = _answered(case, str(case.effect_relation_id), people, coverage)
        coverage.pairs[reason] += 1
    coverage.count_prompts(tested(case))
    return case


def _tagged(row: AttributePrompt, tags: Mapping[str, tuple[RecordedPerson, frozenset[str]]]) -> AttributePrompt:
    if row.subject.id is None or row.subject.id not in tags:
        return row
    person, _ = tags[row.subject.id]
    return replace(row, **{tag: getattr(person, tag) for tag in TAGS})


def _answered(case: Case, effect: str, people: People, coverage: Coverage) -> tuple[Case, str]:
    """Return a record of a pair with candidates and gold, and "gold" or why it has none."""
    if case.effect_prompts and case.candidates and case.gold:
        return case, "had gold"
    names = paper_candidates(effect)
    if not names:
        return case, f"the papers list no answers for {effect}"
    subject, reason = _subject(case, people, coverage)
    if subject is None:
        return case, reason
    person = people.of(subject.id)
    coverage.answer_conflicts += person is not None and effect in person[1]
    case = replace(case, extra=case.extra | {"subject_id": subject.id})
    if not gold_answers(subject, effect, names):
        return case, f"no value of {effect} recorded that is one of the papers' answers"
    return asked_about(case, effect, subject, names), "gold"


def _subject(case: Case, people: People, coverage: Coverage) -> tuple[RecordedPerson | None, str]:
    """Who is edited, under the record's own name."""
    id, true = subject_id(case), case.request.target_true.id
    ids = [id] if id else sorted(people.names.get(case.request.subject, ()))
    humans = [
        replace(person_and_conflicts[0], entity=Entity(id, case.request.subject))
        for id in ids
        if (person_and_conflicts := people.of(id))
    ]
    if id:
        return (humans[0], "") if humans else (None, "edited person: nothing recorded")
    holders = [person for person in humans if true in person.holds(case.request.relation_id)]
    if not holders:
        return None, "edited person: " + ("nobody of that name holds the edited fact" if humans else "no human found")
    person, tied = likeliest(case, holders)
    if tied:
        return None, "edited person: several of that name hold the edited fact and are as well known"
    coverage.linked += 1
    coverage.namesakes += len(holders) > 1
    return person, ""
