"""One log of an evaluation harness as a tidy frame, a row per item and epoch; a CSV or Parquet table is one, too."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError, SeesawError, StorageError
from seesaw_cf.base.text import seed_of
from seesaw_cf.logs.settings import LOGLIK, MARGIN

ERRORED, INVALIDATED = "errored", "invalidated"
"""States of items whose scores do not count."""
KEYS = ("task", "item", "epoch", "content", "case", "answer", "invalid", "state", "others")
ITEMS = ("item", "sample_id", "doc_id", "id")
"""Columns of a table that name an item, the first that is there."""
_PROMPTS = ("prompt", "input", "question", "text", "sentence")
_OTHERS = (*ITEMS, *_PROMPTS, "task", "epoch", "answer", "target", "content_hash", "invalid", "error")
_SNIFFED = 4096  # bytes of a file that tell its format
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
        metrics: Name -> value; NaN: not scored.
        case: `hash_of` the document, which several tasks may share; 0: unknown.
        answer: What counts as the model's answer.
        fields: Values that may be groups or clusters.
        epoch: Number of the repetition.
        invalid: The text held no answer.
        weights: Metric -> weight of the item in its mean, where that is not 1: words of a document.
        others: Metric -> value that is no number: parts of a corpus metric, a word, a list.
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
        settings: Task -> what must be alike in two logs -> its value.
        notes: Sentences about what was not read.
        known: All fields of the documents, also those that were not kept.
    """

    name: str
    items: pd.DataFrame
    metrics: tuple[str, ...]
    fields: tuple[str, ...]
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reader:
    """What a reader of a format is given.

    Attributes:
        fields: Names of fields to keep; a document has many.
        allow: Keys of `seesaw_cf.logs.settings.ALLOWED` that are not refused.
        notes: Grows while files are read.
        known: Names of all fields; grows, too.
    """

    fields: Collection[str] = ()
    allow: Collection[str] = ()
    notes: list[str] = field(default_factory=list)
    known: dict[str, None] = field(default_factory=dict)

    def keep(self, document: Mapping[str, object]) -> dict[str, str]:
        """Return the fields of a document that are kept, as text."""
        self.known.update(dict.fromkeys(map(str, document)))
        values = ((name, document.get(name)) for name in self.fields)
        return {name: clean(value) for name, value in values if isinstance(value, str | int | float) and value != ""}

    def cut(self, place: str, reason: str) -> None:
        """Note that a log ends too early; raise RecordError unless that is allowed."""
        message = f"{place}: {reason}, so the log was cut"
        if "cut" not in self.allow:
            raise RecordError(f"{message}. Copy it again, or add --allow cut to use the items before it.")
        self.notes.append(f"{message}; the items before it count.")

    def log(self, name: str, rows: Iterable[ItemRow], settings: Mapping[str, Mapping[str, str]]) -> EvalLog:
        """Return the log of these rows; raise RecordError where there are none."""
        items, metrics, fields = _frame(rows)
        if items.empty:
            raise RecordError(f"{name}: no scored items, expected at least one. Was the log written without samples?")
        return EvalLog(name, items, metrics, fields, settings, tuple(self.notes), tuple(self.known))


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


def start_of(file: Path) -> bytes:
    """Return the first bytes of a file, which tell its format; b"" where it cannot be read."""
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            return bytes(stream.read(_SNIFFED))
    except (OSError, EOFError, zlib.error):
        return b""


def json_lines(path: Path, reader: Reader) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the object of every line of a JSONL file, or element of an array; gzip is read, too.

    Raises:
        StorageError: The file cannot be read.
        RecordError: A line is not an object; or the file ends in the middle of one, and that is not allowed.
    """
    place = str(path)
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            is_array = stream.read(1) == b"["  # as lm_eval wrote before June 2024
            stream.seek(0)
            for number, line in enumerate([stream.read()] if is_array else stream, 1):
                place = str(path) if is_array else f"{path}, line {number}"
                if not line.strip():
                    continue
                try:
                    value = json.loads(line)
                except (ValueError, RecursionError) as error:
                    if is_array or stream.read(1):
                        raise RecordError(f"{place}: not JSON ({error}). Repair it, or copy it again.") from error
                    reader.cut(place, "its last line is not whole")
                    return
                for at, element in enumerate(value if is_array else [value]):
                    where = f"{place}, element {at}" if is_array else place
                    if not isinstance(element, dict):
                        raise RecordError(f"{where}: got {shown(element)}, expected an object.")
                    yield where, element
    except (EOFError, zlib.error) as error:
        reader.cut(place, str(error) or "the compressed file ends too early")
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or error}. Check the file.") from error


@contextmanager
def sample_errors(place: object, expected: str) -> Iterator[None]:
    """Raise RecordError for what a block cannot take from a sample, whose values a program may write in any way.

    Args:
        place: File, and line or row.
        expected: What the format has, and what to do.
    """
    try:
        yield
    except SeesawError:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError) as error:
        raise RecordError(f"{place}: {type(error).__name__} {clean(error)[:200]}. Expected {expected}") from error


def model_of(place: Path, names: Collection[str]) -> str:
    """Return the name of the one model that logs are of, or of the place; raise RecordError for several models."""
    if len(names) > 1:
        listed = ", ".join(sorted(names))
        raise RecordError(
            f"{place}: logs of {len(names)} models ({listed}), expected one. Name the folder or the files of one."
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


def hash_of(*texts: object) -> int:
    """Return 64 bits of SHA-256 of texts, never 0."""
    return seed_of(*texts, bits=64, joined="\x1f") or 1


def clean(value: object) -> str:
    """Return a value as text that UTF-8 can hold."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def answer_text(value: object) -> str:
    """Return an answer as one short line."""
    return " ".join(clean(value).split())[:_MAX_ANSWER]


# Tables.


def read_table_file(file: Path) -> tuple[pd.DataFrame, str]:
    """Return a CSV or Parquet file as a frame, and its column that names items; the columns of a CSV file are text.

    Raises:
        RecordError: It is no table, or no column names items.
        StorageError: It cannot be read.
    """
    try:
        if file.suffix == ".parquet":
            table: pd.DataFrame = pq.ParquetFile(file).read().to_pandas()
        else:
            with file.open(encoding="utf-8-sig", errors="replace") as stream:
                head = stream.readline()
            # An empty cell is missing; "NA" is a word, and "001" is not 1.
            form = {"sep": max(",;\t", key=head.count), "encoding": "utf-8-sig"}
            table = pd.read_csv(file, dtype="str", keep_default_na=False, na_values=[""], **form)  # type: ignore[call-overload]
    except (OSError, pa.ArrowInvalid) as error:
        raise StorageError(f"{file}: cannot be read ({error}). Copy it again.") from error
    except (ValueError, pd.errors.ParserError) as error:
        raise RecordError(f"{file}: no table ({error}), expected CSV with a line of column names.") from error
    if name := next((name for name in ITEMS if name in table), None):
        return table, name
    raise RecordError(f"{file}: columns {list(map(str, table))[:20]}, expected one of {', '.join(ITEMS)}. Rename one.")


def read_tables(place: Path, files: Sequence[Path], reader: Reader) -> EvalLog:
    """Return tables with one row per item as a log: a column of `ITEMS`, and metrics in columns of numbers.

    Raises:
        RecordError: No column names items, or none holds a metric.
        StorageError: A file cannot be read.
    """
    return reader.log(place.stem, (row for file in files for row in _table_rows(file, reader)), {})


def _table_rows(file: Path, reader: Reader) -> Iterator[ItemRow]:
    frame, key = read_table_file(file)
    names = [str(name) for name in frame if name not in _OTHERS and name not in reader.fields]
    metrics = {name: values for name in names if (values := _metric_of(frame[name])) is not None}
    if not metrics:
        words = {name: next(iter(frame[name].dropna()), "") for name in names}
        raise RecordError(
            f"{file}: no column of numbers is a metric, expected at least one such as acc. Other columns begin with "
            f"{shown(words, 200)}."
        )
    prompts = [name for name in _PROMPTS if name in frame]
    for at, row in enumerate(frame.to_dict("records")):
        texts = [row[name] for name in prompts]
        content = hash_of(row["content_hash"]) if "content_hash" in row else hash_of(*texts) if texts else 0
        fields = {str(name): value for name, value in row.items() if value == value and value is not None}
        with sample_errors(f"{file}, row {at + 2}", "a whole number as epoch. Correct the row."):
            yield ItemRow(
                task=clean(fields.get("task", "all items")),
                item=clean(fields.get(key, "")),
                content=content,
                metrics={name: values[at] for name, values in metrics.items()},
                case=content,
                answer=answer_text(fields.get("answer", "")),
                fields=reader.keep(fields),
                epoch=int(fields.get("epoch", 1)),
                state=ERRORED if clean(fields.get("error", "")).lower() not in ("", "false", "0") else "",
                invalid=number_of(fields.get("invalid", False)) > 0,
            )


def _metric_of(column: pd.Series) -> Sequence[float] | None:
    """Return a column as numbers, missing ones among them; None for words, and for numbers that are names as "001"."""
    if pd.api.types.is_numeric_dtype(column):
        return [number_of(value) for value in column]
    cells = column.fillna("").astype("str").str.strip()
    filled = cells[~cells.str.lower().isin(_MISSING)]
    with_comma = filled[filled.str.contains(",", regex=False)]
    # "0,5" is one half; three digits behind every comma may be thousands.
    if len(with_comma) and filled.str.fullmatch(r"[+-]?\d*(,\d+)?(e[+-]?\d+)?", flags=re.IGNORECASE).all():
        if with_comma.str.fullmatch(r"[+-]?[1-9]\d*,\d{3}").all():
            return None
        cells = cells.str.replace(",", ".", regex=False)
    names = filled.str.fullmatch(r"[+-]?0\d+") | filled.str.lower().isin(("yes", "no"))
    numbers = [number_of(value) for value in cells]
    is_metric = cells.map(is_number).all() and not names.any() and any(map(math.isfinite, numbers))
    return numbers if is_metric else None
