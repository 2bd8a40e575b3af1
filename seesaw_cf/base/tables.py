"""The score table: one row per (case, prompt, target, phase). Everything after scoring is a function of it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.files import atomic_path

_STRINGS = pa.list_(pa.string())

# kind, role, holds, phase: see `seesaw_cf.types`; `gold` marks candidates that are true before the edit.
# logprob: nats, summed over n_tokens target tokens; null when status is not "ok". n_greedy: how many of them are the
# model's first choice after the true tokens before them. n_kept, after an edit: at how many of them the first choice,
# right or wrong, is the same token as before the edit. sitelinks: Wikipedia editions about the
# person, null when unknown. form: see `seesaw_cf.base.types.FORMS`; null is plain.
SCORES: pa.Schema = pa.schema(
    [
        ("editor", pa.string()),
        ("case_id", pa.int64()),
        ("edit_relation", pa.string()),
        ("effect_relation", pa.string()),
        ("kind", pa.string()),
        ("prompt_id", pa.int32()),
        ("template_id", pa.string()),
        ("prompt", pa.string()),
        ("subject_id", pa.string()),
        ("subject", pa.string()),
        ("gender", _STRINGS),
        ("race", _STRINGS),
        ("region", _STRINGS),
        ("holds", pa.string()),
        ("target", pa.string()),
        ("role", pa.string()),
        ("gold", pa.bool_()),
        ("phase", pa.string()),
        ("logprob", pa.float64()),
        ("n_tokens", pa.int32()),
        ("greedy", pa.bool_()),
        ("status", pa.string()),
        ("n_greedy", pa.int32()),
        ("n_kept", pa.int32()),
        ("sitelinks", pa.int64()),
        ("form", pa.string()),
    ]
)
RESULTS = ("manifest.json", "scores.parquet", "edits.parquet")
"""The files of a finished run; the last is written last."""
CONTROL_SEEDS = "control_seeds.parquet"
"""The file beside `scores.parquet` with the same columns: what further seeds of a control led to."""
LATER = ("n_greedy", "n_kept", "sitelinks", "form")
"""Columns of `SCORES` that tables of older versions do not have."""


def table_of(name: str, form: str = "") -> str:
    """Return the file of a run's table for a form that is not its first: "scores_question.parquet"."""
    return name.replace(".parquet", f"_{form}.parquet") if form else name


PARQUET: dict[str, object] = {
    "compression": "zstd",
    "version": "2.6",
    "store_schema": True,
    "write_page_checksum": True,
}
"""How tables are written: the same bytes for the same rows, with checksums that `read_table` verifies."""


def table_bytes(table: pa.Table) -> bytes:
    """Return a table as a Parquet file, the same bytes for the same rows."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **PARQUET)
    return bytes(sink.getvalue().to_pybytes())


def write_table(path: str | os.PathLike[str], table: pa.Table) -> None:
    """Write Parquet whole or not at all, with the same bytes for the same rows.

    Raises:
        StorageError: The disk is full or the folder cannot be written.
    """
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, **PARQUET)


def read_table(
    path: str | os.PathLike[str],
    schema: pa.Schema | None = None,
    *,
    may_lack: Collection[str] = (*LATER, "dataset"),
    **options: object,
) -> pa.Table:
    """Read a Parquet file and check that it has the columns of `schema`.

    Args:
        path: The file.
        schema: What it has; None = anything.
        may_lack: Columns that files of older versions do not have; null there.
        **options: Of `pyarrow.parquet.read_table`.

    Raises:
        StorageError: The file is missing or cannot be read.
        RecordError: The file is not Parquet, is cut off or damaged, or misses columns.
    """
    file = check_path(path)
    with _reading(file):
        table = pq.read_table(file, page_checksum_verification=True, **options)
    for name in may_lack:
        if schema is not None and name in schema.names and name not in table.column_names:
            table = table.append_column(schema.field(name), pa.nulls(len(table), schema.field(name).type))
    missing = [name for name in (schema.names if schema is not None else []) if name not in table.column_names]
    if missing:
        raise RecordError(
            f"{file}: columns {missing} are missing; it has {table.column_names}. "
            "It was written by something else or another version; make it again."
        )
    try:
        return table if schema is None else table.select(schema.names).cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise RecordError(
            f"{file}: a column holds values of another kind ({error}). "
            "It was written by something else or another version; make it again."
        ) from error


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of a Parquet file's columns.

    Raises:
        StorageError, RecordError: As `read_table`.
    """
    file = check_path(path)
    with _reading(file):
        return list(pq.read_schema(file).names)


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise StorageError(f"{file}: no such file. Check the path.") from error
    except MemoryError:  # that of Arrow is one of its errors, too, and says nothing about the file
        raise
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise RecordError(f"{file}: not a whole Parquet file ({error}). Delete it and make it again.") from error
