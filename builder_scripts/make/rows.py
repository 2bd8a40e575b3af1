"""The flat configs: answer candidates of every relation, and what is recorded about every person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from seesaw_cf.builder_scripts.make.edits import attribute_set, listed_values
from seesaw_cf.builder_scripts.source.people import Facts, RecordedPerson
from seesaw_cf.builder_scripts.source.sources import OWN
from seesaw_cf.records import groups
from seesaw_cf.records.arrow import ENTITY
from seesaw_cf.records.relations import RELATIONS

_STRINGS = pa.list_(pa.string())
_ENTITIES = pa.list_(ENTITY)

# One row per (relation, value). area: of a field; country: of a place; continent: of a country or place.
CANDIDATES: pa.Schema = pa.schema(
    [
        ("relation_id", pa.string()),
        ("id", pa.string()),
        ("label", pa.string()),
        ("area", pa.string()),
        ("country", _STRINGS),
        ("continent", _STRINGS),
        ("provenance", pa.string()),
    ]
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

_CHUNK = 5000  # people turned into rows at a time

# One row per person. gender, race, region: tags of `seesaw_cf.records.groups`, empty = unknown.
DEMOGRAPHICS: pa.Schema = pa.schema(
    [
        ("id", pa.string()),
        ("label", pa.string()),
        ("gender", _STRINGS),
        ("race", _STRINGS),
        ("region", _STRINGS),
        ("living", pa.bool_()),
        ("sitelinks", pa.int64()),
        *((column, _ENTITIES) for column in PROPERTIES),
        ("provenance", _STRINGS),
    ]
)


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
            rows.append(
                {
                    "relation_id": relation_id,
                    "id": id,
                    "label": label,
                    "area": row.get("area"),
                    "country": groups.values(row.get("country", "")),
                    "continent": groups.values(row.get("continent", "")),
                    "provenance": row["provenance"],
                }
            )
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
    ordered = sorted(people, key=lambda person: (person.entity.label, person.id))
    names = facts.labels({value for person in ordered for values in person.values.values() for value in values})
    origins = facts.references(person.id for person in ordered) if references else {}
    chunks = (ordered[start : start + _CHUNK] for start in range(0, max(1, len(ordered)), _CHUNK))
    return pa.concat_tables(
        pa.Table.from_pylist([_demographic(person, names, origins) for person in chunk], schema=DEMOGRAPHICS)
        for chunk in chunks
    )


def _demographic(
    person: RecordedPerson, names: Mapping[str, str], origins: Mapping[str, tuple[str, ...]]
) -> dict[str, object]:
    values = {
        column: [{"str": names.get(value), "id": value} for value in person.holds(property_id)]
        for column, property_id in PROPERTIES.items()
    }
    return values | {
        "id": person.id,
        "label": person.entity.label,
        "gender": person.gender,
        "race": person.race,
        "region": person.region,
        "living": person.living,
        "sitelinks": person.sitelinks,
        "provenance": origins.get(person.id) or _page(person.id),
    }


def _page(id: str) -> tuple[str, ...]:
    return () if id.startswith(OWN) else (f"https://www.wikidata.org/wiki/{id}",)
