"""Tables of raters from files and folders, recognised by their columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.tables import read_table
from seesaw_cf.texts.flaws.people import REFLECTED
from seesaw_cf.texts.tables import ANNOTATIONS, FAILURES, FLAWS, PASSAGES, RATINGS

KINDS: Mapping[str, pa.Schema] = MappingProxyType(
    {
        "flaws": FLAWS,
        "reflected": REFLECTED,
        "ratings": RATINGS,
        "annotations": ANNOTATIONS,
        "failures": FAILURES,
        "passages": PASSAGES,
    }
)
# Last part of a file's name -> its rows are answers given a second time, or no answers to these texts.
_AGAIN = ("swapped", "repeats")
# What is answered, and what tells one row from another; the same answer twice is one.
_QUESTIONS = {
    "flaws": ("change", "pair_id", "flaw", "rater"),
    "reflected": ("reflected", "pair_id", "rater"),
    "ratings": ("rating", "editor", "case_id", "phase", "sample", "item", "rater"),
    "annotations": ("label", "editor", "case_id", "phase", "sample", "passage", "claim_kind", "claim_id", "annotator"),
    "failures": ("present", "editor", "case_id", "phase", "sample", "mode", "rater"),
    "passages": ("text", "editor", "case_id", "phase", "sample", "passage", "prompt_id"),
}


@dataclass(frozen=True, slots=True)
class Collected:
    """What was found.

    Attributes:
        tables: Kind out of `KINDS` -> rows of all files; a kind that no file is of has none.
        repeats: The same of what was answered a second time.
    """

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    repeats: Mapping[str, pa.Table] = field(default_factory=dict)

    def get(self, kind: str) -> pa.Table:
        """Return rows of one kind, none without such files."""
        return self.tables.get(kind, KINDS[kind].empty_table())

    def again(self, kind: str) -> pa.Table:
        """Return the rows of one kind that were answered a second time."""
        return self.repeats.get(kind, KINDS[kind].empty_table())


def collect(places: Sequence[str | os.PathLike[str]], needed: Sequence[str]) -> Collected:
    """Read the tables of raters.

    Args:
        places: Parquet files, and folders whose Parquet files are read. For a file, the `NAME.repeats` and
            `NAME.reflected` that `flaws import` writes next to it are also read.
        needed: Kinds of which there must be at least one row.

    Returns:
        The rows by kind. Files that are of no kind, such as calls to a judge, are left out.

    Raises:
        StorageError: A place is not there, or a file is not a Parquet file.
        RecordError: No row of a kind in `needed`, or a rater who gives two answers to the same question.
    """
    firsts: dict[str, dict[str, pa.Table]] = {}
    again: dict[str, dict[str, pa.Table]] = {}
    for file in dict.fromkeys(file for place in places for file in _files(Path(place))):
        kind, last = _kind(file), file.stem.split(".")[-1]
        if kind:
            (again if last in _AGAIN else firsts).setdefault(kind, {})[str(file)] = read_table(file, KINDS[kind])
    tables, repeats = (
        {kind: joined(kind, parts) for kind, parts in tables_by_kind.items()} for tables_by_kind in (firsts, again)
    )
    if not any(tables[kind].num_rows for kind in needed if kind in tables):
        raise RecordError(
            f"{', '.join(map(str, places))}: no table of {' or '.join(needed)} with a row in it. Expected Parquet "
            "files as raters and judges write them, or the folders they are in."
        )
    return Collected(tables, repeats)


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        return sorted(place.glob("*.parquet"))
    beside = (place.with_suffix(f".{name}{place.suffix}") for name in ("repeats", "reflected"))
    return [place, *(file for file in beside if file.exists())]


def _kind(file: Path) -> str:
    try:
        columns = set(pq.read_schema(file).names)
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{file}: no Parquet file that can be read ({error}). Check the path.") from error
    return next((kind for kind, schema in KINDS.items() if set(schema.names) <= columns), "")


def joined(kind: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Join the tables of one kind; the same answer twice counts once.

    Args:
        kind: One of `KINDS`.
        tables: Where each is from -> rows.

    Raises:
        RecordError: Two answers to the same question by the same rater; both places are named.
    """
    value, *key = _QUESTIONS[kind]
    seen: dict[tuple[object, ...], tuple[object, str]] = {}
    rows = []
    for source, table in tables.items():
        for number, row in enumerate(table.to_pylist(), 1):
            about, where = tuple(row[name] for name in key), f"{source}, row {number}"
            answer, place = seen.setdefault(about, (row[value], where))
            if place == where:
                rows.append(row)
            elif answer != row[value]:
                said = ", ".join(f"{name} {one!r}" for name, one in zip(key, about, strict=True))
                raise RecordError(
                    f"{where}: {value} is {row[value]!r} for {said}, but {place} has {answer!r}. Keep one of the two; "
                    "or import people of another Label Studio with another word for --raters."
                )
    return pa.Table.from_pylist(rows, schema=KINDS[kind])
