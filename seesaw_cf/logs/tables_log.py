"""Logs that are tables: any CSV or Parquet with named columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.logs.log import ERRORED, EvalLog, ItemRow, Reader, answer_text, clean, hash_of, is_number, number_of

ITEMS = ("item", "sample_id", "doc_id", "id")
"""Columns of a plain table that name an item, the first that is there."""
_PROMPTS = ("prompt", "input", "question", "text", "sentence")
_OTHERS = (*ITEMS, *_PROMPTS, "task", "epoch", "answer", "target", "content_hash", "invalid", "error")


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
    """Return a CSV or Parquet file as a frame; the columns of a CSV file are text.

    Raises:
        RecordError: It is no table.
        StorageError: It cannot be read.
    """
    try:
        if file.suffix == ".parquet":
            table: pd.DataFrame = _parquet(file).read().to_pandas()
            return table
        with file.open(encoding="utf-8-sig", errors="replace") as stream:
            head = stream.readline()
        separator = max(",;\t", key=head.count)
        # An empty cell is missing; "NA" is a word, and "001" is not 1.
        return pd.read_csv(
            file, sep=separator, dtype="str", keep_default_na=False, na_values=[""], encoding="utf-8-sig"
        )
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
    columns = [str(name) for name in frame if name not in _OTHERS and name not in reader.fields]
    metrics = [name for name in columns if _is_metric(frame[name])]
    if not metrics:
        words = {name: next(iter(frame[name].dropna()), "") for name in columns}
        raise RecordError(
            f"{file}: no column of numbers is a metric, expected at least one such as acc. Other columns begin with "
            f"{shown(words, 200)}."
        )
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
            state=ERRORED if clean(fields.get("error", "")).lower() not in ("", "false", "0") else "",
            invalid=number_of(row.get("invalid", False)) > 0,
        )


def _is_metric(column: pd.Series) -> bool:
    """Return whether a column holds numbers, missing ones among them, and no numbers that are names, as "001" is."""
    if pd.api.types.is_numeric_dtype(column):
        return True
    cells = column.dropna().astype("str")
    names = cells.str.fullmatch(r"[+-]?0\d+")
    words = cells.str.strip().str.lower().isin(("yes", "no"))
    return bool(cells.map(number_of).notna().any() and cells.map(is_number).all()) and not bool((names | words).any())
