"""Cases to Parquet as they come: a few are held at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.errors import RecordError, SeesawError, StorageError
from seesaw_cf.records.arrow import CASES, cases_to_table
from seesaw_cf.types import Case

CASES_PER_SHARD = 500
CASES_PER_GROUP = 20  # about 80,000 prompts at most


def _chunks(cases: Iterator[Case], size: int, total: int) -> Iterator[pa.Table]:
    """Tables of at most `size` cases, `total` cases in all."""
    while total > 0 and (chunk := list(islice(cases, min(size, total)))):
        yield cases_to_table(chunk)
        total -= len(chunk)


def write_cases(folder: str | os.PathLike[str], config: str, cases: Iterable[Case], count: int) -> None:
    """Write cases as `folder/data/CONFIG/test-00000-of-0000N.parquet`, 500 in each file, the same bytes each time.

    Args:
        folder: A folder that becomes visible only when it is complete; files are written directly.
        config: Name of the config.
        cases: The cases, made while they are written.
        count: How many there are.

    Raises:
        RecordError: There are more or fewer.
        StorageError: The disk is full.
    """
    shards = max(1, -(-count // CASES_PER_SHARD))
    rest = iter(cases)
    total = sum(
        write_rows(folder, config, _chunks(rest, CASES_PER_GROUP, CASES_PER_SHARD), CASES, (number, shards))
        for number in range(shards)
    ) + sum(1 for _ in rest)
    if total != count:
        raise RecordError(
            f"config {config!r}: {total} cases were made, expected {count}. Give the number of the cases: the names of "
            "the files depend on it."
        )


def write_rows(
    folder: str | os.PathLike[str],
    config: str,
    tables: Iterable[pa.Table],
    schema: pa.Schema,
    place: tuple[int, int] = (0, 1),
) -> int:
    """Write tables of one schema into one file, each a row group.

    Args:
        folder, config: Where to.
        tables: Made while they are written.
        schema: Of all of them.
        place: Number of the file, and how many there are.

    Returns:
        The number of rows.

    Raises:
        StorageError: The disk is full.
    """
    path = Path(folder) / "data" / config / f"test-{place[0]:05d}-of-{place[1]:05d}.parquet"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = 0
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for table in tables:
                writer.write_table(table)
                rows += table.num_rows
    except OSError as error:
        if isinstance(error, SeesawError):
            raise
        raise StorageError(
            f"could not write {path}: {error}. Free some space, then run the same command again."
        ) from error
    return rows
