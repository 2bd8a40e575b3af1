"""Comparing what was built with what is embedded."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.builder_scripts.sample.facts import curated, render
from seesaw_cf.records import sample

__all__ = ["AREAS", "check_embedded", "write_small"]

AREAS = ("science", "social science", "humanities", "arts")  # of fields of work


def write_small(path: Path) -> Path:
    """Write the facts of the small sample as N-Triples."""
    path.write_text(render(*curated(small=True)), encoding="utf-8")
    return path


def check_embedded(built: Path, names: list[str], embedded: Path | None = None) -> None:
    """Files are the embedded ones, byte for byte.

    Another version of pyarrow writes the same tables with other bytes, whose hashes stand in the card: with one, only
    the tables are compared.
    """
    embedded = embedded or sample.path("sample-small")
    shards = [name for name in names if name.endswith(".parquet")]
    writer = pq.read_metadata(embedded / shards[0]).created_by
    same = writer.endswith(f" {pa.__version__}")
    for name in names if same else shards:
        ours, theirs = built / name, embedded / name
        equal = ours.read_bytes() == theirs.read_bytes() if same else pq.read_table(ours) == pq.read_table(theirs)
        assert equal, f"{name}: run build_sample again"
