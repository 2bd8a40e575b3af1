"""A small part of the sample as a source, and comparing what was built with what is embedded."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.builder_scripts import BuildOptions
from seesaw_cf.builder_scripts.embedded import COLUMNS, Rows, curated, render
from seesaw_cf.records import load as sample

__all__ = ["AREAS", "SMALL_OPTIONS", "check_embedded", "small_tables", "write_small"]

AREAS = ("science", "social science", "humanities", "arts")  # of fields of work


# For a source of so few people that everybody who holds an answer is asked about.
_EDITS = {"P21": 24, "P101": 32, "P27": 32, "P19": 40, "P103": 32}
SMALL_OPTIONS = replace(
    BuildOptions(edits=_EDITS, per_gender=320, true_per_gender=320, grouped_gender=False),
    min_holders=6,
    per_pair=20,
    neighborhood=6,
)


def small_tables() -> tuple[Rows, Rows, Rows]:
    """The first 320 people of the sample, the values that they hold and the links between them."""
    people, entities, links = curated()
    people = people[:320]
    names = {row["name"] for row in people}
    held = {(kind, value) for row in people for c, (_, kind) in COLUMNS.items() for value in row[c].split("|")}
    own = [row for row in entities if (row["kind"], row["label"]) in held]
    held |= {("country", country) for row in own for country in row["country"].split("|")}
    return (
        people,
        [row for row in entities if (row["kind"], row["label"]) in held],
        [row for row in links if {row["name"], row["other"]} <= names],
    )


def write_small(path: Path) -> Path:
    """Write the facts of the first people of the sample as N-Triples."""
    path.write_text(render(*small_tables()), encoding="utf-8")
    return path


def check_embedded(built: Path, names: list[str]) -> None:
    """Files are the embedded ones, byte for byte.

    Another version of pyarrow writes the same tables with other bytes, whose hashes stand in the card: with one, only
    the tables are compared.
    """
    embedded = sample.path()
    shards = [name for name in names if name.endswith(".parquet")]
    writer = pq.read_metadata(embedded / shards[0]).created_by
    same = writer.endswith(f" {pa.__version__}")
    for name in names if same else shards:
        ours, theirs = built / name, embedded / name
        equal = ours.read_bytes() == theirs.read_bytes() if same else pq.read_table(ours) == pq.read_table(theirs)
        assert equal, f"{name}: run build_sample again"
