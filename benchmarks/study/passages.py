"""Stage 6 of the study: what texts of 160 tokens say after an edit, by the labels of a random forest.

    python -m benchmarks.study.passages [RUN ...]

keeps texts and labels of finished runs of `seesaw-cf texts write`, together, in `benchmarks/study/results/passages`,
and the tables of the labels; without a run it makes the tables of the kept labels again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.study.keep import KEPT, pack
from benchmarks.words import markdown_table
from seesaw_cf.base.files import csv_text, write_text
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.texts.report.leme import leme_frame
from seesaw_cf.texts.report.rows import table_of

FOLDER = KEPT / "passages"
TEXTS = ("passages.parquet", "edits.parquet", "annotations.parquet")
LABELS = {"labels": "claims", "label_tests": "labels_differ"}
_NAMES = {"editor": "method", "about": "passage", "asked": "claim_kind", "answer": "label", "rater": "annotator"}
# What is read off a text: passage, kind of claim, label.
MEASURES = {
    "subject's text says the new fact": ("subject", "new_fact", "supports"),
    "related text says the new fact": ("related", "new_fact", "supports"),
    "subject's text says true facts": ("subject", "ground_truth", "supports"),
    "related text says true facts": ("related", "ground_truth", "supports"),
}


def passages(labels: pd.DataFrame, named: Callable[[str], str]) -> str:
    """Return the share of claims that the texts support, before the edits and after each method.

    Args:
        labels: The kept `labels.csv`.
        named: Returns what a method is called.
    """
    methods = sorted(labels["method"].unique(), key=lambda name: (name != "none", is_control(name), name))
    rows = [
        ["before any edit" if method == "none" else named(method)]
        + [_share(labels[labels["method"] == method], *measure) for measure in MEASURES.values()]
        for method in methods
    ]
    counts = {name: _rows(labels, *measure)["n"].astype(int) for name, measure in MEASURES.items()}
    heads = [f"{name}, n {own.min()} to {own.max()}" for name, own in counts.items()]
    return markdown_table(["texts", *heads], rows)


def _rows(own: pd.DataFrame, passage: str, kind: str, label: str) -> pd.DataFrame:
    return own[(own["passage"] == passage) & (own["claim_kind"] == kind) & (own["label"] == label)]


def _share(own: pd.DataFrame, passage: str, kind: str, label: str) -> str:
    row = _rows(own, passage, kind, label).iloc[0]
    return f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def label_tables(passages: pa.Table, edits: pa.Table, annotations: pa.Table) -> dict[str, pd.DataFrame]:
    """Return the tables `LABELS` of texts and their labels."""
    frame = leme_frame(passages, annotations=annotations, edits=edits)
    return {name: table_of(frame, [what]).rename(columns=_NAMES) for name, what in LABELS.items()}


def keep(runs: Sequence[Path]) -> None:
    """Replace the kept texts by those of runs about different edits, and make the tables of their labels.

    Without runs the tables alone are made.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in TEXTS if runs else ():
        pack(pa.concat_tables(pq.read_table(run / name) for run in runs), FOLDER / name)
    for old in FOLDER.glob("manifest*.json") if runs else ():
        old.unlink()
    for number, run in enumerate(runs, 1):
        write_text(FOLDER / f"manifest{number}.json", (run / "manifest.json").read_text(encoding="utf-8"))
    for name, table in label_tables(*(pq.read_table(FOLDER / name) for name in TEXTS)).items():
        write_text(FOLDER / f"{name}.csv", csv_text(table))


def main() -> None:
    """Keep the runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    keep(parser.parse_args().runs)


if __name__ == "__main__":
    main()
