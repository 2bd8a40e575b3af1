"""Who the people of records are, what a source records about them, and tags and answers onto the records.

Source: SEESAW-CF section 3.2 and Appendix A: an answer is ranked among all values of the paper's table of the watched
property; gold are those recorded for the edited person; a record without gold has no candidates.
Deviates: an edited person that a record only names is a person who holds the edited fact, never just the first of that
name.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import AttributePrompt, Case, Entity, TableRow
from seesaw_cf.builder_scripts.cases import asked_about, gold_answers
from seesaw_cf.builder_scripts.edits import listed_values
from seesaw_cf.builder_scripts.jobs import BuildOptions
from seesaw_cf.builder_scripts.people import FEMALE, MALE, SITELINKS, Facts, RecordedPerson, by_person, person_of
from seesaw_cf.builder_scripts.seeds import likeliest
from seesaw_cf.builder_scripts.sources import Progress, Source, silent
from seesaw_cf.builder_scripts.sparql import Binding, Parameter, entity_id
from seesaw_cf.records.coupled import coupled_part, edited_id
from seesaw_cf.records.relations import RELATIONS

LISTED = ("gender", "race", "region")
TAGS = (*LISTED, "living", "sitelinks")
# What the tags are made of; P31, which every item has, tells who is there at all.
_TAGGED = ("P21", "P31", "P172", "P569", "P570", SITELINKS)
_ID = re.compile(r"Q[1-9][0-9]*|https?://[^\x00-\x20<>\"{}|^`\\]+")
MAX_NAMES = 3  # in messages
BY_NAME, NAMESAKES = "edited people found by name", "of them with namesakes who hold the edited fact too"


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement of a source.

    Attributes:
        entity: The identifier that the source has it under; another than the person's where that was merged.
        property: Property such as "P172", or "sitelinks".
        value: An identifier, a date, a number or a tag.
        time: When the source stated it (ISO 8601, UTC); "" when unknown.
    """

    entity: str
    property: str
    value: str
    time: str = ""


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """What a source records about one person: values and tags, and the facts they rest on."""

    person: RecordedPerson
    facts: tuple[Fact, ...] = ()


class PeopleSource:
    """A source of facts in Wikidata's shape, asked about people in smaller queries where it ends the large ones."""

    def __init__(self, name: str, source: Source, language: str = "en", progress: Progress = silent):
        """Remember who is asked; nothing is asked yet.

        Args:
            name: As it is called in tables and messages.
            source: An endpoint or store.
            language: Of the names that people are looked up by.
            progress: Shows how far long lists of queries are.
        """
        self.name, self.identity = name, source.identity
        self._source, self._progress = source, progress
        self._facts = Facts(source, BuildOptions(language=language), progress)

    def people(self, ids: Collection[str], properties: Sequence[str] = ()) -> dict[str, SourceRecord]:
        """Return what is recorded about people; merged identifiers are followed, those without any record are left out.

        Args:
            ids: Of the people.
            properties: Relations with values that are needed in addition to the tags.

        Raises:
            SourceError: The source refuses, or does not finish even a query about one person in time.
        """
        records = self._recorded(ids, properties)
        merged = self._select("redirects", [id for id in ids if id not in records])
        moved = {entity_id(row["person"]): entity_id(row["target"]) for row, _ in merged}
        new = self._recorded(set(moved.values()), properties)
        return records | {id: new[target] for id, target in moved.items() if target in new}

    def named(self, labels: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """Return label -> identifiers of the people of that name."""
        return self._facts.named(labels)

    def _recorded(self, ids: Collection[str], properties: Sequence[str]) -> dict[str, SourceRecord]:
        listed = [*_TAGGED, *(name for name in properties if name not in _TAGGED)]
        answers = self._select("facts", ids, listed=listed)
        facts: dict[str, list[Fact]] = defaultdict(list)
        for row, time in answers:
            id, name = entity_id(row["person"]), entity_id(row["property"])
            facts[id].append(Fact(id, "sitelinks" if name == SITELINKS else name, entity_id(row["value"]), time=time))
        recorded = by_person(row for row, _ in answers)
        return {
            id: SourceRecord(person_of(Entity(id, ""), values), tuple(facts[id])) for id, values in recorded.items()
        }

    def _select(self, name: str, ids: Collection[str], **more: Parameter) -> list[tuple[Binding, str]]:
        """Return the rows of a query about any number of people, each with the time of its reply."""
        label = f"{name} from {self.name}"
        return list(self._source.gather(name, "people", ids, more, progress=self._progress, label=label))


@dataclass(slots=True)
class People:
    """What a source says about the people of records.

    Attributes:
        records: Identifier -> its record.
        names: Name of an edited person without identifier -> identifiers of the people of that name.
    """

    records: Mapping[str, SourceRecord] = field(default_factory=dict)
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)


def is_pair(case: Case) -> bool:
    """Return whether a record watches another property of its subject than the edited one."""
    return case.effect_relation_id not in (None, case.request.relation_id)


def tested(case: Case) -> Iterator[AttributePrompt]:
    """Yield the prompts of a record that carry tags."""
    yield from (*case.attribute_prompts, *case.effect_prompts)


def subject_id(case: Case) -> str:
    """Return the identifier of the edited person where the record has one, else ""."""
    id = edited_id(case)
    return id if _ID.fullmatch(id) else ""


def tag_row(person: RecordedPerson | AttributePrompt) -> TableRow:
    """Return the tags that are known of a person: name -> value."""
    tags = {tag: getattr(person, tag) for tag in TAGS}
    return {tag: value for tag, value in tags.items() if value not in ((), None)}


def ask(source: PeopleSource, cases: Sequence[Case]) -> People:
    """Ask about all people: what the tags need, and of edited people the values of the relations too.

    Names lead to identifiers for the edited people of pair records only, which have none in the released files; who is
    meant is decided later, by the edited fact.

    Raises:
        RecordError: No record identifies a person, or the source knows none of them.
        SourceError: The source does not answer.
    """
    ids = {str(row.subject.id) for case in cases for row in tested(case) if _ID.fullmatch(row.subject.id or "")}
    pairs = [case for case in cases if is_pair(case)]
    edited = {id for case in cases if (is_pair(case) or coupled_part(case)) and (id := subject_id(case))}
    labels = sorted({case.request.subject for case in pairs if not subject_id(case)})
    if not ids | edited and not labels:
        raise RecordError(
            f"none of the {len(cases)} records identifies anybody: no prompt about other people has a QID, and no "
            "record is one of a pair of properties; tags are never taken from a name. Give records with "
            "attribute_aux_info, or make prompts with `seesaw-cf build --edits FILE`."
        )
    names = source.named(labels)
    edited |= {id for named in names.values() for id in named}
    records = source.people(sorted(ids - edited)) | source.people(sorted(edited), tuple(RELATIONS))
    if not records:
        some = ", ".join([*sorted(ids | edited), *labels][:MAX_NAMES])
        raise RecordError(
            f"{source.name} knows nobody: it was asked about {len(ids | edited):,} people ({some}, ...) and has "
            "nothing about any of them. Check that it is the right source, in Wikidata's shape (direct properties such "
            "as wdt:P21 of wd:Q42)."
        )
    return People(records, names)


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


def attach(cases: Sequence[Case], people: People) -> tuple[list[Case], Counter[str]]:
    """Tag every prompt about a person that the source knows, and answer every pair with an identified person.

    Args:
        cases: Records.
        people: What the source says.

    Returns:
        The same cases in the same order; tags that they had are kept in addition to the new ones. And what became of
        pairs: "gold", "had gold" or why there is no gold answer -> records; `BY_NAME`, `NAMESAKES` -> edited people.
    """
    tags: dict[str, RecordedPerson] = {}
    for id, row in ((row.subject.id, row) for case in cases for row in tested(case) if row.subject.id):
        record = people.records.get(id)
        known = tags.get(id) or (record.person if record else None)
        if known or tag_row(row):
            own = RecordedPerson(Entity(id, ""), {}, *(getattr(row, tag) for tag in TAGS))
            tags[id] = _with_own(known, own) if known else own
    outcomes: Counter[str] = Counter()
    return [_tagged_case(case, people, tags, outcomes) for case in cases], outcomes


def _with_own(person: RecordedPerson, own: RecordedPerson) -> RecordedPerson:
    """Return a person with the tags of a record in addition; who is recorded as dead in one of them is not living."""
    gender, race, region = (tuple(sorted({*getattr(person, tag), *getattr(own, tag)})) for tag in LISTED)
    living = [row.living for row in (own, person) if row.living is not None]
    return replace(
        person,
        gender=gender,
        race=race,
        region=region,
        living=all(living) if living else None,
        sitelinks=person.sitelinks if own.sitelinks is None else own.sitelinks,
    )


def _tagged_case(case: Case, people: People, tags: Mapping[str, RecordedPerson], outcomes: Counter[str]) -> Case:
    def tagged(row: AttributePrompt) -> AttributePrompt:
        person = tags.get(row.subject.id or "")
        return replace(row, **{tag: getattr(person, tag) for tag in TAGS}) if person else row

    case = replace(
        case,
        attribute_prompts=tuple(map(tagged, case.attribute_prompts)),
        effect_prompts=tuple(map(tagged, case.effect_prompts)),
    )
    if is_pair(case):
        case, reason = _answered(case, str(case.effect_relation_id), people, outcomes)
        outcomes[reason] += 1
    return case


def _answered(case: Case, effect: str, people: People, outcomes: Counter[str]) -> tuple[Case, str]:
    """Return a record of a pair with candidates and gold, and "gold" or why it has none."""
    if case.effect_prompts and case.candidates and case.gold:
        return case, "had gold"
    names = paper_candidates(effect)
    if not names:
        return case, f"the papers list no answers for {effect}"
    subject, reason = _subject(case, people, outcomes)
    if subject is None:
        return case, reason
    case = replace(case, extra=case.extra | {"subject_id": subject.id})
    if not gold_answers(subject, effect, names):
        return case, f"no value of {effect} recorded that is one of the papers' answers"
    return asked_about(case, effect, subject, names), "gold"


def _subject(case: Case, people: People, outcomes: Counter[str]) -> tuple[RecordedPerson | None, str]:
    """Return who is edited, under the record's own name, and ""; None and the reason when nobody can be identified."""
    id, true = subject_id(case), case.request.target_true.id
    ids = [id] if id else sorted(people.names.get(case.request.subject, ()))
    found = [(id, people.records[id].person) for id in ids if id in people.records]
    humans = [replace(person, entity=Entity(id, case.request.subject)) for id, person in found]
    if id:
        return (humans[0], "") if humans else (None, "edited person: nothing recorded")
    holders = [person for person in humans if true in person.holds(case.request.relation_id)]
    if not holders:
        return None, "edited person: " + ("nobody of that name holds the edited fact" if humans else "no human found")
    person, tied = likeliest(case, holders)
    if tied:
        return None, "edited person: several of that name hold the edited fact and are as well known"
    outcomes[BY_NAME] += 1
    outcomes[NAMESAKES] += len(holders) > 1
    return person, ""
