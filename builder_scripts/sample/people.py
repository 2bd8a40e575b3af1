"""The curated people of the sample and the values their labels stand for, as in the two tables next to this file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from seesaw_cf.base.errors import RecordError
from seesaw_cf.builder_scripts.sample.facts import COLUMNS, SAMPLE, provenance, read_tsv
from seesaw_cf.records.groups import values

HERE = SAMPLE

KINDS = ("gender", "country", "city", "language", "field", "ethnic_group", "occupation")
# property -> kind of its values, for properties whose values are entities
KIND_OF = {property_id: kind for property_id, kind in COLUMNS.values() if kind}


@dataclass(frozen=True)
class LabelledValue:
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
class CuratedPerson:
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
        cells_of = {key: getattr(self, column) for column, (key, _) in COLUMNS.items()}
        labels = {key: cell if isinstance(cell, tuple) else (str(cell),) for key, cell in cells_of.items()}
        return {key: cells for key, cells in labels.items() if any(cells) and cells_of[key] is not None}


def _rows(path: Path, kind: type[LabelledValue | CuratedPerson]) -> list[dict[str, Any]]:
    """Return the rows of a table with the fields of a class as columns; cells with several values are split."""
    rows, columns = read_tsv(path), {field.name: field.type for field in fields(kind)}
    header = [*rows[0]] if rows else []
    if header != [*columns]:
        raise RecordError(f"{path}: columns {header}, expected {[*columns]} and at least one row. Correct the header.")
    for number, row in enumerate(rows, start=2):
        for column, cell in row.items():
            if cell != cell.strip():
                raise RecordError(
                    f"{path}, line {number}: {column} {cell!r} begins or ends with white space. Remove it."
                )
    several = [column for column, type_ in columns.items() if type_ == "tuple[str, ...]"]
    return [row | {column: values(row[column]) for column in several} for row in rows]


def _year(row: dict[str, Any], column: str) -> int:
    try:
        return int(row[column])
    except ValueError:
        raise RecordError(f"{row['name']}: {column} {row[column]!r}, expected a year. Correct people.tsv.") from None


def load_people(path: Path = HERE / "people.tsv") -> list[CuratedPerson]:
    """Read the people, in the order of the file.

    Raises:
        StorageError: The file cannot be read.
        RecordError: It has other columns, or a cell that cannot be read.
    """
    return [
        CuratedPerson(
            **row
            | {
                "birth_year": _year(row, "birth_year"),
                "death_year": _year(row, "death_year") if row["death_year"] else None,
                "provenance": provenance(row["provenance"], row["name"]),
            }
        )
        for row in _rows(path, CuratedPerson)
    ]


def load_entities(path: Path = HERE / "entities.tsv") -> dict[tuple[str, str], LabelledValue]:
    """Read the labelled values, keyed by kind and label.

    Raises:
        StorageError: The file cannot be read.
        RecordError: It has other columns, or a value twice.
    """
    entities: dict[tuple[str, str], LabelledValue] = {}
    for row in _rows(path, LabelledValue):
        key = (row["kind"], row["label"])
        if key in entities:
            raise RecordError(f"{path}: {key} occurs twice. Keep one row for each value.")
        entities[key] = LabelledValue(**row)
    return entities
