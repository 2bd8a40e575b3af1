"""The second embedded sample: 192 people with a QID each, out of the complete claims that SEESAW-CF released.

`python -m seesaw_cf.builder_scripts.sample.claims FOLDER [--out FILE]` writes `claims.tsv`. FOLDER holds the released
`*_subject_info.json`: all Wikidata statements (CC0) about people that the papers edit. Their names and identifiers are
taken over; the names of values are those of the packaged tables, and values that have none there are left out.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.files import write_text
from seesaw_cf.builder_scripts.sample.facts import COLUMNS, SAMPLE, read_tsv, render
from seesaw_cf.builder_scripts.sample.people import LabelledValue
from seesaw_cf.builder_scripts.sample.tables import KINDS
from seesaw_cf.builder_scripts.source.sources import StoreSource
from seesaw_cf.records import groups

CLAIMS = SAMPLE / "claims.tsv"
ORIGIN = "reference claims of the released SEESAW-CF subject files"

Properties = Mapping[str, Sequence[object]]

_TABLES = {"gender": "genders", **KINDS}
_ONE = ("gender", "birth_place")  # columns with one value: the first that is stated
_YEAR = re.compile(r"([+-]\d{4,})-")
_HUMAN = "Q5"


def read_claims(folder: Path) -> dict[str, tuple[str, Properties]]:
    """Return the humans of the released subject files.

    Args:
        folder: Of the files.

    Returns:
        QID -> name and statements (property -> values), in the order of the QIDs' numbers.

    Raises:
        StorageError: The folder has no such file, or one cannot be read.
        RecordError: A file is not of their form.
    """
    files = sorted(folder.glob("*_subject_info.json"))
    if not files:
        raise StorageError(f"{folder}: no *_subject_info.json. Name the folder of the released SEESAW-CF files.")
    subjects: dict[str, tuple[str, Properties]] = {}
    for file in files:
        try:
            for id, subject in json.loads(file.read_text(encoding="utf-8")).items():
                subjects[id] = (str(subject["name"]), dict(subject["properties"]))
        except OSError as error:
            raise StorageError(f"{file}: cannot be read ({error.strerror}). Check the file.") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordError(
                f"{file}: {type(error).__name__} {error}; expected QID -> name and properties. Take the file again."
            ) from error
    humans = sorted(
        (int(id[1:]), id) for id, (_, properties) in subjects.items() if _HUMAN in properties.get("P31", ())
    )
    return {id: subjects[id] for _, id in humans}


def known_values() -> dict[tuple[str, str], LabelledValue]:
    """(kind, label) -> value of the packaged tables and the curated occupations; of two with a label, the first."""
    rows = [(kind, row["label"], row["id"]) for kind, name in _TABLES.items() for row in groups.table(name).values()]
    curated = read_tsv(SAMPLE / "entities.tsv")
    rows += [("occupation", row["label"], row["iri"]) for row in curated if row["kind"] == "occupation"]
    return {
        (kind, label): LabelledValue(kind, label, id, (), "", "", (), ()) for kind, label, id in reversed(rows) if label
    }


def _cells(properties: Properties, labels: Mapping[tuple[str, str], str]) -> Iterator[tuple[str, str]]:
    """(column, cell) of a person's values, in the order of the statements; of dates the first year that is stated."""
    for column, (property_id, kind) in COLUMNS.items():
        stated = dict.fromkeys(map(str, properties.get(property_id, ())))
        if kind:
            cells = [labels[kind, value] for value in stated if (kind, value) in labels]
        else:
            cells = [str(int(match[1])) for value in stated if (match := _YEAR.match(value))][:1]
        yield column, "|".join(cells[:1] if column in _ONE else cells)


def claims_table(folder: Path) -> list[dict[str, str]]:
    """Return the rows of `claims.tsv`, with the columns of `people.tsv`.

    Args:
        folder: Of the released files; see `read_claims`.

    Raises:
        SeesawError: A file cannot be read.
    """
    labels = {(kind, value.iri): label for (kind, label), value in known_values().items()}
    rows = []
    for id, (name, properties) in read_claims(folder).items():
        cells = dict(_cells(properties, labels))
        stated = ",".join(property_id for column, (property_id, _) in COLUMNS.items() if cells[column])
        rows.append({"name": name, "iri": id, **cells, "provenance": f"{stated}:{ORIGIN}"})
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
        {"kind": value.kind, "label": value.label, "iri": value.iri, "country": ""}
        for key, value in known_values().items()
        if key in used
    ]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "claims.nt"
        write_text(file, render(people, values))
        return StoreSource([file])


def main(argv: Sequence[str] | None = None) -> None:
    """Write `claims.tsv` from the released files."""
    parser = argparse.ArgumentParser(description="write the table of the sample of released claims")
    parser.add_argument("folder", type=Path, help="folder of the released SEESAW-CF files")
    parser.add_argument("--out", type=Path, default=CLAIMS)
    arguments = parser.parse_args(argv)
    rows = claims_table(arguments.folder)
    write_text(arguments.out, "".join("\t".join(cells) + "\n" for cells in (rows[0], *(row.values() for row in rows))))


if __name__ == "__main__":
    main()
