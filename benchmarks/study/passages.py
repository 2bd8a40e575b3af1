"""Stage 6 of the study: what texts of 160 tokens say after an edit, by the annotator that comes with the package.

    python -m benchmarks.study.passages RUN

keeps the labels and the texts of a finished `seesaw-cf leme run` in `benchmarks/study/results/passages`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from benchmarks.study.keep import KEPT, keep_file
from benchmarks.study.sentences import named
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.report.text import markdown_table

FOLDER = KEPT / "passages"
KEPT_FILES = (
    "report/tables/labels.csv",
    "report/tables/label_tests.csv",
    "passages.parquet",
    "edits.parquet",
    "manifest.json",
)
# What is read off a text: passage, kind of claim, label.
MEASURES = {
    "subject's text says the new fact": ("subject", "new_fact", "supports"),
    "related text says the new fact": ("related", "new_fact", "supports"),
    "subject's text says true facts": ("subject", "ground_truth", "supports"),
    "related text says true facts": ("related", "ground_truth", "supports"),
}


def passages(labels: pd.DataFrame) -> str:
    """Return the share of claims that the texts support, before the edits and after each method.

    Args:
        labels: `labels.csv` of the report of the run.
    """
    methods = sorted(labels["method"].unique(), key=lambda name: (name != "none", is_control(name), name))
    rows = [
        ["before any edit" if method == "none" else named(method)]
        + [_share(labels[labels["method"] == method], *measure) for measure in MEASURES.values()]
        for method in methods
    ]
    return markdown_table(["texts", *MEASURES], rows)


def _share(own: pd.DataFrame, passage: str, kind: str, label: str) -> str:
    row = own[(own["passage"] == passage) & (own["claim_kind"] == kind) & (own["label"] == label)].iloc[0]
    return f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}] (n = {row['n']:.0f})"


def main() -> None:
    """Keep the files of the run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    given = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in KEPT_FILES:
        keep_file(given.run / name, FOLDER)


if __name__ == "__main__":
    main()
