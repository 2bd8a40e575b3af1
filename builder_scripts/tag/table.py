"""A table of people as a source: `demographics` of a built data set, or another one of the same columns."""

from __future__ import annotations

import datetime
import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import read_bytes
from seesaw_cf.base.tables import read_table
from seesaw_cf.base.types import Entity
from seesaw_cf.builder_scripts.make.cases import DEMOGRAPHICS, PROPERTIES
from seesaw_cf.builder_scripts.source.people import RecordedPerson
from seesaw_cf.builder_scripts.tag.ask import TAGS, Fact, SourceRecord, TagSource
from seesaw_cf.records import groups

_Person = dict[str, Any]  # a row of such a table
_GROUPS = {
    "gender": sorted(
        {tag for row in groups.table("genders").values() for tag in groups.values(row["tags"])} | {"other"}
    ),
    "race": groups.RACES,
    "region": groups.REGIONS,
}


class TableSource(TagSource):
    """Source of people from a Parquet file with the columns `id` and some tags."""

    def __init__(self, path: str | os.PathLike[str]):
        """Read the table.

        Args:
            path: Columns as in the config `demographics`, of which `id` and at least one tag must be there.

        Raises:
            StorageError: The file cannot be read.
            RecordError: It is damaged, has other columns, or a person twice or without identifier.
            UnknownNameError: A group is none of the papers'.
        """
        file = Path(path)
        self.name = file.name
        self.identity = f"table:sha256:{hashlib.sha256(read_bytes(file)).hexdigest()}"
        time = datetime.datetime.fromtimestamp(int(file.stat().st_mtime), datetime.UTC).isoformat()
        self._records: dict[str, SourceRecord] = {}
        self._named: dict[str, list[str]] = {}
        for number, row in enumerate(_read(file)):
            id = row.get("id")
            if not id or id in self._records:
                raise RecordError(
                    f"{file}: row {number}: id is {id!r}, expected an identifier that no other row has. Merge the rows "
                    "of one person, and drop those without."
                )
            self._records[id] = _record(row, f"{file}: row {number} ({id})", time)
            self._named.setdefault(row.get("label") or "", []).append(id)

    def people(self, ids: Collection[str], properties: Sequence[str] = ()) -> dict[str, SourceRecord]:
        """See `TagSource`; everything that the table has is given."""
        return {id: self._records[id] for id in ids if id in self._records}

    def named(self, labels: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """See `TagSource`."""
        return {label: self._named.get(label, []) if label else [] for label in labels}


def _read(file: Path) -> list[_Person]:
    table = read_table(file)
    columns = [name for name in DEMOGRAPHICS.names if name in table.column_names]
    if "id" not in columns or not set(columns) & set(TAGS):
        raise RecordError(
            f"{file}: it has the columns {table.column_names}, expected 'id' and at least one of {', '.join(TAGS)}, as "
            "in the config 'demographics' of a built data set. Rename the columns."
        )
    try:
        schema = pa.schema([DEMOGRAPHICS.field(name) for name in columns])
        rows: list[_Person] = table.select(columns).cast(schema).to_pylist()
    except (pa.ArrowException, ValueError) as error:
        raise RecordError(
            f"{file}: a column is of another kind than in the config 'demographics' ({error}); gender, race and region "
            "are lists of text there. Convert it."
        ) from error
    return rows


def _record(row: _Person, where: str, time: str) -> SourceRecord:
    for tag, vocabulary in _GROUPS.items():
        for value in row.get(tag) or ():
            one_of(f"{tag} of {where}", value, vocabulary)
    values = {
        property_id: tuple(sorted({entity["id"] for entity in row.get(column) or () if entity and entity.get("id")}))
        for column, property_id in PROPERTIES.items()
    }
    lists = {tag: tuple(sorted(set(row.get(tag) or ()))) for tag in _GROUPS}
    person = RecordedPerson(
        Entity(row["id"], row.get("label") or ""),
        {name: cells for name, cells in values.items() if cells},
        living=row.get("living"),
        sitelinks=row.get("sitelinks"),
        **lists,
    )
    statements = {**lists, "living": _text(person.living), "sitelinks": _text(person.sitelinks), **person.values}
    reference = " | ".join(row.get("provenance") or ())
    facts = (Fact(row["id"], name, value, reference, time) for name, cells in statements.items() for value in cells)
    return SourceRecord(person, tuple(facts))


def _text(value: bool | int | None) -> tuple[str, ...]:
    return () if value is None else (str(value).lower(),)
