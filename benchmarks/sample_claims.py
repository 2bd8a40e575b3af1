"""Writes `builder_scripts/sample/claims.tsv` from the claims that SEESAW-CF released.

`python -m benchmarks.sample_claims FOLDER`. FOLDER holds the released `*_subject_info.json`: all Wikidata statements
(CC0) about people that the papers edit. Values without a name in the packaged tables are left out.
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
from seesaw_cf.builder_scripts.sample.claims import CLAIMS, ORIGIN, value_ids
from seesaw_cf.builder_scripts.sample.facts import COLUMNS

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


def main() -> None:
    """Write `claims.tsv` from the released files."""
    parser = argparse.ArgumentParser(description="write the table of the sample of released claims")
    parser.add_argument("folder", type=Path, help="folder of the released SEESAW-CF files")
    rows = claims_table(parser.parse_args().folder)
    write_text(CLAIMS, "".join("\t".join(cells) + "\n" for cells in (rows[0], *(row.values() for row in rows))))


if __name__ == "__main__":
    main()
