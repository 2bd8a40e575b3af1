"""Tables of a dataset: shards of cases, answer candidates of every relation, what is recorded about every person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from seesaw_cf.base.types import Case, TableRow
from seesaw_cf.builder_scripts.edits import attribute_set, listed_values
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sparql import OWN, RecordedPerson, tags_of
from seesaw_cf.records import groups
from seesaw_cf.records.arrow import CASES, ENTITY, TEXT, TEXTS, cases_to_table
from seesaw_cf.records.card import write_rows
from seesaw_cf.records.relations import RELATIONS

T = TypeVar("T")
CASES_PER_SHARD = 500
CASES_PER_GROUP = 100  # about 400,000 prompts at most; so many cases are held at a time
PEOPLE_PER_CHUNK = 5000  # turned into rows at a time

# One row per (relation, value). area: of a field; country: of a place; continent: of a country or place.
CANDIDATES: pa.Schema = pa.schema(
    {
        **dict.fromkeys(("relation_id", "id", "label", "area"), TEXT),
        **dict.fromkeys(("country", "continent"), TEXTS),
        "provenance": TEXT,
    }
)
# column -> property, for the lists of entities
PROPERTIES = {
    "sex_or_gender": "P21",
    "citizenship": "P27",
    "birth_place": "P19",
    "native_language": "P103",
    "field_of_work": "P101",
    "ethnic_group": "P172",
    "occupation": "P106",
}
# One row per person. gender, race, region: tags of `seesaw_cf.records.groups`, empty = unknown.
DEMOGRAPHICS: pa.Schema = pa.schema(
    {
        **dict.fromkeys(("id", "label"), TEXT),
        **dict.fromkeys(groups.AXES, TEXTS),
        "living": pa.bool_(),
        "sitelinks": pa.int64(),
        **dict.fromkeys(PROPERTIES, pa.list_(ENTITY)),
        "provenance": TEXTS,
    }
)


def write_cases(folder: Path, config: str, cases: Iterable[Case], count: int) -> None:
    """Write cases as `folder/data/CONFIG/test-00000-of-0000N.parquet`, 500 in each file, the same bytes each time.

    Args:
        folder: A folder that becomes visible only when it is complete.
        config: Name of the config.
        cases: The cases, made while they are written.
        count: How many there are.
    """
    shards, rest = -(-count // CASES_PER_SHARD), iter(cases)
    for number in range(shards):
        shard = islice(rest, CASES_PER_SHARD)
        write_rows(folder, config, map(cases_to_table, _chunks(shard, CASES_PER_GROUP)), CASES, (number, shards))


def _chunks(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while chunk := list(islice(items, size)):
        yield chunk


def candidates(facts: Facts) -> pa.Table:
    """Return every value that an edit may use or an answer may be, as a table of schema `CANDIDATES`.

    Args:
        facts: Where names and holders come from.

    Returns:
        Relations in their order; values as in the cases' `candidates`.
    """
    rows = []
    for relation_id in RELATIONS:
        values, listed = attribute_set(facts, relation_id), listed_values(relation_id)
        for id, label in facts.labels(values).items():
            row: Mapping[str, str] = listed.get(id, {"provenance": "values that most hold in the source"})
            about: TableRow = {"area": row.get("area"), "provenance": row["provenance"]}
            about |= {name: groups.values(row.get(name, "")) for name in ("country", "continent")}
            rows.append(about | {"relation_id": relation_id, "id": id, "label": label})
    return pa.Table.from_pylist(rows, schema=CANDIDATES)


def demographics(facts: Facts, people: Iterable[RecordedPerson], *, references: bool = False) -> pa.Table:
    """Return what is recorded about people, as a table of schema `DEMOGRAPHICS`, sorted by name.

    Args:
        facts: Where names and references come from.
        people: The people to list.
        references: Ask for the titles of the references of their statements.

    Returns:
        One row per person. `provenance` names these references, or else the person's Wikidata page.
    """
    people = sorted(people, key=lambda person: (person.entity.label, person.id))
    names = facts.labels({value for person in people for values in person.values.values() for value in values})
    origins = facts.references(person.id for person in people) if references else {}
    rows = (_demographic(person, names, origins.get(person.id, ())) for person in people)
    tables = (pa.Table.from_pylist(chunk, DEMOGRAPHICS) for chunk in _chunks(rows, PEOPLE_PER_CHUNK))
    return pa.concat_tables([DEMOGRAPHICS.empty_table(), *tables])


def _demographic(person: RecordedPerson, names: Mapping[str, str], origin: Sequence[str]) -> TableRow:
    page = f"https://www.wikidata.org/wiki/{person.id}" if person.id.startswith("Q") else person.id
    own = () if person.id.startswith(OWN) else (page,)
    row: TableRow = {"id": person.id, "label": person.entity.label, "provenance": origin or own, **tags_of(person)}
    for column, property_id in PROPERTIES.items():
        row[column] = [{"str": names.get(value), "id": value} for value in person.holds(property_id)]
    return row
