"""The shards of an invented run: what the runner would have left beside its tables."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc

from seesaw_cf.run.edit_table import read_edits, write_edits
from seesaw_cf.run.manifest import RunManifest
from seesaw_cf.run.store import Store
from seesaw_cf.stats.tolerance import tolerance
from seesaw_cf.tables import SCORES, read_table

__all__ = ["write_shards"]


def write_shards(folder: Path) -> Path:
    """Two shards for each editor of a finished run."""
    made = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    store = Store(folder, RunManifest(**made), SCORES)
    scores, edits = read_table(folder / "scores.parquet", SCORES), read_edits(folder / "edits.parquet").to_pylist()
    for editor in dict.fromkeys(row["editor"] for row in edits):
        for part in (0, 1):
            own = pc.and_(pc.equal(scores["editor"], editor), pc.equal(pc.bit_wise_and(scores["case_id"], 1), part))
            rows = [row for row in edits if row["editor"] == editor and row["case_id"] % 2 == part]
            store.write((editor, f"unit-{part}"), scores.filter(own), edits=rows)
    write_edits(folder / "edits.parquet", edits, tolerance(made)[0])
    return folder
