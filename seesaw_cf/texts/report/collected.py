"""Answers of people and judges from files and folders: tables recognised by their columns, and files as released."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.tables import read_table
from seesaw_cf.texts.released import read_csv, released_annotations, released_flaws
from seesaw_cf.texts.tables import ANNOTATIONS, FAILURES, FLAWS, PASSAGES, RATINGS, REFLECTED

KINDS: Mapping[str, pa.Schema] = {
    "flaws": FLAWS,
    "reflected": REFLECTED,
    "ratings": RATINGS,
    "annotations": ANNOTATIONS,
    "failures": FAILURES,
    "passages": PASSAGES,
}
# Last part of a file's name -> its rows are answers given a second time.
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
    """Answers that were read.

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


def collect(places: Sequence[Path], needed: Sequence[str]) -> Collected:
    """Read answers of people and judges.

    Args:
        places: Parquet files, folders whose Parquet files are read, and CSV files as the authors of the papers
            released them. Beside a Parquet file `NAME.repeats` and `NAME.reflected` are read too.
        needed: Kinds of which there must be at least one row.

    Returns:
        The rows by kind. Files that are of no kind, such as calls to a judge, are left out.

    Raises:
        StorageError: A place is not there, or a file is not a Parquet file.
        RecordError: No row of a kind in `needed`, a rater who gives two answers to the same question, or raters of one
            released study whose pairs of texts differ.
    """
    parts: dict[bool, dict[str, dict[str, pa.Table]]] = {False: {}, True: {}}
    for file in dict.fromkeys(file for place in places for file in _files(place)):
        for kind, table in _tables(file):
            parts[file.stem.split(".")[-1] in _AGAIN].setdefault(kind, {})[str(file)] = table
    released = {file: table for file, table in parts[False].get("flaws", {}).items() if file.lower().endswith(".csv")}
    _check_same_pairs(released)
    tables, repeats = ({kind: joined(kind, own) for kind, own in parts[again].items()} for again in (False, True))
    if not any(tables[kind].num_rows for kind in needed if kind in tables):
        raise RecordError(
            f"{', '.join(map(str, places))}: no table of {' or '.join(needed)} with a row in it. Expected Parquet "
            "files as raters and judges write them, the folders they are in, or CSV files as released."
        )
    return Collected(tables, repeats)


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        return sorted(place.glob("*.parquet"))
    beside = (place.with_suffix(f".{name}{place.suffix}") for name in ("repeats", "reflected"))
    return [place, *(file for file in beside if file.exists())]


def _tables(file: Path) -> Iterator[tuple[str, pa.Table]]:
    """Yield the kind and the rows of a file; a released one has two kinds."""
    if file.suffix.lower() == ".csv":
        if "classification" in read_csv(file):
            yield "annotations", released_annotations(file)[0]
        else:
            yield from zip(("flaws", "reflected"), released_flaws(file), strict=True)
        return
    try:
        columns = set(pq.read_schema(file).names)
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{file}: no Parquet file that can be read ({error}). Check the path.") from error
    if kind := next((kind for kind, schema in KINDS.items() if set(schema.names) <= columns), ""):
        yield kind, read_table(file, KINDS[kind])


def _check_same_pairs(released: Mapping[str, pa.Table]) -> None:
    """Refuse raters of one study who rated other pairs: a text that was changed makes another pair."""
    pairs = {file: {row["pair_id"]: row for row in table.to_pylist()} for file, table in released.items()}
    for file, own in pairs.items():
        first, expected = next(iter(pairs.items()))
        if other := [row for pair_id, row in own.items() if pair_id not in expected]:
            raise RecordError(
                f"{file}: {len(other)} of {len(own)} pairs are not in {first}, the first of {other[0]['entity']!r}. "
                "Put its texts right, or report the files apart."
            )


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
                words = ", ".join(f"{name} {one!r}" for name, one in zip(key, about, strict=True))
                raise RecordError(
                    f"{where}: {value} is {row[value]!r} for {words}, but {place} has {answer!r}. Keep one of the two; "
                    "or import people of another Label Studio with another word for --raters."
                )
    return pa.Table.from_pylist(rows, schema=KINDS[kind])
