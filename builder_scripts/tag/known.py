"""What sources say about people: one interface for graphs and tables, and what several of them say together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from seesaw_cf.builder_scripts.source.people import RecordedPerson
from seesaw_cf.types import Entity

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
        """Label -> identifiers of the people of that name."""


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
    tags = {tag: [value for person in people if (value := getattr(person, tag)) not in ((), None)] for tag in TAGS}
    lists = {tag: tuple(sorted({value for row in tags[tag] for value in row})) for tag in LISTED}
    differ = frozenset(name for name, cells in {**rows, **tags}.items() if len(set(cells)) > 1)
    person = RecordedPerson(
        entity=Entity(people[0].entity.id, people[0].entity.label),
        values={name: tuple(sorted({value for row in cells for value in row})) for name, cells in rows.items()},
        living=all(tags["living"]) if tags["living"] else None,
        sitelinks=next(iter(tags["sitelinks"]), None),
        **lists,
    )
    return person, differ
