"""One log of an evaluation harness as a tidy frame: a row per item and epoch, whatever program wrote it."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError, SeesawError, StorageError
from seesaw_cf.base.seeds import seed_of

MARGIN = "margin"
"""Metric of items with log-probabilities: of the right answer minus that of the best other one, nats."""
LOGLIK = "loglik"
"""Metric of items with log-probabilities: of the right answer, nats."""
INVALID = "[invalid]"
"""The answer of an item whose text held none."""
ERRORED, INVALIDATED = "errored", "invalidated"
"""States of items whose scores do not count."""
KEYS = ("task", "item", "epoch", "content", "case", "answer", "invalid", "state", "others")
LogSettings = dict[tuple[str, str], str]
"""(Task, setting) -> value, of what must be alike in two logs."""
_CHUNK = 50_000  # rows that are held as Python objects at a time
_MAX_ANSWER = 80  # characters
_MISSING = ("", "na", "n/a", "none", "null")
_MAX_SCORE = 1e100  # sums of squares of larger ones overflow
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}  # as inspect_ai counts them


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One scored item.

    Attributes:
        task: Task, and filter where the harness scores an answer in several ways: "gsm8k/strict".
        item: Its name within the task.
        content: `hash_of` everything that the model was asked; 0: unknown.
        case: `hash_of` the document, which several tasks may share; 0: unknown.
        metrics: Name -> value; NaN: not scored.
        weights: Metric -> weight of the item in its mean, where that is not 1: words of a document.
        others: Metric -> value that is no number: parts of a corpus metric, a word, a list.
        answer: What counts as the model's answer.
        fields: Values that may be groups or clusters.
        epoch: Number of the repetition.
        invalid: The text held no answer.
        state: `ERRORED` or `INVALIDATED`; "" = it counts.
    """

    task: str
    item: str
    content: int
    metrics: Mapping[str, float]
    case: int = 0
    answer: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    epoch: int = 1
    invalid: bool = False
    weights: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, object] = field(default_factory=dict)
    state: str = ""


@dataclass(frozen=True, eq=False)
class EvalLog:
    """A log as it was read.

    Attributes:
        name: Of the model.
        items: Columns `KEYS`, "metric:NAME", "weight:NAME" and "field:NAME".
        metrics: Columns of `items` that are metrics, in the log's order.
        fields: Columns of `items` that may be groups or clusters.
        settings: What must be alike in two logs.
        notes: Sentences about what was not read.
        known: All fields of the documents, also those that were not kept.
    """

    name: str
    items: pd.DataFrame
    metrics: tuple[str, ...]
    fields: tuple[str, ...]
    settings: LogSettings = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reader:
    """What a reader of a format is given.

    Attributes:
        fields: Names of fields to keep; a document has many.
        allow: Differences that are not refused, see `seesaw_cf.logs.pairing.ALLOWED`.
        notes: Grows while files are read.
        known: Names of all fields; grows, too.
    """

    fields: Collection[str] = ()
    allow: Collection[str] = ()
    notes: list[str] = field(default_factory=list)
    known: dict[str, None] = field(default_factory=dict)

    def kept(self, document: Mapping[str, object]) -> dict[str, str]:
        """Return the fields of a document that are kept, as text."""
        self.known.update(dict.fromkeys(map(str, document)))
        values = ((name, document.get(name)) for name in self.fields)
        return {name: clean(value) for name, value in values if isinstance(value, str | int | float) and value != ""}

    def cut(self, place: str, reason: str) -> None:
        """Note that a log ends too early.

        Raises:
            RecordError: Unless that is allowed.
        """
        message = f"{place}: {reason}, so the log was cut"
        if "cut" not in self.allow:
            raise RecordError(f"{message}. Copy it again, or add --allow cut to use the items before it.")
        self.notes.append(f"{message}; the items before it count.")

    def log(self, name: str, rows: Iterable[ItemRow], settings: LogSettings) -> EvalLog:
        """Return the log of these rows.

        Raises:
            RecordError: There are none.
        """
        items, metrics, fields = _frame(rows)
        if items.empty:
            raise RecordError(f"{name}: no scored items, expected at least one. Was the log written without samples?")
        return EvalLog(name, items, metrics, fields, settings, tuple(self.notes), tuple(self.known))


def json_lines(path: Path, reader: Reader) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the object of every line of a JSONL file, which may be compressed by gzip.

    Raises:
        StorageError: The file cannot be read.
        RecordError: A line is not an object; or the file ends in the middle of one, and that is not allowed.
    """
    place = str(path)
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            if stream.read(1) == b"[":  # one array, as lm_eval wrote before June 2024
                yield from _elements(path, b"[" + stream.read())
                return
            stream.seek(0)
            for number, line in enumerate(stream, 1):
                place = f"{path}, line {number}"
                if not line.strip():
                    continue
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError) as error:
                    if stream.read(1):
                        raise RecordError(f"{place}: not JSON ({error}). Repair or remove the line.") from error
                    reader.cut(place, "its last line is not whole")
                    return
                if not isinstance(value, dict):
                    raise RecordError(f"{place}: got {shown(value)}, expected an object.")
                yield place, value
    except (EOFError, zlib.error) as error:
        reader.cut(place, str(error) or "the compressed file ends too early")
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{path}: {error.strerror or error}. Check the file.") from error


def _elements(path: Path, content: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path}: no whole JSON array ({error}). Copy it again.") from error
    for number, value in enumerate(values):
        if not isinstance(value, dict):
            raise RecordError(f"{path}, element {number}: got {shown(value)}, expected an object.")
        yield f"{path}, element {number}", value


@contextmanager
def sample_errors(place: object, expected: str) -> Iterator[None]:
    """Explain what a block cannot take from a sample, whose values a program may have written in any way.

    Args:
        place: File, and line or row.
        expected: What the format has, and what to do.

    Raises:
        RecordError: A value is missing or of another type.
    """
    try:
        yield
    except SeesawError:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError) as error:
        raise RecordError(f"{place}: {type(error).__name__} {clean(error)[:200]}. Expected {expected}") from error


def model_of(place: Path, names: Collection[str]) -> str:
    """Return the name of the one model that logs are of; that of the place where they name none.

    Raises:
        RecordError: They are of several models.
    """
    if len(names) > 1:
        raise RecordError(
            f"{place}: logs of {len(names)} models ({', '.join(sorted(names))}), expected one. Name the folder or the "
            "files of one."
        )
    return next(iter(names), place.name if place.is_dir() else place.stem)


def number_of(value: object) -> float:
    """Return a metric's value as a number, also one that was written as text; NaN where it is none or no score."""
    text = value.strip().lower() if isinstance(value, str) else value
    try:
        number = _WORDS[text] if isinstance(text, str) and text in _WORDS else float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if abs(number) < _MAX_SCORE else math.nan


def is_number(value: object) -> bool:
    """Return whether a value is a number, a missing one, or a word that stands for one."""
    text = str(value).strip().lower()
    try:
        return text in _WORDS or text in _MISSING or float(text) is not None
    except ValueError:
        return False


def log_probability_metrics(logprobs: list[float], target: int) -> dict[str, float]:
    """Return `MARGIN` and `LOGLIK` of an item with choices; {} where there is no such target."""
    if not 0 <= target < len(logprobs):
        return {}
    others = [value for at, value in enumerate(logprobs) if at != target]
    return {LOGLIK: logprobs[target]} | ({MARGIN: logprobs[target] - max(others)} if others else {})


def best(scores: Sequence[float]) -> int:
    """Return the index of the largest score, the first of equal ones."""
    return max(range(len(scores)), key=scores.__getitem__)


def hash_of(*texts: object) -> int:
    """Return 64 bits of SHA-256 of texts, never 0."""
    return seed_of(*texts, bits=64, joined="\x1f") or 1


def clean(value: object) -> str:
    """Return a value as text that UTF-8 can hold."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def answer_text(value: object) -> str:
    """Return an answer as one short line."""
    return " ".join(clean(value).split())[:_MAX_ANSWER]


def _frame(rows: Iterable[ItemRow]) -> tuple[pd.DataFrame, tuple[str, ...], tuple[str, ...]]:
    """Return rows as a frame, with the names of its metrics and fields; text that repeats becomes categories."""
    chunks, metrics, fields = list[pd.DataFrame](), dict[str, None](), dict[str, None]()
    stream = iter(rows)
    while part := list(islice(stream, _CHUNK)):
        keys = pd.DataFrame({name: [getattr(row, name) for row in part] for name in KEYS})
        values = pd.DataFrame([dict(row.metrics) for row in part], dtype=np.float64)
        weights = pd.DataFrame([dict(row.weights) for row in part], dtype=np.float64)
        texts = pd.DataFrame([dict(row.fields) for row in part], dtype="str")
        metrics |= dict.fromkeys(map(str, values))
        fields |= dict.fromkeys(map(str, texts))
        keys = keys.astype({"content": "uint64", "case": "uint64", "epoch": "int32"})
        numbers = [values.add_prefix("metric:"), weights.add_prefix("weight:")]
        chunks.append(pd.concat([keys, *numbers, texts.add_prefix("field:")], axis=1))
    frame = pd.concat(chunks, ignore_index=True) if chunks else pd.DataFrame(columns=list(KEYS))
    names = ["task", "answer", "state", *(f"field:{name}" for name in fields)]
    return frame.astype(dict.fromkeys(names, "category")), tuple(metrics), tuple(fields)
