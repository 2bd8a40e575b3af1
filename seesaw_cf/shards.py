"""One file per finished unit of work, and the merge into the two tables of a run.

The scores are the rows of a shard; what happened to its edits travels in the same file's metadata, so that a unit is
there whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.errors import RunFolderError
from seesaw_cf.files import atomic_path, safe_name
from seesaw_cf.tables import SCORES, read_table, write_table
from seesaw_cf.tolerance import above

__all__ = ["EDITS", "merge_shards", "shard_path", "write_shard"]

_KEY = b"seesaw_cf.edits"
_RUN = b"seesaw_cf.run"
_ROWS_PER_GROUP = 250_000

# logprobs: nats of the edit's own prompt. raised: p(target_new) rose. success: p(target_new) > p(target_true) after;
# both by more than the run's noise, see `seesaw_cf.tolerance`.
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
    ]
)


def shard_path(out: Path, editor: str, key: str) -> Path:
    """The file of one unit of one editor."""
    return out / "shards" / safe_name(editor) / f"{safe_name(key)}.parquet"


def write_shard(
    out: Path, editor: str, key: str, scores: pa.Table, edits: Sequence[dict[str, Any]], run: str = ""
) -> None:
    """Writes one finished unit.

    Args:
        out: The run folder.
        editor, key: Which unit.
        scores: Rows of the score table.
        edits: Rows of `EDITS`.
        run: `RunManifest.identity` of the run that the unit belongs to.

    Raises:
        StorageError: The disk is full; no file is left under the shard's name.
    """
    facts = {_KEY: json.dumps(list(edits)), _RUN: run}
    write_table(shard_path(out, editor, key), scores.replace_schema_metadata(facts))


def merge_shards(out: Path, keys: Sequence[tuple[str, str]], run: str = "", nats: float = 0.0) -> None:
    """Writes `scores.parquet` and `edits.parquet` from all shards, in the order of `keys`.

    Args:
        out: The run folder.
        keys: (editor, unit key) of every unit of the run.
        run: `RunManifest.identity` that every shard must carry; "" asks for none.
        nats: Differences up to this are rounding, see `seesaw_cf.tolerance`: such an edit neither raised its target
            nor succeeded.

    Raises:
        RunFolderError: A shard is missing, or belongs to another run.
        RecordError: A shard is damaged (the message names the file to delete).
    """
    missing = [key for key in keys if not shard_path(out, *key).exists()]
    if missing:
        raise RunFolderError(
            f"{out}: {len(missing)} of {len(keys)} units are not finished, first {missing[0]}. "
            "Run the same command again to finish them."
        )
    edits: list[dict[str, Any]] = []
    with atomic_path(out / "scores.parquet") as file, pq.ParquetWriter(file, SCORES, compression="zstd") as writer:
        for table in _groups(_read_shards(out, keys, edits, run)):
            writer.write_table(table)
    write_table(out / "edits.parquet", pa.Table.from_pylist([_judged(row, nats) for row in edits], EDITS))


def _judged(row: dict[str, Any], nats: float) -> dict[str, Any]:
    """The row with `raised` and `success`, None where a side was not scored."""

    def higher(first: str, second: str) -> bool | None:
        one, other = row.get(first), row.get(second)
        return None if one is None or other is None else bool(above(one, other, nats))

    return row | {"raised": higher("new_post", "new_pre"), "success": higher("new_post", "true_post")}


def _read_shards(
    out: Path, keys: Iterable[tuple[str, str]], edits: list[dict[str, Any]], run: str
) -> Iterator[pa.Table]:
    for key in keys:
        file = shard_path(out, *key)
        table = read_table(file, SCORES)
        facts = pq.read_schema(file).metadata or {}
        found = facts.get(_RUN, b"").decode()
        if run and found != run:
            raise RunFolderError(
                f"{file} was written by another run (it carries the identity {found[:12] or 'of none'}, this run is "
                f"{run[:12]}). Delete that file and run the same command again; use one folder for each run."
            )
        edits.extend(json.loads(facts.get(_KEY, b"[]")))
        yield table.replace_schema_metadata(None)


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(part.num_rows for part in held) >= _ROWS_PER_GROUP:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
