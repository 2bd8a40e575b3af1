"""The curated people of the sample and the values their labels stand for, as the two tables beside this file say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["HERE", "KINDS", "Entity", "Person", "load_entities", "load_people"]

HERE = Path(__file__).resolve().parent

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
_PROVENANCE = re.compile(r"(P[0-9]+(?:,P[0-9]+)*):(\S.*)")


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
    lines = path.read_text(encoding="utf-8").split("\n")
    if lines[-1] != "":
        raise ValueError(f"{path.name}: the last line does not end")
    if tuple(lines[0].split("\t")) != tuple(columns):
        raise ValueError(f"{path.name}: columns are {lines[0].split(chr(9))}, not {list(columns)}")
    rows: list[dict[str, str]] = []
    for number, line in enumerate(lines[1:-1], start=2):
        cells = line.split("\t")
        if len(cells) != len(columns):
            raise ValueError(f"{path.name}:{number}: {len(cells)} cells, not {len(columns)}")
        if any(cell != cell.strip() for cell in cells):
            raise ValueError(f"{path.name}:{number}: a cell begins or ends with white space")
        rows.append(dict(zip(columns, cells)))
    return rows


def _split(cell: str) -> tuple[str, ...]:
    return tuple(cell.split("|")) if cell else ()


def _provenance(cell: str, where: str) -> tuple[tuple[tuple[str, ...], str], ...]:
    entries: list[tuple[tuple[str, ...], str]] = []
    for part in _split(cell):
        match = _PROVENANCE.fullmatch(part)
        if match is None:
            raise ValueError(f"{where}: unreadable provenance {part!r}")
        entries.append((tuple(match[1].split(",")), match[2]))
    return tuple(entries)


def load_people(path: Path = HERE / "people.tsv") -> list[Person]:
    """Reads the people, in the order of the file."""
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
            birth_year=int(row["birth_year"]),
            death_year=int(row["death_year"]) if row["death_year"] else None,
            occupation=_split(row["occupation"]),
            provenance=_provenance(row["provenance"], row["name"]),
        )
        for row in _rows(path, PEOPLE_COLUMNS)
    ]


def load_entities(path: Path = HERE / "entities.tsv") -> dict[tuple[str, str], Entity]:
    """Reads the labelled values, keyed by kind and label."""
    entities: dict[tuple[str, str], Entity] = {}
    for row in _rows(path, ENTITY_COLUMNS):
        key = (row["kind"], row["label"])
        if key in entities:
            raise ValueError(f"{path.name}: {key} occurs twice")
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
