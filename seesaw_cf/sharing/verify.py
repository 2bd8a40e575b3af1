"""Whether the tables of a run are what its units left: each is made again and compared."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seesaw_cf.checks import shown
from seesaw_cf.errors import RecordError, RunFolderError
from seesaw_cf.io.sheets import csv_text
from seesaw_cf.io.text import read_json, read_text
from seesaw_cf.report.results import Results, read_manifest, read_results
from seesaw_cf.report.write import report_tables
from seesaw_cf.run.edit_table import read_edits, write_edits
from seesaw_cf.run.manifest import RunManifest
from seesaw_cf.run.store import Store
from seesaw_cf.stats.tolerance import tolerance
from seesaw_cf.tables import SCORES, read_table

TABLES = ("manifest.json", "scores.parquet", "edits.parquet")
"""The files of a run that its numbers come from."""
_SCORE_KEYS = ("edit_relation", "effect_relation", "case_id", "kind", "prompt_id", "target", "role", "phase")
_EDIT_KEYS = ("editor", "relation_id", "effect_relation_id", "case_id")
# Tables of a report that depend on nothing that is declared; other columns of theirs are left out by their ending.
_REPORTED = ("efficacy", "accuracy", "effects_by_group", "success", "unscored", "edits")
_DECLARED = "marked"
_MOST = 5  # differences that are named


@dataclass(frozen=True, slots=True)
class Verified:
    """A run whose tables are what its units left.

    Attributes:
        results: What it found, computed from its score table.
        hashes: Each of `TABLES` -> SHA-256 of the file.
        checked: What was compared, in words.
    """

    results: Results
    hashes: dict[str, str]
    checked: tuple[str, ...]

    @property
    def digest(self) -> str:
        """SHA-256 over the hashes: the run's name wherever it is published."""
        return run_digest([self.hashes[name] for name in TABLES])


def run_digest(hashes: Sequence[str]) -> str:
    """SHA-256 over those of a run's files, in the order of `TABLES`."""
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def verify_run(run: str | os.PathLike[str]) -> Verified:
    """Computes the tables of a finished run again and compares them with those in its folder.

    Every editor must have edited every record, the score table must hold the rows of the run's shards, the edits what
    the shards say became of them, every shard must carry the identity of the manifest, and the tables of a report,
    where there is one, must follow from the scores.

    Raises:
        RunFolderError: Not a run folder, not finished, or its shards are gone.
        RecordError: A table is damaged or differs; the message says where, what is there and what belongs there.
    """
    folder = Path(run)
    made = read_manifest(folder)
    shards = sorted((folder / "shards").glob("*/*.parquet"))
    if not shards:
        raise RunFolderError(
            f"{folder}: its folder shards/ is gone, so nothing shows that the tables are what was measured. Verify the "
            "folder that `seesaw-cf run` wrote, whole."
        )
    store = Store(folder, _manifest(folder / "manifest.json"), SCORES)
    found = [*_scores(folder, store, shards), *_edits(folder, store, shards, tolerance(made)[0])]
    _refuse(folder, [*found, *_missing(folder, store.manifest)])
    results = read_results(folder)
    _refuse(folder, list(_report(folder, results)))
    reported = any((folder / "report" / f"{name}.csv").is_file() for name in _REPORTED)
    hashes = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in TABLES}
    return Verified(results, hashes, ("manifest", "scores", "edits", *(["report"] if reported else [])))


def _refuse(folder: Path, found: Sequence[str]) -> None:
    if found:
        more = f"\n  and {len(found) - _MOST:,} more" if len(found) > _MOST else ""
        raise RecordError(
            f"{folder}: its tables are not what was measured:\n  " + "\n  ".join(found[:_MOST]) + more + "\n"
            "Delete what was changed and repeat the `seesaw-cf run` or `seesaw-cf report` command that made it."
        )


def _manifest(file: Path) -> RunManifest:
    try:
        return RunManifest(**read_json(file, any_number=True, error=RunFolderError))
    except TypeError as error:
        raise RunFolderError(f"{file} is damaged ({error}). Run again into a new folder with --out.") from error


def _scores(folder: Path, store: Store, shards: Sequence[Path]) -> Iterator[str]:
    """Editor by editor, so that a large run fits into memory."""
    whole = folder / "scores.parquet"
    counted, measured = _rows(whole), sum(map(_rows, shards))
    if counted != measured:
        yield f"scores.parquet has {counted:,} rows, the shards have {measured:,}"
        return
    for editor in dict.fromkeys(file.parent.name for file in shards):
        own = [file for file in shards if file.parent.name == editor]
        theirs = pa.concat_tables(store.read((editor, file.stem)).table for file in own)
        names = pc.unique(theirs["editor"]).to_pylist()
        ours = read_table(whole, SCORES, filters=[("editor", "in", names)])
        yield from _different("scores.parquet", ours, theirs, _SCORE_KEYS)


def _rows(file: Path) -> int:
    try:
        return int(pq.read_metadata(file).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise RecordError(
            f"{file}: not a whole Parquet file ({error}). Delete it and repeat the `seesaw-cf run` that made it."
        ) from error


def _edits(folder: Path, store: Store, shards: Sequence[Path], nats: float) -> Iterator[str]:
    rows = [row for file in shards for row in store.read((file.parent.name, file.stem)).facts.get("edits", ())]
    with tempfile.TemporaryDirectory() as temporary:
        again = Path(temporary) / "edits.parquet"
        write_edits(again, rows, nats)
        yield from _different("edits.parquet", read_edits(folder / "edits.parquet"), read_edits(again), _EDIT_KEYS)


def _missing(folder: Path, made: RunManifest) -> Iterator[str]:
    """Editors without all records: who leaves units out chooses what the numbers are of."""
    wanted = int(str(made.data.get("cases", 0)))
    edited = Counter(read_edits(folder / "edits.parquet")["editor"].to_pylist())
    for editor in {**made.editors, **made.edited}:
        if edited[editor] < wanted:
            yield f"{editor} has {edited[editor]:,} edits, the manifest says {wanted:,} records; units are missing"


def _different(name: str, there: pa.Table, wanted: pa.Table, keys: Sequence[str]) -> Iterator[str]:
    """The rows of two tables that differ, whatever their order."""
    if there.num_rows != wanted.num_rows:
        yield f"{name} has {there.num_rows:,} rows where {wanted.num_rows:,} were measured"
        return
    order = [(key, "ascending") for key in keys]
    there, wanted = (table.sort_by(order).combine_chunks() for table in (there, wanted))
    for column in there.column_names:
        if there[column].equals(wanted[column]):
            continue
        for row, (one, other) in enumerate(zip(there[column], wanted[column], strict=True)):
            if not _same(one.as_py(), other.as_py()):
                place = ", ".join(f"{key} {there[key][row].as_py()}" for key in keys if there[key][row].as_py())
                yield f"{name}, {place}: {column} is {shown(one.as_py())}, measured {shown(other.as_py())}"


def _same(one: object, other: object) -> bool:
    return one == other or (one != one and other != other)


def _report(folder: Path, results: Results) -> Iterator[str]:
    """The tables of a report that differ from those that the scores give."""
    for name, frame in report_tables(results).items():
        file = folder / "report" / f"{name}.csv"
        if name not in _REPORTED or not file.is_file():
            continue
        heads, *there = list(csv.reader(io.StringIO(read_text(file), newline=""))) or [[]]
        wanted_heads, *wanted = csv.reader(io.StringIO(csv_text(frame), newline=""))
        if [heads, *map(len, there)] != [wanted_heads, *map(len, wanted)]:
            own = f"the scores give {len(wanted):,} of {wanted_heads}"
            yield f"report/{name}.csv has {len(there):,} rows of {heads}, {own}"
            continue
        for number, (one, other) in enumerate(zip(there, wanted, strict=True), start=2):
            for head, said, own in zip(heads, one, other, strict=True):
                if said != own and not head.endswith(_DECLARED):
                    yield f"report/{name}.csv, line {number}: {head} is {shown(said)}, the scores give {shown(own)}"
