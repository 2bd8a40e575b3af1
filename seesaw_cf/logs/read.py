"""Which format a log has, seen from its files."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.logs.every_eval_log import read_every_eval
from seesaw_cf.logs.inspect_log import read_inspect
from seesaw_cf.logs.lm_eval import SAMPLES, read_lm_eval
from seesaw_cf.logs.log import EvalLog, Reader, sample_errors
from seesaw_cf.logs.tables_log import is_lighteval, read_lighteval, read_plain

_SNIFFED = 4096  # bytes of a file that tell its format


def _is_every_eval(file: Path) -> bool:
    return ".jsonl" in file.name and b'"evaluation_id"' in _start(file)


def _is_lm_eval(file: Path) -> bool:
    named = SAMPLES.fullmatch(file.name) is not None
    return ".jsonl" in file.name and (named or b'"doc_id"' in _start(file))


def _is_inspect(file: Path) -> bool:
    if file.suffix == ".eval":
        return True
    return file.suffix == ".json" and b'"eval"' in _start(file) and b'"status"' in _start(file)


def _is_lighteval(file: Path) -> bool:
    return file.suffix == ".parquet" and is_lighteval(file)


def _is_plain(file: Path) -> bool:
    return file.suffix in (".csv", ".parquet")


Format = tuple[Callable[[Path], bool], Callable[[Path, Sequence[Path], Reader], EvalLog]]
"""Whether a file is of a format, and what reads it."""
# The first that holds.
_FORMATS: Sequence[Format] = (
    (_is_every_eval, read_every_eval),
    (_is_lm_eval, read_lm_eval),
    (_is_inspect, read_inspect),
    (_is_lighteval, read_lighteval),
    (_is_plain, read_plain),
)
_TABLES = 2  # the last formats


def read_log(path: str | Path, reader: Reader | None = None) -> EvalLog:
    """Return the items of a log.

    Args:
        path: A file, or a folder of one model's logs: of lm_eval (`--log_samples`), inspect_ai (`.eval`, `.json`),
            Every Eval Ever (`_samples.jsonl`), lighteval (details in Parquet), or a CSV or Parquet table.
        reader: What is kept and allowed; None = the defaults.

    Raises:
        StorageError: There is no such file, or it cannot be read.
        RecordError: It is no log, holds logs of several formats, or a sample cannot be used.
    """
    place = check_path(path)
    if not place.exists():
        raise StorageError(f"{place}: no such file or folder. Name a log or a folder of logs.")
    files = [place] if place.is_file() else sorted(file for file in place.rglob("*") if file.is_file())
    for number, (holds, read) in enumerate(_FORMATS):
        if own := list(filter(holds, files)):
            _check_alone(place, set(files) - set(own), _FORMATS[number + 1 : -_TABLES])
            with sample_errors(place, "values as the format has them. Write the log again."):
                return read(place, own, reader or Reader())
    raise RecordError(
        f"{place}: no log among {len(files)} files, expected samples of lm_eval (--log_samples), a log of inspect_ai, "
        "_samples.jsonl of Every Eval Ever, details of lighteval, or a CSV or Parquet table."
    )


def _check_alone(place: Path, others: Collection[Path], formats: Sequence[Format]) -> None:
    """Refuse a folder with logs of other formats, too; tables may lie beside a log.

    Raises:
        RecordError: It has one.
    """
    if other := next((file for file in sorted(others) if any(holds(file) for holds, _ in formats)), None):
        raise RecordError(
            f"{place}: holds logs of several formats, such as {other.relative_to(place)}, expected those of one. Name "
            "the folder or the file of one."
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
