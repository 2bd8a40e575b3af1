"""A log of an evaluation harness as one tidy table, a row per item and epoch; what readers of all formats share.

Columns of the table: `task`, and filter where answers are scored in several ways ("gsm8k/strict"); `item`, its name in
the task; `epoch`; `content` and `case`, `hash_of` all that was asked and of the document, which tasks may share (0:
unknown); `answer`; `invalid`, the text held none; `state`, `ERRORED` or `INVALIDATED` ("": it counts); `others`, metric
-> value that is no number; "metric:NAME", NaN where not scored; "weight:NAME" of an item in the mean of a metric, such
as words of a document; "field:NAME", what may be groups or clusters.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError, SeesawError, StorageError
from seesaw_cf.base.text import seed_of
from seesaw_cf.logs import LOGLIK, MARGIN

ERRORED, INVALIDATED = "errored", "invalidated"
"""States of items whose scores do not count."""
ItemRow = dict[str, Any]
"""An item as a row of the table."""
ReadFiles = tuple[set[str], dict[str, dict[str, str]], Iterator[ItemRow]]
"""Models of files, settings of their tasks (whole when all rows are read), and rows."""
_ITEMS = ("item", "sample_id", "doc_id", "id")  # columns of a table that name an item, the first that is there
_PROMPTS = ("prompt", "input", "question", "text", "sentence")
_OTHERS = (*_ITEMS, *_PROMPTS, "task", "epoch", "answer", "target", "content_hash", "invalid", "error")
_SNIFFED = 4096  # bytes of a file that tell its format
_CHUNK = 50_000  # rows that are held as Python objects at a time
_MAX_ANSWER = 80  # characters
_MISSING = ("", "na", "n/a", "none", "null")
_MAX_SCORE = 1e100  # sums of squares of larger ones overflow
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}  # as inspect_ai counts them


@dataclass(frozen=True, eq=False)
class EvalLog:
    """A log as it was read.

    Attributes:
        name: Of the model.
        items: The table.
        settings: Task -> what must be alike in two logs -> its value.
        notes: Sentences about what was not read.
        known: All fields of the documents, also those that were not kept.
    """

    name: str
    items: pd.DataFrame
    settings: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...]
    known: tuple[str, ...]

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the names of columns of a kind ("metric", "weight" or "field"), in the log's order."""
        return tuple(name.partition(":")[2] for name in map(str, self.items) if name.startswith(f"{kind}:"))


@dataclass(frozen=True, slots=True)
class Reader:
    """What a reader of a format is given.

    Attributes:
        fields: Names of fields to keep; a document has many.
        allow: Keys of `seesaw_cf.logs.ALLOWED` that are not refused.
        notes: Grows while files are read.
        known: Names of all fields; grows, too.
    """

    fields: Collection[str] = ()
    allow: Collection[str] = ()
    notes: list[str] = field(default_factory=list)
    known: dict[str, None] = field(default_factory=dict)

    def keep(self, document: Mapping[str, object]) -> ItemRow:
        """Return the fields of a document that are kept, as columns of text."""
        self.known.update(dict.fromkeys(map(str, document)))
        values = ((f"field:{name}", document.get(name)) for name in self.fields)
        return {name: clean(value) for name, value in values if isinstance(value, str | int | float) and value != ""}

    def cut(self, place: str, reason: str) -> None:
        """Note that a log ends too early; raise RecordError unless that is allowed."""
        message = f"{place}: {reason}, so the log was cut"
        if "cut" not in self.allow:
            raise RecordError(f"{message}. Copy it again, or add --allow cut to use the items before it.")
        self.notes.append(f"{message}; the items before it count.")


def table_of(rows: Iterable[ItemRow]) -> pd.DataFrame:
    """Return rows as a table; text that repeats becomes categories."""
    stream, chunks = iter(rows), list[pd.DataFrame]()
    while part := list(islice(stream, _CHUNK)):
        chunks.append(pd.DataFrame(part).astype({"content": "uint64", "case": "uint64", "epoch": "int32"}))
    table = pd.concat(chunks, ignore_index=True) if chunks else pd.DataFrame({"task": []})
    repeated = [name for name in table if name in ("task", "answer", "state") or str(name).startswith("field:")]
    return table.astype(dict.fromkeys(repeated, "category"))


def start_of(file: Path) -> bytes:
    """Return the first bytes of a file, which tell its format; b"" where it cannot be read."""
    with suppress(OSError, EOFError, zlib.error), _opened(file) as stream:
        return stream.read(_SNIFFED)
    return b""


def _opened(file: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(file)) if file.suffix == ".gz" else file.open("rb")


def json_lines(path: Path, reader: Reader) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the object of every line of a JSONL file, or element of an array; gzip is read, too.

    Raises:
        RecordError: A line is not an object; or the file ends in the middle of one, and that is not allowed.
    """
    place, is_array = str(path), start_of(path).startswith(b"[")  # as lm_eval wrote before June 2024
    try:
        with _opened(path) as stream:
            for number, line in enumerate([stream.read()] if is_array else stream, 1):
                place = str(path) if is_array else f"{path}, line {number}"
                try:
                    value = json.loads(line) if line.strip() else []
                except (ValueError, RecursionError) as error:
                    if is_array or stream.read(1):
                        raise RecordError(f"{place}: not JSON ({error}). Repair it, or copy it again.") from error
                    reader.cut(place, "its last line is not whole")
                    return
                for element in value if isinstance(value, list) else [value]:
                    if not isinstance(element, dict):
                        raise RecordError(f"{place}: got {shown(element)}, expected an object.")
                    yield place, element
    except (EOFError, zlib.error) as error:
        reader.cut(place, str(error) or "the compressed file ends too early")


@contextmanager
def sample_errors(place: object, expected: str) -> Iterator[None]:
    """Raise RecordError for what a block cannot take from a sample, which may hold anything, StorageError of a file.

    Args:
        place: File, and line or row.
        expected: What the format has, and what to do.
    """
    try:
        yield
    except SeesawError:
        raise
    except OSError as error:
        raise StorageError(f"{error.filename or place}: {error.strerror or error}. Check the file.") from error
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RuntimeError) as error:
        raise RecordError(f"{place}: {type(error).__name__} {clean(error)[:200]}. Expected {expected}") from error


def number_of(value: object) -> float | None:
    """Return a value as a number, also one that is written as text; NaN: missing or no score; None: no number."""
    text = str(value).strip().lower()
    try:
        number = math.nan if text in _MISSING else _WORDS[text] if text in _WORDS else float(text)
    except ValueError:
        return None
    return number if abs(number) < _MAX_SCORE else math.nan


def metric_columns(values: Mapping[str, object]) -> ItemRow:
    """Return metrics as columns of numbers, and those that are none as `others`."""
    numbers = {name: number_of(value) for name, value in values.items()}
    others = {name: values[name] for name, number in numbers.items() if number is None}
    return {"others": others} | {f"metric:{name}": number for name, number in numbers.items() if number is not None}


def log_probability_metrics(logprobs: Sequence[float], target: int) -> ItemRow:
    """Return `MARGIN` and `LOGLIK` of an item with choices as columns; {} where there is no such target."""
    if not 0 <= target < len(logprobs):
        return {}
    others = [value for at, value in enumerate(logprobs) if at != target]
    margin = {f"metric:{MARGIN}": logprobs[target] - max(others)} if others else {}
    return {f"metric:{LOGLIK}": logprobs[target], **margin}


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


def _read_table(file: Path) -> tuple[pd.DataFrame, str]:
    """Return a CSV or Parquet file as a frame, and its column that names items; the columns of a CSV file are text."""
    try:
        if file.suffix == ".parquet":
            table: pd.DataFrame = pq.ParquetFile(file).read().to_pandas()
        else:
            with file.open(encoding="utf-8-sig", errors="replace") as stream:
                head = stream.readline()
            # An empty cell is missing; "NA" is a word, and "001" is not 1.
            form = {"sep": max(",;\t", key=head.count), "encoding": "utf-8-sig"}
            table = pd.read_csv(file, dtype="str", keep_default_na=False, na_values=[""], **form)  # type: ignore[call-overload]
    except pa.ArrowInvalid as error:
        raise StorageError(f"{file}: cannot be read ({error}). Copy it again.") from error
    except (ValueError, pd.errors.ParserError) as error:
        raise RecordError(f"{file}: no table ({error}), expected CSV with a line of column names.") from error
    if name := next((name for name in _ITEMS if name in table), None):
        return table, name
    raise RecordError(f"{file}: columns {list(map(str, table))[:20]}, expected one of {', '.join(_ITEMS)}. Rename one.")


def table_rows(file: Path, reader: Reader) -> Iterator[ItemRow]:
    """Yield the rows of a table with one row per item, a column of `_ITEMS`, and metrics in columns of numbers.

    Raises:
        RecordError: No column names items, or none holds a metric.
        StorageError: The file cannot be read.
    """
    frame, key = _read_table(file)
    names = [str(name) for name in frame if name not in _OTHERS and name not in reader.fields]
    metrics = {f"metric:{name}": values for name in names if (values := _metric_of(frame[name])) is not None}
    if not metrics:
        words = {name: next(iter(frame[name].dropna()), "") for name in names}
        raise RecordError(
            f"{file}: no column of numbers is a metric, expected at least one such as acc. Other columns begin with "
            f"{shown(words, 200)}."
        )
    asked = [name for name in ("content_hash", *_PROMPTS) if name in frame]
    asked = asked[:1] if "content_hash" in frame else asked
    for at, row in enumerate(frame.to_dict("records")):
        content = hash_of(*(row[name] for name in asked)) if asked else 0
        cells = {str(name): value for name, value in row.items() if value == value and value is not None}
        with sample_errors(f"{file}, row {at + 2}", "a whole number as epoch. Correct the row."):
            is_error = clean(cells.get("error", "")).lower() not in ("", "false", "0")
            yield {
                "task": clean(cells.get("task", "all items")),
                "item": clean(cells.get(key, "")),
                "epoch": int(cells.get("epoch", 1)),
                "content": content,
                "case": content,
                "answer": answer_text(cells.get("answer", "")),
                "invalid": (number_of(cells.get("invalid", 0)) or 0) > 0,
                "state": ERRORED if is_error else "",
                "others": {},
                **{name: values[at] for name, values in metrics.items()},
                **reader.keep(cells),
            }


def _metric_of(column: pd.Series) -> list[float] | None:
    """Return a column as numbers, missing ones among them; None for words, and for numbers that are names as "001"."""
    if pd.api.types.is_numeric_dtype(column):
        numbers = column.astype("float64")
        return list(numbers.where(numbers.abs() < _MAX_SCORE))
    cells = column.fillna("").astype("str").str.strip()
    filled = cells[~cells.str.lower().isin(_MISSING)]
    with_comma = filled[filled.str.contains(",", regex=False)]
    # "0,5" is one half; three digits behind every comma may be thousands.
    if len(with_comma) and filled.str.fullmatch(r"[+-]?\d*(,\d+)?(e[+-]?\d+)?", flags=re.IGNORECASE).all():
        if with_comma.str.fullmatch(r"[+-]?[1-9]\d*,\d{3}").all():
            return None
        cells = cells.str.replace(",", ".", regex=False)
    names = filled.str.fullmatch(r"[+-]?0\d+") | filled.str.lower().isin(("yes", "no"))
    values = [number for number in map(number_of, cells) if number is not None]
    is_metric = len(values) == len(cells) and not names.any() and any(map(math.isfinite, values))
    return values if is_metric else None
