"""`edits.parquet`: what became of every edit of a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.knowledge import knowledge
from seesaw_cf.stats.simple import above

ASKED_ONLY = "asked only"
"""Status of a case whose fact nobody says a model was edited for, so that no efficacy is claimed."""

# logprobs: nats of the edit's own prompt. raised: p(target_new) rose. success: p(target_new) > p(target_true) after;
# both by more than the run's noise, see `seesaw_cf.stats.simple`. candidates: answers scored before the edit, the
# true target first, candidates_pre their logprobs; the rest: `seesaw_cf.effects.knowledge` of them.
EDITS: pa.Schema = pa.schema(
    [
        ("editor", pa.string()),
        ("case_id", pa.int64()),
        ("relation_id", pa.string()),
        ("effect_relation_id", pa.string()),
        ("subject", pa.string()),
        ("target_true", pa.string()),
        ("target_new", pa.string()),
        ("status", pa.string()),
        ("delta_norm", pa.float64()),
        ("new_pre", pa.float64()),
        ("true_pre", pa.float64()),
        ("new_post", pa.float64()),
        ("true_post", pa.float64()),
        ("raised", pa.bool_()),
        ("success", pa.bool_()),
        ("candidates", pa.list_(pa.string())),
        ("candidates_pre", pa.list_(pa.float64())),
        ("n_candidates", pa.int32()),
        ("true_rank", pa.int32()),
        ("true_share", pa.float64()),
        ("known", pa.bool_()),
    ]
)
_SINCE = EDITS.names[EDITS.get_field_index("candidates") :]


def write_edits(file: Path, rows: Iterable[TableRow], nats: float = 0.0, schema: pa.Schema = EDITS) -> None:
    """Write the table.

    Args:
        file: Where to.
        rows: Of `EDITS`, without what is decided here: whether the edit raised its target and succeeded, and whether
            its fact was known before.
        nats: Differences up to this are rounding, see `seesaw_cf.stats.simple`; such an edit did neither.
        schema: `EDITS` and what else the rows have.

    Raises:
        StorageError: The disk is full.
    """
    write_table(file, pa.Table.from_pylist([_judged(row, nats) for row in rows], schema))


def read_edits(file: Path) -> pa.Table:
    """Read the table; what a run of an older version did not record is null.

    Raises:
        StorageError: The file is missing or cannot be read.
        RecordError: It is damaged, or misses other columns.
    """
    return read_table(file, EDITS, may_lack=_SINCE)


_Row = dict[str, Any]  # of `EDITS`


def _judged(row: _Row, nats: float) -> _Row:
    """Return the row with `raised`, `success` (None where a side was not scored) and what was known before the edit."""

    def higher(first: str, second: str) -> bool | None:
        left, other = row.get(first), row.get(second)
        return None if left is None or other is None else bool(above(left, other, nats))

    row |= {"raised": higher("new_post", "new_pre"), "success": higher("new_post", "true_post")}
    if not (names := row.get("candidates")):  # no true target, or a unit that an older version finished
        return row
    logprobs = np.array(row["candidates_pre"], dtype=np.float64)
    return {**row, **knowledge(logprobs, np.array(names) == row["target_true"], nats)}
