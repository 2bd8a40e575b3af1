"""Tags onto prompts, and candidates with gold answers onto records of pairs of properties.

Source: SEESAW-CF section 3.2 and Appendix A: an answer is ranked among all values of the paper's table of the watched
property; gold are those recorded for the edited person; a record without gold has no candidates.
Deviates: an edited person that a record only names is a person who holds the edited fact, never just the first of that
name.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pyarrow as pa

from seesaw_cf import __version__
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import dump_json
from seesaw_cf.base.types import AttributePrompt, Case, Entity, JsonObject
from seesaw_cf.builder_scripts.dataset.build import write_rows
from seesaw_cf.builder_scripts.dataset.statistics import markdown, ordered
from seesaw_cf.builder_scripts.make.cross_property import asked_about, gold_answers
from seesaw_cf.builder_scripts.make.edits import listed_values
from seesaw_cf.builder_scripts.make.seeds import likeliest
from seesaw_cf.builder_scripts.source.people import FEMALE, MALE, RecordedPerson
from seesaw_cf.builder_scripts.tag.ask import (
    FACTS,
    LISTED,
    TAGS,
    People,
    TagSource,
    ask,
    is_pair,
    subject_id,
    tag_row,
    tested,
)
from seesaw_cf.builder_scripts.tag.records import CaseFile
from seesaw_cf.records import groups
from seesaw_cf.records.arrow import cases_to_table
from seesaw_cf.records.card import write_card, write_config
from seesaw_cf.records.importing import write_open_ended

# What tagging found and what it did not, counted: for a reader and for a program.


@dataclass(slots=True)
class Coverage:
    """Counts over all records that were tagged together.

    Attributes:
        people: Identified people that prompts are about.
        covered: Those that a source knows.
        merged: Those with an identifier that was merged into another.
        knows: Source -> identified people that it knows.
        tagged, conflicts: Tag -> people who have it; people on which two sources (or a source and the records) differ.
        members: Tag -> group -> people.
        prompts, unnamed: Prompts that carry tags; those about a person without identifier.
        prompts_known: Tag -> prompts that have it.
        pairs: "gold", "had gold" or why a record of a pair has no gold answer -> records.
        linked, namesakes: Edited people who were found by their name and the edited fact; those with several people
            of that name hold it: the best known is taken.
        answer_conflicts: Records of pairs with a watched property on which sources differ; all their answers are gold.
    """

    people: int = 0
    covered: int = 0
    merged: int = 0
    knows: Counter[str] = field(default_factory=Counter)
    tagged: Counter[str] = field(default_factory=Counter)
    conflicts: Counter[str] = field(default_factory=Counter)
    members: dict[str, Counter[str]] = field(default_factory=lambda: {tag: Counter() for tag in LISTED})
    prompts: int = 0
    unnamed: int = 0
    prompts_known: Counter[str] = field(default_factory=Counter)
    pairs: Counter[str] = field(default_factory=Counter)
    linked: int = 0
    namesakes: int = 0
    answer_conflicts: int = 0

    def count_people(
        self, people: People, ids: Iterable[str], tags: Mapping[str, tuple[RecordedPerson, frozenset[str]]]
    ) -> None:
        """Count what is known about the people that prompts are about.

        Args:
            people: What the sources say.
            ids: Of the people.
            tags: Identifier -> everything about the person, and what sources differ about.
        """
        for id in ids:
            by_source = {source.name: records[id] for source, records in people.records.items() if id in records}
            self.people += 1
            self.covered += bool(by_source)
            self.merged += any(record.person.id != id for record in by_source.values())
            self.knows.update(by_source.keys())
            if id in tags:
                person, differ = tags[id]
                self.tagged.update(tag_row(person).keys())
                self.conflicts.update(differ & set(TAGS))
                for tag in LISTED:
                    self.members[tag].update(getattr(person, tag))

    def count_prompts(self, rows: Iterable[AttributePrompt]) -> None:
        """Count the prompts of one tagged record."""
        for row in rows:
            self.prompts += 1
            self.unnamed += not row.subject.id
            self.prompts_known.update(tag_row(row).keys())

    def numbers(self) -> JsonObject:
        """Return everything as JSON takes it."""
        tags = {
            tag: {
                "people": self.people,
                "found": self.tagged[tag],
                "unknown": self.people - self.tagged[tag],
                "conflicts": self.conflicts[tag],
                "prompts": self.prompts,
                "prompts_found": self.prompts_known[tag],
            }
            for tag in TAGS
        }
        people = {"people": self.people, "found": self.covered, "merged": self.merged, "knows": dict(self.knows)}
        pairs = {
            "records": sum(self.pairs.values()),
            "with_gold": self.pairs["gold"] + self.pairs["had gold"],
            "by_reason": dict(sorted(self.pairs.items())),
            "found_by_name": self.linked,
            "with_namesakes": self.namesakes,
            "conflicts": self.answer_conflicts,
        }
        return {
            "people": people | {"prompts_without_id": self.unnamed},
            "tags": tags,
            "groups": {tag: dict(sorted(counts.items())) for tag, counts in self.members.items()},
            "pairs": pairs,
        }

    def to_markdown(self) -> str:
        """Return the tables to print and to put on a card."""
        parts = []
        if self.prompts or self.people:
            rows = [
                [tag, self.tagged[tag], self.people - self.tagged[tag], self.conflicts[tag],
                 f"{self.prompts_known[tag]:,} of {self.prompts:,}"]
                for tag in TAGS
            ]  # fmt: skip
            heads = ["Tag", f"People who have it (n = {self.people:,})", "Unknown", "Sources differ", "Prompts with it"]
            parts.append(markdown(heads, rows))
            parts.append(self._people())
        parts += [self._groups(tag) for tag in LISTED if self.members[tag]]
        if self.pairs:
            parts.append(markdown(["Answers about the watched property", "Records"], self.pairs.most_common()))
            parts.append(
                f"{self.linked:,} edited people were found by their name and the edited fact; for {self.namesakes:,} "
                "of them several people of that name hold it and the best known is taken. Sources differ about the "
                f"watched property in {self.answer_conflicts:,} records; all their answers are gold."
            )
        return "\n\n".join(parts)

    def _people(self) -> str:
        """Say in words how many people each source knows, and about how many nothing is recorded."""
        knows = ", ".join(f"{name} knows {number:,}" for name, number in self.knows.items()) or "no source knows any"
        return (
            f"Of {self.people:,} identified people {knows}; nothing is recorded about {self.people - self.covered:,} "
            f"(deleted, or never there), {self.merged:,} were merged into another identifier, which was asked instead. "
            f"{self.unnamed:,} prompts are about somebody without identifier: unknown, as no tag is taken from a name."
        )

    def _groups(self, tag: str) -> str:
        counts = self.members[tag]
        rows = [[name, counts[name]] for name in ordered(tag, set(counts))]
        return markdown([tag.capitalize(), "People"], [*rows, [groups.UNKNOWN, self.people - self.tagged[tag]]])


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
                person = RecordedPerson(Entity(row.subject.id, ""), {}, *(getattr(row, tag) for tag in TAGS))
                if tag_row(row) and person not in rows:
                    rows.append(person)
    return people


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
    """Return who is edited, under the record's own name, and ""; None and the reason when nobody can be identified."""
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


# Tag records: read sources, attach groups, candidates and gold answers, write the dataset.

FACTS_CONFIG = "tag_facts"  # beside the configs of cases
SUMMARY = "tags.json"
_PEOPLE = 5000  # in one row group of the facts
_BODY = """# Tagged edit cases

One config per file of records, split `test`, one row per edit case, every prompt as the record has it. `open_ended`,
where there is one, has their open-ended prompts, one a row. Group tags,
candidates and gold answers were added from: {sources}. `{facts}` holds every fact that they rest on, with its source,
property and time; `{summary}` the counts below and the digests of records and sources.

{coverage}

Tags follow the papers' categories. They say what is recorded about people; none is taken from a name, several are
allowed, and what was not found is unknown. Where sources differ, the groups of all of them are kept.
"""


def tag_records(out: str | os.PathLike[str], records: Mapping[str, CaseFile], sources: Sequence[TagSource]) -> Coverage:
    """Write tagged records, the facts behind the tags, a card and the counts into a folder.

    Args:
        out: The folder; make it with `seesaw_cf.base.files.atomic_folder` when other programs read it.
        records: Config name -> records.
        sources: Asked in this order.

    Returns:
        The counts.

    Raises:
        RecordError: No record identifies a person, a source knows none of them, or a config is named like the facts.
        SourceError: A source does not answer.
        StorageError: The disk is full.
    """
    if FACTS_CONFIG in records:
        raise RecordError(f"{records[FACTS_CONFIG].source}: config {FACTS_CONFIG!r} is taken by the facts. Rename it.")
    identities = [source.identity for source in sources]
    if twice := [source.name for source in sources if identities.count(source.identity) > 1]:
        raise RecordError(f"--from: {' and '.join(twice)} are the same source, expected each once. Leave one out.")
    everything = [case for case_file in records.values() for case in case_file.cases]
    people, coverage = ask(sources, everything), Coverage()
    rest = iter(attach(everything, people, coverage))
    tagged = {name: [next(rest) for _ in case_file.cases] for name, case_file in records.items()}
    for name, cases in tagged.items():
        write_config(out, name, {"test": cases_to_table(cases)})
    prompts = write_open_ended(out, tagged)
    write_rows(out, FACTS_CONFIG, _facts(people), FACTS)
    about = {name: f"{len(case_file.cases)} cases of {case_file.source}, tagged" for name, case_file in records.items()}
    about |= prompts
    about[FACTS_CONFIG] = "what the sources say about the people of the records"
    names = ", ".join(source.name for source in sources)
    body = _BODY.format(sources=names, facts=FACTS_CONFIG, summary=SUMMARY, coverage=coverage.to_markdown())
    write_card(out, about, body=body, metadata={"pretty_name": "Tagged edit cases", "language": ["en"]})
    summary = {
        "made_by": f"seesaw_cf {__version__}",
        "sources": [{"name": source.name, "identity": source.identity} for source in sources],
        "records": {
            name: {"source": case_file.source, "sha256": case_file.sha256, "cases": len(case_file.cases)}
            for name, case_file in records.items()
        },
        **coverage.numbers(),
    }
    dump_json(Path(out) / SUMMARY, summary, ensure_ascii=False)
    return coverage


def _facts(people: People) -> Iterator[pa.Table]:
    """Yield tables of schema `FACTS`: source after source, person after person."""
    for source, people_of_source in people.records.items():
        ids = sorted(people_of_source)
        for start in range(0, len(ids), _PEOPLE):
            rows = [
                (id, fact.entity, fact.property, fact.value, source.name, fact.reference, fact.time)
                for id in ids[start : start + _PEOPLE]
                for fact in people_of_source[id].facts
            ]
            yield pa.Table.from_pylist([dict(zip(FACTS.names, row)) for row in rows], FACTS)
