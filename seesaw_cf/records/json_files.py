"""JSON and JSON-lines files of records; errors are reported with line, character or record."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

from seesaw_cf.errors import RecordError
from seesaw_cf.io.files import write_text
from seesaw_cf.io.text import unique_keys
from seesaw_cf.records.checks import check_unique, short
from seesaw_cf.records.flags import flag_cases
from seesaw_cf.records.json_records import parse_record, write_record
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.types import Case

_PAIR_FILE = re.compile(r"seesaw_cf_(P\d+)_(P\d+)\.jsonl?")


def parse_json(content: bytes, path: Path) -> list[Case]:
    """Read and flag the cases in the bytes of a JSON list or JSON-lines file.

    Args:
        content: The whole file.
        path: Its name, for messages and for the effect relation of cross-property files.

    Raises:
        RecordError, UnknownNameError: See `read_cases`.
    """
    pair = _PAIR_FILE.fullmatch(path.name)
    edit, effect = pair.groups() if pair and set(pair.groups()) <= set(RELATIONS) else (None, None)
    cases = []
    for number, (where, record) in enumerate(_records(content, path)):
        case = parse_record(record, where=where, number=number, effect_relation_id=effect)
        if edit is not None and case.request.relation_id != edit:
            raise RecordError(
                f"{where} (case_id {case.case_id}): the edit is of {case.request.relation_id}, but the file's name "
                f"says {edit}. Rename the file or correct the record."
            )
        cases.append(case)
    if not cases:
        raise RecordError(f"{path}: no records in it, expected at least one. The file may be cut off: take it again.")
    return flag_cases(check_unique(cases, path))


def write_json(path: str | os.PathLike[str], cases: Iterable[Case]) -> None:
    """Write cases as a JSON list of records, each in its own format.

    A released SEESAW-CF file that was read and is written again has the same bytes.

    Raises:
        StorageError: The disk is full or the folder cannot be written.
    """
    write_text(path, json.dumps([write_record(case) for case in cases], allow_nan=False))


def _records(content: bytes, path: Path) -> Iterator[tuple[str, object]]:
    """Yield (position for messages, JSON value); records are counted from 0, lines from 1."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordError(
            f"{path}: byte {error.start} is not UTF-8 text. Expected JSON or Parquet; take it again."
        ) from error
    if text.startswith("version https://git-lfs"):
        raise RecordError(f"{path}: a Git LFS pointer, not the data. Run `git lfs pull` where it came from.")
    if text.lstrip().startswith("{"):
        # Not splitlines: JSON strings may hold U+2028 and the like as they are.
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                yield f"{path}: line {number}", _loads(line, f"{path}: line {number}")
        return
    values = _loads(text, str(path))
    if not isinstance(values, list):
        raise RecordError(
            f"{path}: got {short(values)}, expected a JSON list of records. Check that this is the right file."
        )
    for number, value in enumerate(values):
        yield f"{path}: record {number}", value


def _loads(text: str, where: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=unique_keys, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 30) : error.pos + 30]
        raise RecordError(
            f"{where}: not whole JSON: {error.msg} at line {error.lineno}, column {error.colno} (character {error.pos} "
            f"of {len(text)}), near {near!r}. Expected a list of records, or one record per line. If the file was cut "
            "off, take it again."
        ) from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{where}: not usable JSON: {error}. Correct the file or take it again.") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
