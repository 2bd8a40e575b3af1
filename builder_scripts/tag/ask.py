"""The people of records, and everything that the sources record about them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import AttributePrompt, Case, TableRow
from seesaw_cf.builder_scripts.source.people import RecordedPerson
from seesaw_cf.records.coupled import coupled_part, edited_id
from seesaw_cf.records.relations import RELATIONS

# What sources say about people: one interface for graphs and tables, and what several of them say together.

LISTED = ("gender", "race", "region")
TAGS = (*LISTED, "living", "sitelinks")


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement of a source; a row of `FACTS`.

    Attributes:
        entity: The identifier that the source has it under; another than the person's where that was merged.
        property: Property such as "P172", "sitelinks", or a column of a table.
        value: An identifier, a date, a number or a tag.
        reference: What the source itself names as its origin; "" when nothing.
        time: When the source stated it (ISO 8601, UTC); of a table, when its file was last changed; "" when unknown.
    """

    entity: str
    property: str
    value: str
    reference: str = ""
    time: str = ""


FACTS: pa.Schema = pa.schema(
    [(name, pa.string()) for name in ("person", "entity", "property", "value", "source", "reference", "time")]
)


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """Facts of one source about one person.

    Attributes:
        person: Values and tags.
        facts: What they rest on.
    """

    person: RecordedPerson
    facts: tuple[Fact, ...] = ()


def tag_row(person: RecordedPerson | AttributePrompt) -> TableRow:
    """Return the tags that are known of a person: name -> value."""
    tags = {tag: getattr(person, tag) for tag in TAGS}
    return {tag: value for tag, value in tags.items() if value not in ((), None)}


class TagSource(Protocol):
    """Something that knows people by their identifiers.

    Attributes:
        name: As it is called in tables and messages.
        identity: What its answers depend on: an address, the contents of a file.
    """

    name: str
    identity: str

    def people(self, ids: Collection[str], properties: Sequence[str] = ()) -> dict[str, SourceRecord]:
        """Return what is recorded about people; those without any record are left out.

        Args:
            ids: Of the people.
            properties: Relations with values that are needed in addition to the tags.
        """

    def named(self, labels: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """Return label -> identifiers of the people of that name."""


def merged(people: Sequence[RecordedPerson]) -> tuple[RecordedPerson, frozenset[str]]:
    """Return what several sources say about one person together, and what they differ about.

    Groups and values of all sources are kept. A person with a recorded death in one source is not living, even if the
    rest records none. The number of sitelinks is that of the first source that has one.

    Args:
        people: The same person in each source that knows them; at least one.

    Returns:
        The person, and the names of tags and properties of which two sources that know them say different things.
    """
    names = sorted({name for person in people for name in person.values})
    rows = {name: [person.values[name] for person in people if name in person.values] for name in names}
    by_source = [tag_row(person) for person in people]
    tags: dict[str, list[Any]] = {tag: [own[tag] for own in by_source if tag in own] for tag in TAGS}
    lists = {tag: tuple(sorted({value for row in tags[tag] for value in row})) for tag in LISTED}
    differ = frozenset(name for name, cells in {**rows, **tags}.items() if len(set(cells)) > 1)
    person = RecordedPerson(
        entity=people[0].entity,
        values={name: tuple(sorted({value for row in cells for value in row})) for name, cells in rows.items()},
        living=all(tags["living"]) if tags["living"] else None,
        sitelinks=next(iter(tags["sitelinks"]), None),
        **lists,
    )
    return person, differ


_ID = re.compile(r"Q[1-9][0-9]*|https?://[^\x00-\x20<>\"{}|^`\\]+")
MAX_NAMES = 3


@dataclass(slots=True)
class People:
    """What sources say about people.

    Attributes:
        records: Per source, in the order given: identifier -> its record.
        names: Name of an edited person without identifier -> identifiers of the people of that name in any source.
    """

    records: dict[TagSource, dict[str, SourceRecord]] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def of(self, id: str, own: Sequence[RecordedPerson] = ()) -> tuple[RecordedPerson, frozenset[str]] | None:
        """Return everything about one person, and what the sources differ about; None when no source knows them.

        Args:
            id: Identifier.
            own: The records' own tags, as one more source before the sources.
        """
        people = [*own, *(records[id].person for records in self.records.values() if id in records)]
        return merged(people) if people else None


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


def ask(sources: Sequence[TagSource], cases: Sequence[Case]) -> People:
    """Ask every source about all people: what the tags need, and of edited people the values of the relations too.

    Names lead to identifiers for the edited people of pair records only, which have none in the released files; who is
    meant is decided later, by the edited fact.

    Raises:
        RecordError: No record identifies a person, or a source knows none of them.
        SourceError: A source does not answer.
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
    people = People()
    for source in sources:
        named = source.named(labels)
        for label, linked in named.items():
            people.names[label].update(linked)
    edited |= {id for linked in people.names.values() for id in linked}
    for source in sources:
        records = source.people(sorted(ids - edited)) | source.people(sorted(edited), tuple(RELATIONS))
        if not records:
            raise RecordError(_nobody(source, sorted(ids | edited), labels))
        people.records[source] = records
    return people


def _nobody(source: TagSource, ids: Sequence[str], labels: Iterable[str]) -> str:
    some = ", ".join([*ids, *labels][:MAX_NAMES])
    return (
        f"{source.name} knows nobody: it was asked about {len(ids):,} people ({some}, ...) and has nothing about any "
        "of them. Check that it is the right source, in Wikidata's shape (direct properties such as wdt:P21 of "
        "wd:Q42), or leave it out."
    )
