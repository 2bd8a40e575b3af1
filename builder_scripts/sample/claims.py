"""The second embedded sample: 192 people with a QID each, out of the complete claims that SEESAW-CF released.

`python -m seesaw_cf.builder_scripts.sample.claims FOLDER` writes `claims.tsv`. FOLDER holds the released
`*_subject_info.json`: all Wikidata statements (CC0) about people that the papers edit. Their names and identifiers are
taken over; the names of values are those of the packaged tables, and values that have none there are left out.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from seesaw_cf.base.errors import StorageError
from seesaw_cf.base.files import write_text
from seesaw_cf.base.text import read_json
from seesaw_cf.builder_scripts.sample.facts import COLUMNS, SAMPLE, read_tsv, store
from seesaw_cf.builder_scripts.source.sources import StoreSource
from seesaw_cf.records import groups

CLAIMS = SAMPLE / "claims.tsv"
ORIGIN = "reference claims of the released SEESAW-CF subject files"

# kind of value -> packaged table
TABLES = {
    "gender": "genders",
    "ethnic_group": "ethnic_groups",
    "field": "fields_of_work",
    "country": "countries",
    "city": "cities",
    "language": "languages",
}
_ONE = ("gender", "birth_place")  # columns with one value: the first that is stated
_YEAR = re.compile(r"([+-]\d{4,})-")
_HUMAN = "Q5"


class Subject(TypedDict):
    """A person of the released files: property -> the values that Wikidata states."""

    name: str
    properties: Mapping[str, Sequence[object]]


def read_subjects(folder: Path) -> dict[str, Subject]:
    """Return the humans of the released subject files.

    Args:
        folder: Of the files.

    Returns:
        QID -> person, in the order of the QIDs' numbers.

    Raises:
        StorageError: The folder has no such file, or one cannot be read.
        RecordError: A file is not JSON.
    """
    files = sorted(folder.glob("*_subject_info.json"))
    if not files:
        raise StorageError(f"{folder}: no *_subject_info.json. Name the folder of the released SEESAW-CF files.")
    subjects: dict[str, Subject] = {id: subject for file in files for id, subject in read_json(file).items()}
    humans = [id for id, subject in subjects.items() if _HUMAN in subject["properties"].get("P31", ())]
    return {id: subjects[id] for id in sorted(humans, key=lambda id: int(id[1:]))}


def value_ids() -> dict[tuple[str, str], str]:
    """Return (kind, label) -> id of the packaged tables and curated occupations; the first where two share a label."""
    rows = [(kind, row["label"], row["id"]) for kind, name in TABLES.items() for row in groups.table(name).values()]
    curated = read_tsv(SAMPLE / "entities.tsv")
    rows += [("occupation", row["label"], row["iri"]) for row in curated if row["kind"] == "occupation"]
    return {(kind, label): id for kind, label, id in reversed(rows) if label}


def _cells(subject: Subject, labels: Mapping[tuple[str, str], str]) -> Iterator[tuple[str, str]]:
    """(column, cell) of a person's values, in the order of the statements; of dates the first year that is stated."""
    for column, (property_id, kind) in COLUMNS.items():
        stated = dict.fromkeys(map(str, subject["properties"].get(property_id, ())))
        if kind:
            cells = [labels[kind, value] for value in stated if (kind, value) in labels]
        else:
            cells = [str(int(match[1])) for value in stated if (match := _YEAR.match(value))][:1]
        yield column, "|".join(cells[:1] if column in _ONE else cells)


def claims_table(folder: Path) -> list[dict[str, str]]:
    """Return the rows of `claims.tsv`, with the columns of `people.tsv`.

    Args:
        folder: Of the released files; see `read_subjects`.

    Raises:
        SeesawError: A file cannot be read.
    """
    labels = {(kind, id): label for (kind, label), id in value_ids().items()}
    rows = []
    for id, subject in read_subjects(folder).items():
        cells = dict(_cells(subject, labels))
        stated = ",".join(property_id for column, (property_id, _) in COLUMNS.items() if cells[column])
        rows.append({"name": subject["name"], "iri": id, **cells, "provenance": f"{stated}:{ORIGIN}"})
    return rows


def claims_source(table: Path = CLAIMS) -> StoreSource:
    """Return the sample's facts as a store, in the shape of a Wikidata dump: direct triples, statements and references.

    Raises:
        RecordError: A value is not among the known ones, or a fact has no provenance.
    """
    people = read_tsv(table)
    cells = [(kind, row[column]) for row in people for column, (_, kind) in COLUMNS.items()]
    used = {(kind, label) for kind, cell in cells for label in cell.split("|")}
    values = [
        {"kind": kind, "label": label, "iri": id, "country": ""}
        for (kind, label), id in value_ids().items()
        if (kind, label) in used
    ]
    return store(people, values)


def main() -> None:
    """Write `claims.tsv` from the released files."""
    parser = argparse.ArgumentParser(description="write the table of the sample of released claims")
    parser.add_argument("folder", type=Path, help="folder of the released SEESAW-CF files")
    rows = claims_table(parser.parse_args().folder)
    write_text(CLAIMS, "".join("\t".join(cells) + "\n" for cells in (rows[0], *(row.values() for row in rows))))


if __name__ == "__main__":
    main()
