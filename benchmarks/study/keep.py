"""Keep finished cells of the study as small run folders: log-probabilities in steps of 1/2048 nat, no wording.

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

from seesaw_cf.base.files import atomic_path
from seesaw_cf.base.tables import SCORES, read_table

KEPT = Path(__file__).with_name("results")
_STEPS = 2048
_WORDING = ("prompt", "subject")
_PAGE = 2**30  # bytes and rows: a column is one page, in which scores before an edit repeat


def pack(scores: pa.Table, file: Path) -> None:
    """Write a score table in as few bytes as Parquet allows."""
    with atomic_path(file) as path:
        pq.write_table(
            scores,
            path,
            compression="brotli",
            compression_level=11,
            row_group_size=len(scores),
            data_page_size=_PAGE,
            max_rows_per_page=_PAGE,
            write_batch_size=_PAGE,
            dictionary_pagesize_limit=_PAGE,
            use_dictionary=[name for name in scores.column_names if name != "logprob"],
        )


def keep(cell: Path, folder: Path) -> None:
    """Write the tables of a finished run into another folder.

    Args:
        cell: The run folder.
        folder: The other one, which is replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scores = read_table(cell / "scores.parquet", SCORES)
    place = scores.column_names.index("logprob")
    steps = np.round(scores["logprob"].to_numpy() * _STEPS) / _STEPS
    scores = scores.set_column(place, SCORES.field("logprob"), [np.minimum(steps, 0.0)])
    for name in _WORDING:
        empty = pa.array([""] * len(scores), SCORES.field(name).type)
        scores = scores.set_column(scores.column_names.index(name), SCORES.field(name), empty)
    pack(scores, folder / "scores.parquet")
    for name in ("edits.parquet", "manifest.json"):
        keep_file(cell / name, folder)


def keep_file(source: Path, folder: Path) -> None:
    """Write a file into another folder, a Parquet file in fewer bytes."""
    with atomic_path(folder / source.name) as file:
        if source.suffix == ".parquet":
            pq.write_table(pq.read_table(source), file, compression="brotli", compression_level=11)
        else:
            file.write_bytes(source.read_bytes())


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
