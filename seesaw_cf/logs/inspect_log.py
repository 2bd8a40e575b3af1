"""Logs of inspect_ai, `.eval` and `.json`, read without inspect_ai.

An `.eval` file is a zip with members that are compressed by zstandard. Python opens such members from 3.14 on; here
pyarrow does.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.logs.log import (
    ERRORED,
    INVALIDATED,
    EvalLog,
    ItemRow,
    Reader,
    answer_text,
    clean,
    hash_of,
    is_number,
    model_of,
    number_of,
    sample_errors,
    start_of,
)

VERSION = 2  # of the log format
_ZSTANDARD = 93
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # N: no answer
_MAX_MEMBER = 2**28  # bytes of a sample, or of the header


def is_inspect(file: Path) -> bool:
    """Return whether a file is a log."""
    start = start_of(file) if file.suffix == ".json" else b""
    return file.suffix == ".eval" or (b'"eval"' in start and b'"status"' in start)


def read_inspect(place: Path, files: Sequence[Path], reader: Reader) -> EvalLog:
    """Return the samples of one or several logs of a model.

    Args:
        place: What the user named.
        files: Log files, one per task.
        reader: See `Reader`.

    Raises:
        RecordError: A file is no log of this version, has no samples, or its run did not end well; or the files are of
            several models.
        StorageError: A file cannot be read.
    """
    heads = {file: _head(file, reader) for file in files}
    settings = {clean(head["eval"]["task"]): _settings(head["eval"]) for head in heads.values()}
    name = model_of(place, {clean(head["eval"].get("model", "")).rpartition("/")[2] for head in heads.values()})
    rows = (row for file, head in heads.items() for row in _rows(file, head, reader))
    return reader.log(name, rows, settings)


def _head(file: Path, reader: Reader) -> dict[str, Any]:
    try:
        head: dict[str, Any] = json.loads(_header(file)) if zipfile.is_zipfile(file) else json.loads(file.read_bytes())
        version, task = head["version"], head["eval"]["task"]
    except RecordError:
        raise
    except OSError as error:
        raise StorageError(f"{file}: {error.strerror or error}. Check the file.") from error
    except (ValueError, KeyError, TypeError, RecursionError, zipfile.BadZipFile, struct.error) as error:
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


def _settings(head: Mapping[str, Any]) -> dict[str, str]:
    arguments = {name: value for name, value in (head.get("task_args") or {}).items() if name != "limit"}
    values = {
        "version": head.get("task_version"),
        "generation": head.get("model_generate_config") or {},
        "arguments": arguments,
        "epochs": (head.get("config") or {}).get("epochs"),
    }
    return {name: clean(value) for name, value in values.items() if value is not None}


def _rows(file: Path, head: Mapping[str, Any], reader: Reader) -> Iterator[ItemRow]:
    task, marked = clean(head["eval"]["task"]), False
    for name, sample in _samples(file, head):
        with sample_errors(f"{file}, {name}", "a sample with id, epoch, input and scores. Copy the log again."):
            row = _row(task, sample, reader)
        marked |= row.state == INVALIDATED
        yield row
    if head.get("invalidated") and not marked:
        reader.cut(f"{file} ({task})", "it was invalidated and names no sample")


def _samples(file: Path, head: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
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
    """Return a member of a zip file, whose bytes `stream` has.

    Raises:
        RecordError: It is damaged.
    """
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
        content = stream.read(info.compress_size)
        return bytes(pa.CompressedInputStream(pa.BufferReader(content), "zstd").read(info.file_size))
    except (OSError, EOFError, RuntimeError, ValueError, struct.error, zlib.error, zipfile.BadZipFile) as error:
        raise RecordError(f"{stream.name}, {info.filename}: damaged ({error}). Copy the log again.") from error


def _row(task: str, sample: Mapping[str, Any], reader: Reader) -> ItemRow:
    scores: Mapping[str, Mapping[str, Any]] = sample.get("scores") or {}
    values = {name: value for scorer, score in scores.items() for name, value in _values(scorer, score["value"])}
    metrics = {name: _number(value) for name, value in values.items() if not isinstance(value, list)}
    first: Mapping[str, Any] = next(iter(scores.values()), {})
    asked = [sample["input"] if isinstance(sample["input"], str) else _messages(sample["input"])]
    content = hash_of(*asked, sample.get("choices"), sample.get("target"))
    answer = first.get("answer")
    answer = (sample.get("output") or {}).get("completion", "") if answer is None else answer
    return ItemRow(
        task=task,
        item=clean(sample["id"]),
        content=content,
        metrics=metrics,
        case=content,
        answer=answer_text(answer),
        fields=reader.keep(sample.get("metadata") or {}),
        epoch=int(sample["epoch"]),
        invalid=first.get("value") == "N" or first.get("answer") == "",
        others={
            name: value
            for name, value in values.items()
            if isinstance(value, list) or not (is_number(value) or value in _LETTERS)
        },
        state=INVALIDATED if sample.get("invalidation") else ERRORED if sample.get("error") else "",
    )


def _messages(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the roles and texts of messages: their ids are new in every run."""
    return json.dumps([[message.get("role"), message.get("content")] for message in messages])


def _values(scorer: str, value: object) -> Iterator[tuple[str, Any]]:
    """Yield the name of every value of a score, and the value."""
    if isinstance(value, dict):
        for name, own in value.items():
            yield from _values(f"{scorer}/{name}", own)
    else:
        yield clean(scorer), value


def _number(value: object) -> float:
    return _LETTERS[value] if isinstance(value, str) and value in _LETTERS else number_of(value)
