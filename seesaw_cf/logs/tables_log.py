"""Logs that are tables: any CSV or Parquet with named columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.logs.log import EvalLog, ItemRow, Reader, answer_text, clean, hash_of, number_of

ITEMS = ("item", "sample_id", "doc_id", "id")
"""Columns of a plain table that name an item, the first that is there."""
_PROMPTS = ("prompt", "input", "question", "text", "sentence")
_OTHERS = (*ITEMS, *_PROMPTS, "task", "epoch", "answer", "target", "content_hash", "invalid")


def _parquet(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise StorageError(f"{file}: no Parquet file that can be read ({error}). Copy it again.") from error


def read_plain(place: Path, files: Sequence[Path], reader: Reader) -> EvalLog:
    """Return a table with one row per item: a column of `ITEMS`, and metrics in columns of numbers.

    Args:
        place: What the user named.
        files: CSV or Parquet files.
        reader: See `Reader`. Each column of numbers without another meaning is a metric.

    Raises:
        RecordError: No column names items, or none holds a metric.
        StorageError: A file cannot be read.
    """
    rows = (row for file in files for row in _plain_rows(file, read_table_file(file), reader))
    return reader.log(place.stem, rows, {})


def read_table_file(file: Path) -> pd.DataFrame:
    """Return a CSV or Parquet file as a frame.

    Raises:
        RecordError: It is no table.
        StorageError: It cannot be read.
    """
    try:
        if file.suffix == ".parquet":
            table: pd.DataFrame = _parquet(file).read().to_pandas()
            return table
        return pd.read_csv(file, dtype=dict.fromkeys(ITEMS, "str"), encoding="utf-8-sig")
    except OSError as error:
        raise StorageError(f"{file}: {error}. Check the file.") from error
    except (ValueError, pd.errors.ParserError) as error:
        raise RecordError(f"{file}: no table ({error}), expected CSV with a line of column names.") from error


def item_column(file: Path, frame: pd.DataFrame) -> str:
    """Return the column of a table that names items.

    Raises:
        RecordError: There is none.
    """
    if name := next((name for name in ITEMS if name in frame), None):
        return name
    raise RecordError(f"{file}: columns {list(map(str, frame))[:20]}, expected one of {', '.join(ITEMS)}. Rename one.")


def _plain_rows(file: Path, frame: pd.DataFrame, reader: Reader) -> Iterator[ItemRow]:
    key = item_column(file, frame)
    numbers = frame.select_dtypes(["number", "bool"])
    metrics = [str(name) for name in numbers if name not in _OTHERS and name not in reader.fields]
    if not metrics:
        raise RecordError(f"{file}: no column of numbers is a metric, expected at least one such as acc.")
    prompts = [name for name in _PROMPTS if name in frame]
    for row in frame.to_dict("records"):
        texts = [row[name] for name in prompts]
        content = hash_of(row["content_hash"]) if "content_hash" in row else hash_of(*texts) if texts else 0
        fields = {name: value for name, value in row.items() if not (isinstance(value, float) and math.isnan(value))}
        yield ItemRow(
            task=clean(row.get("task", "all items")),
            item=clean(row[key]),
            content=content,
            metrics={name: number_of(row[name]) for name in metrics},
            case=content,
            answer=answer_text(fields.get("answer", "")),
            fields=reader.kept({str(name): value for name, value in fields.items()}),
            epoch=int(row.get("epoch", 1)),
            invalid=number_of(row.get("invalid", False)) > 0,
        )
