"""Which format a log has; and logs of inspect_ai, `.eval` and `.json`, read without inspect_ai.

An `.eval` file is a zip with members that are compressed by zstandard. Python opens such members from 3.14 on; here
pyarrow does.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.fields import checked
from seesaw_cf.logs.lm_eval import is_lm_eval, read_lm_eval
from seesaw_cf.logs.log import (
    ERRORED,
    INVALIDATED,
    EvalLog,
    ItemRow,
    Reader,
    ReadFiles,
    answer_text,
    clean,
    hash_of,
    metric_columns,
    sample_errors,
    start_of,
    table_of,
    table_rows,
)

_Json = Mapping[str, Any]
_TABLES = (".csv", ".tsv", ".parquet")  # which may lie beside a log
VERSION = 2  # of the log format of inspect_ai
_ZSTANDARD = 93
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # N: no answer
_MAX_MEMBER = 2**28  # bytes of a sample, or of the header


@checked
def read_log(path: str | Path, reader: Reader | None = None) -> EvalLog:
    """Return the items of a log.

    Args:
        path: A file, or a folder of one model's logs: of lm_eval (`--log_samples`), inspect_ai (`.eval`, `.json`),
            or a CSV or Parquet table.
        reader: What is kept and allowed; None = the defaults.

    Raises:
        StorageError: There is no such file, or it cannot be read.
        RecordError: It is no log, holds several models or no samples, was cut, or a sample cannot be used.
    """
    place, reader = check_path(path), reader or Reader()
    if not place.exists():
        raise StorageError(f"{place}: no such file or folder. Name a log or a folder of logs.")
    files = [place] if place.is_file() else sorted(file for file in place.rglob("*") if file.is_file())
    logs = {name: own for name, (is_log, _) in _HARNESSES.items() if (own := [file for file in files if is_log(file)])}
    if len(logs) > 1:
        raise RecordError(f"{place}: logs of {' and '.join(logs)}, expected one harness. Name the folder of one.")
    tables = [file for file in files if file.suffix in _TABLES]  # which may lie beside a log
    if not logs and not tables:
        raise RecordError(
            f"{place}: no log among {len(files)} files, expected samples of lm_eval (--log_samples), a log of "
            "inspect_ai, or a CSV or Parquet table."
        )
    with sample_errors(place, "values as the format has them. Write the log again."):
        models, settings, rows = next(
            (_HARNESSES[name][1](own, reader) for name, own in logs.items()),
            (set[str](), {}, (row for file in tables for row in table_rows(file, reader))),
        )
        if len(models) > 1:
            raise RecordError(
                f"{place}: logs of {len(models)} models ({', '.join(sorted(models))}), expected one. Name the folder "
                "or the files of one."
            )
        items = table_of(rows)
    name = next(iter(models), place.name if place.is_dir() else place.stem)
    if items.empty:
        raise RecordError(f"{name}: no scored items, expected at least one. Was the log written without samples?")
    return EvalLog(name, items, settings, tuple(reader.notes), tuple(reader.known))


# inspect_ai.


def _is_inspect(file: Path) -> bool:
    start = start_of(file) if file.suffix == ".json" else b""
    return file.suffix == ".eval" or (b'"eval"' in start and b'"status"' in start)


def _read_inspect(files: Sequence[Path], reader: Reader) -> ReadFiles:
    heads = {file: _head(file, reader) for file in files}
    models = {clean(head["eval"].get("model", "")).rpartition("/")[2] for head in heads.values()}
    settings = {clean(head["eval"]["task"]): _settings(head["eval"]) for head in heads.values()}
    return models, settings, (row for file, head in heads.items() for row in _rows(file, head, reader))


def _head(file: Path, reader: Reader) -> _Json:
    try:
        head: _Json = json.loads(_header(file) if zipfile.is_zipfile(file) else file.read_bytes())
        version, task = head["version"], head["eval"]["task"]
    except RecordError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError, zipfile.BadZipFile) as error:
        raise RecordError(f"{file}: no log of inspect_ai ({type(error).__name__}: {error}). Copy it again.") from error
    if version != VERSION:
        raise RecordError(
            f"{file}: log version {version}, expected {VERSION}. Write it again with read_eval_log and write_eval_log "
            "of an inspect_ai that writes that version."
        )
    if head.get("status") != "success":
        reader.cut(f"{file} ({task})", f"its run ended with status {head.get('status')}")
    for name in (head["eval"].get("config") or {}).get("epochs_reducer") or ():
        if name != "mean":
            reader.notes.append(f"{task} was reduced by {clean(name)} over its epochs; here epochs are averaged.")
    return head


def _settings(head: _Json) -> dict[str, str]:
    arguments = {name: value for name, value in (head.get("task_args") or {}).items() if name != "limit"}
    values = {
        "version": head.get("task_version"),
        "generation": head.get("model_generate_config") or {},
        "arguments": arguments,
        "epochs": (head.get("config") or {}).get("epochs"),
    }
    return {name: clean(value) for name, value in values.items() if value is not None}


def _rows(file: Path, head: _Json, reader: Reader) -> Iterator[ItemRow]:
    task, is_marked = clean(head["eval"]["task"]), False
    for name, sample in _samples(file, head):
        with sample_errors(f"{file}, {name}", "a sample with id, epoch, input and scores. Copy the log again."):
            row = _row(task, sample, reader)
        is_marked |= row["state"] == INVALIDATED
        yield row
    if head.get("invalidated") and not is_marked:
        reader.cut(f"{file} ({task})", "it was invalidated and names no sample")


def _samples(file: Path, head: _Json) -> Iterator[tuple[str, _Json]]:
    if not zipfile.is_zipfile(file):
        yield from ((f"sample {number}", sample) for number, sample in enumerate(head.get("samples") or ()))
        return
    with zipfile.ZipFile(file) as archive, file.open("rb") as stream:
        for info in archive.infolist():
            if info.filename.startswith("samples/"):
                yield info.filename, json.loads(_member(archive, stream, info))


def _header(file: Path) -> bytes:
    with zipfile.ZipFile(file) as archive, file.open("rb") as stream:
        if "header.json" in archive.namelist():
            return _member(archive, stream, archive.getinfo("header.json"))
    raise RecordError(f"{file}: it has no header.json, so its run did not end. Run it to its end, or retry it.")


def _member(archive: zipfile.ZipFile, stream: BinaryIO, info: zipfile.ZipInfo) -> bytes:
    """Return a member of a zip file, whose bytes `stream` has."""
    if info.file_size > _MAX_MEMBER:
        raise RecordError(
            f"{stream.name}, {info.filename}: {info.file_size:,} bytes, expected at most {_MAX_MEMBER:,}. "
            "Write the log again without attachments."
        )
    try:
        if info.compress_type != _ZSTANDARD:
            return archive.read(info)
        stream.seek(info.header_offset)
        lengths = struct.unpack("<HH", stream.read(30)[26:])  # of the name and the extra field before the content
        stream.seek(sum(lengths), 1)
        content = pa.BufferReader(stream.read(info.compress_size))
        return bytes(pa.CompressedInputStream(content, "zstd").read(info.file_size))
    except (OSError, EOFError, RuntimeError, ValueError, struct.error, zlib.error, zipfile.BadZipFile) as error:
        raise RecordError(f"{stream.name}, {info.filename}: damaged ({error}). Copy the log again.") from error


def _row(task: str, sample: _Json, reader: Reader) -> ItemRow:
    scores: Mapping[str, _Json] = sample.get("scores") or {}
    values = {name: value for scorer, score in scores.items() for name, value in _values(scorer, score["value"])}
    first: _Json = next(iter(scores.values()), {})
    asked = sample["input"]
    if not isinstance(asked, str):  # ids of messages are new in every run
        asked = json.dumps([[message.get("role"), message.get("content")] for message in asked])
    content = hash_of(asked, sample.get("choices"), sample.get("target"))
    answer = first.get("answer")
    answer = (sample.get("output") or {}).get("completion", "") if answer is None else answer
    return {
        "task": task,
        "item": clean(sample["id"]),
        "epoch": int(sample["epoch"]),
        "content": content,
        "case": content,
        "answer": answer_text(answer),
        "invalid": first.get("value") == "N" or first.get("answer") == "",
        "state": INVALIDATED if sample.get("invalidation") else ERRORED if sample.get("error") else "",
        **metric_columns(values),
        **reader.keep(sample.get("metadata") or {}),
    }


def _values(scorer: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the name of every value of a score, and the value."""
    if isinstance(value, dict):
        for name, own in value.items():
            yield from _values(f"{scorer}/{name}", own)
    else:
        yield clean(scorer), _LETTERS.get(value, value) if isinstance(value, str) else value


_HARNESSES: Mapping[str, tuple[Callable[[Path], bool], Callable[[Sequence[Path], Reader], ReadFiles]]] = {
    "lm_eval": (is_lm_eval, read_lm_eval),
    "inspect_ai": (_is_inspect, _read_inspect),
}
