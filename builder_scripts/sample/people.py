"""The curated people of the sample and the values their labels stand for, as the two tables beside this file say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seesaw_cf.builder_scripts.sample.facts import COLUMNS, SAMPLE, provenance, read_tsv
from seesaw_cf.errors import RecordError

__all__ = ["HERE", "KINDS", "KIND_OF", "Entity", "Person", "load_entities", "load_people"]

HERE = SAMPLE

PEOPLE_COLUMNS = (
    "name",
    "iri",
    "gender",
    "citizenship",
    "birth_place",
    "native_language",
    "field_of_work",
    "ethnic_group",
    "birth_year",
    "death_year",
    "occupation",
    "provenance",
)
ENTITY_COLUMNS = ("kind", "label", "iri", "country", "continent", "area", "race", "region")
KINDS = ("gender", "country", "city", "language", "field", "ethnic_group", "occupation")
# property -> kind of its values, for properties whose values are entities
KIND_OF = {property_id: kind for property_id, kind in COLUMNS.values() if kind}


@dataclass(frozen=True)
class Entity:
    """One labelled value: a city, a country, a language, ..."""

    kind: str
    label: str
    iri: str
    country: tuple[str, ...]
    continent: str
    area: str
    race: tuple[str, ...]
    region: tuple[str, ...]


@dataclass(frozen=True)
class Person:
    """One curated person; every value is a label that the entities resolve."""

    name: str
    iri: str
    gender: str
    citizenship: tuple[str, ...]
    birth_place: str
    native_language: tuple[str, ...]
    field_of_work: tuple[str, ...]
    ethnic_group: tuple[str, ...]
    birth_year: int
    death_year: int | None
    occupation: tuple[str, ...]
    provenance: tuple[tuple[tuple[str, ...], str], ...]

    def values(self) -> dict[str, tuple[str, ...]]:
        """Labels of each property, keyed by Wikidata property; properties without a value are left out."""
        found = {
            "P21": (self.gender,),
            "P27": self.citizenship,
            "P19": (self.birth_place,),
            "P103": self.native_language,
            "P101": self.field_of_work,
            "P172": self.ethnic_group,
            "P569": (str(self.birth_year),),
            "P570": () if self.death_year is None else (str(self.death_year),),
            "P106": self.occupation,
        }
        return {key: labels for key, labels in found.items() if labels}


def _rows(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    rows = read_tsv(path)
    found = [*rows[0]] if rows else []
    if found != [*columns]:
        raise RecordError(f"{path}: columns {found}, expected {[*columns]} and at least one row. Correct the header.")
    for number, row in enumerate(rows, start=2):
        for column, cell in row.items():
            if cell != cell.strip():
                raise RecordError(
                    f"{path}, line {number}: {column} {cell!r} begins or ends with white space. Remove it."
                )
    return rows


def _split(cell: str) -> tuple[str, ...]:
    return tuple(cell.split("|")) if cell else ()


def _year(row: dict[str, str], column: str) -> int:
    try:
        return int(row[column])
    except ValueError:
        raise RecordError(f"{row['name']}: {column} {row[column]!r}, expected a year. Correct people.tsv.") from None


def load_people(path: Path = HERE / "people.tsv") -> list[Person]:
    """Reads the people, in the order of the file.

    Raises:
        StorageError: The file cannot be read.
        RecordError: It has other columns, or a cell that cannot be read.
    """
    return [
        Person(
            name=row["name"],
            iri=row["iri"],
            gender=row["gender"],
            citizenship=_split(row["citizenship"]),
            birth_place=row["birth_place"],
            native_language=_split(row["native_language"]),
            field_of_work=_split(row["field_of_work"]),
            ethnic_group=_split(row["ethnic_group"]),
            birth_year=_year(row, "birth_year"),
            death_year=_year(row, "death_year") if row["death_year"] else None,
            occupation=_split(row["occupation"]),
            provenance=provenance(row["provenance"], row["name"]),
        )
        for row in _rows(path, PEOPLE_COLUMNS)
    ]


def load_entities(path: Path = HERE / "entities.tsv") -> dict[tuple[str, str], Entity]:
    """Reads the labelled values, keyed by kind and label.

    Raises:
        StorageError: The file cannot be read.
        RecordError: It has other columns, or a value twice.
    """
    entities: dict[tuple[str, str], Entity] = {}
    for row in _rows(path, ENTITY_COLUMNS):
        key = (row["kind"], row["label"])
        if key in entities:
            raise RecordError(f"{path}: {key} occurs twice. Keep one row for each value.")
        entities[key] = Entity(
            kind=row["kind"],
            label=row["label"],
            iri=row["iri"],
            country=_split(row["country"]),
            continent=row["continent"],
            area=row["area"],
            race=_split(row["race"]),
            region=_split(row["region"]),
        )
    return entities
