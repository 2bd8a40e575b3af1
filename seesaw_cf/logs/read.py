"""Which format a log has, seen from its files."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.logs.inspect_log import read_inspect
from seesaw_cf.logs.lm_eval import SAMPLES, read_lm_eval
from seesaw_cf.logs.log import EvalLog, Reader, sample_errors
from seesaw_cf.logs.tables_log import read_plain

_SNIFFED = 4096  # bytes of a file that tell its format


def _is_lm_eval(file: Path) -> bool:
    return ".json" in file.name and (bool(SAMPLES.fullmatch(file.name)) or b'"doc_id"' in _start(file))


def _is_inspect(file: Path) -> bool:
    start = _start(file) if file.suffix == ".json" else b""
    return file.suffix == ".eval" or (b'"eval"' in start and b'"status"' in start)


Format = tuple[Callable[[Path], bool], Callable[[Path, Sequence[Path], Reader], EvalLog]]
"""Whether a file is of a format, and what reads it."""
# Those of a folder are read together.
_HARNESSES: Mapping[str, Format] = {
    "lm_eval": (_is_lm_eval, read_lm_eval),
    "inspect": (_is_inspect, read_inspect),
}
_TABLES = (".csv", ".parquet")  # which may lie beside a log


def read_log(path: str | Path, reader: Reader | None = None) -> EvalLog:
    """Return the items of a log.

    Args:
        path: A file, or a folder of one model's logs: of lm_eval (`--log_samples`), inspect_ai (`.eval`, `.json`),
            or a CSV or Parquet table. Logs of several harnesses make one, with the harness behind the names of tasks.
        reader: What is kept and allowed; None = the defaults.

    Raises:
        StorageError: There is no such file, or it cannot be read.
        RecordError: It is no log, or a sample cannot be used.
    """
    place = check_path(path)
    if not place.exists():
        raise StorageError(f"{place}: no such file or folder. Name a log or a folder of logs.")
    files = [place] if place.is_file() else sorted(file for file in place.rglob("*") if file.is_file())
    owners = {file: next((name for name, (holds, _) in _HARNESSES.items() if holds(file)), "") for file in files}
    with sample_errors(place, "values as the format has them. Write the log again."):
        parts = {
            name: read(place, [file for file in files if owners[file] == name], reader or Reader())
            for name, (_, read) in _HARNESSES.items()
            if name in owners.values()
        }
        if parts:
            return _together(parts) if len(parts) > 1 else next(iter(parts.values()))
        if tables := [file for file in files if file.suffix in _TABLES]:
            return read_plain(place, tables, reader or Reader())
    raise RecordError(
        f"{place}: no log among {len(files)} files, expected samples of lm_eval (--log_samples), a log of inspect_ai, "
        "or a CSV or Parquet table."
    )


def _together(parts: Mapping[str, EvalLog]) -> EvalLog:
    """Return logs of several harnesses as one, tasks as "crows_pairs (lm_eval)".

    A document in several logs takes the fields that one of them lacks from the others.
    """
    logs = [
        replace(
            log,
            items=log.items.assign(task=[f"{task} ({harness})" for task in log.items["task"]]),
            settings={(f"{task} ({harness})", name): value for (task, name), value in log.settings.items()},
        )
        for harness, log in parts.items()
    ]
    fields = tuple(dict.fromkeys(name for log in logs for name in log.fields))
    columns = [f"field:{name}" for name in fields]
    frames = [log.items.astype(dict.fromkeys(log.items.columns.intersection(columns), "str")) for log in logs]
    items = pd.concat(frames, ignore_index=True)
    # A task of one name next to that of the others; its filters stay in their order, since the first one counts.
    order = items["task"].str.split(r"/| \(", n=1, regex=True).str[0]
    items = items.loc[order.sort_values(kind="stable").index].reset_index(drop=True)
    known = items["case"] != 0
    shared = items[known].replace(dict.fromkeys(columns, ""), None).groupby("case")[columns].transform("first")
    items.loc[known, columns] = shared
    return EvalLog(
        logs[0].name,
        items.fillna(dict.fromkeys(columns, "")).astype(dict.fromkeys(["task", *columns], "category")),
        tuple(dict.fromkeys(name for log in logs for name in log.metrics)),
        fields,
        {key: value for log in logs for key, value in log.settings.items()},
        tuple(dict.fromkeys(note for log in logs for note in log.notes)),
    )


def _start(file: Path) -> bytes:
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            return bytes(stream.read(_SNIFFED))
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile):
        return b""


def distinct_names(logs: Iterable[EvalLog], paths: Sequence[Path]) -> list[str]:
    """Return the models' names, or where two are equal the parts of their paths that differ."""
    names = [log.name.replace("__", "/").rpartition("/")[2] for log in logs]
    if len(set(names)) == len(names):
        return names
    parts = [path.parts for path in paths]
    common = min(next((at for at, pair in enumerate(zip(*parts)) if len(set(pair)) > 1), 0), *map(len, parts))
    places = [part[common] if common < len(part) else str(path) for part, path in zip(parts, paths)]
    return [Path(place).stem for place in places] if len(set(places)) == len(places) else list(map(str, paths))
