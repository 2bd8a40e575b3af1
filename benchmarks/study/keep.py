"""Keep finished cells of the study as small run folders: scores and ranked answers in steps of 1/2048 nat, no wording.

    python -m benchmarks.study.keep STUDY

copies every finished cell of `STUDY/cells` into `benchmarks/study/results`. Each is a run folder, so that
`seesaw-cf report benchmarks/study/results/smollm2/edits1/memit` and every other command reads it without a model.
Names of people and wordings of prompts are those of `benchmarks/study/edits*.parquet`, by id; they are a third of the
bytes and left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.files import atomic_path, write_text
from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.stats.bootstrap import Floats

KEPT = Path(__file__).with_name("results")
_STEPS = 2048
_WORDING = ("prompt", "subject")
_PAGE = 2**30  # bytes and rows: a column is one page, in which scores before an edit repeat


def pack(table: pa.Table, file: Path) -> None:
    """Write a table in as few bytes as Parquet allows."""
    with atomic_path(file) as path:
        pq.write_table(
            table,
            path,
            compression="brotli",
            compression_level=11,
            row_group_size=len(table),
            data_page_size=_PAGE,
            max_rows_per_page=_PAGE,
            write_batch_size=_PAGE,
            dictionary_pagesize_limit=_PAGE,
            use_dictionary=[column for field in table.schema for column in _dictionary_columns(field)],
        )


def _dictionary_columns(field: pa.Field) -> list[str]:
    """Return the path of a column that a dictionary makes smaller, else nothing."""
    listed = pa.types.is_list(field.type)
    # prompt_id counts up: a dictionary doubles its bytes
    if pa.types.is_floating(field.type.value_type if listed else field.type) or field.name == "prompt_id":
        return []
    return [f"{field.name}.list.element" if listed else field.name]


def round_logprobs(logprobs: Floats) -> Floats:
    """Return log-probabilities in steps."""
    return np.minimum(np.round(logprobs * _STEPS) / _STEPS, 0.0)


def keep(cell: Path, folder: Path) -> None:
    """Write the tables of a finished run into another folder.

    Args:
        cell: The run folder.
        folder: The other one, which is replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scores = read_table(cell / "scores.parquet", SCORES)
    steps = pa.array(round_logprobs(scores["logprob"].to_numpy()), pa.float32())  # holds them exactly, in fewer bytes
    scores = _set_column(scores, "logprob", steps)
    for name in _WORDING:
        scores = _set_column(scores, name, pa.array([""] * len(scores), pa.string()))
    pack(scores, folder / "scores.parquet")
    edits = pq.read_table(cell / "edits.parquet")
    before = edits["candidates_pre"].combine_chunks()
    steps = pa.array(round_logprobs(before.values.to_numpy(zero_copy_only=False)), from_pandas=True)
    before = pa.ListArray.from_arrays(before.offsets, steps, mask=before.is_null())
    pack(_set_column(edits, "candidates_pre", before), folder / "edits.parquet")
    write_text(folder / "manifest.json", (cell / "manifest.json").read_text(encoding="utf-8"))


def _set_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def main() -> None:
    """Keep what is finished."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="the folder of `seesaw-cf study`")
    parser.add_argument("--out", type=Path, default=KEPT)
    given = parser.parse_args()
    for done in sorted(given.study.glob("cells/*/*/single/*/edits.parquet")):
        model, records, _, editor = done.parent.relative_to(given.study / "cells").parts
        keep(done.parent, given.out / model / records / editor)


if __name__ == "__main__":
    main()
