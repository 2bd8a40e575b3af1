"""Writes a report: Markdown, CSV and pictures, each file whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from seesaw_cf.files import write_text
from seesaw_cf.report.markdown import markdown_report
from seesaw_cf.report.results import Results, read_results, relation_name
from seesaw_cf.report.terminal import terminal_report

__all__ = ["write_report"]


def write_report(run_folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> str:
    """Writes the report of a finished run.

    Files: `report.md`, `efficacy.csv`, `edits.csv`, `unscored.csv`; `effects_by_group.csv` and `accuracy.csv` where the
    run asked cross-subject and cross-property prompts; with matplotlib `forest_AXIS.png`, `heatmap_AXIS.png` and
    `accuracy.png`. The same run gives the same bytes.

    Args:
        run_folder: A finished run.
        out: Where the files go; `RUN_FOLDER/report` when None.

    Returns:
        The tables as plain text for a terminal, at most 100 columns wide.

    Raises:
        RunFolderError: Not a run folder, or the run is not finished.
        RecordError: Its tables are damaged.
        StorageError: A file could not be written.
    """
    results = read_results(run_folder)
    folder = Path(run_folder) / "report" if out is None else Path(out)
    tables = _tables(results)
    for name, frame in tables.items():
        write_text(folder / f"{name}.csv", frame.to_csv(index=False, lineterminator="\n"))
    without = ""
    pictures: dict[str, str] = {}
    try:
        from seesaw_cf.report.plots import draw
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "matplotlib":
            raise
        without = "No pictures: matplotlib is not installed. Install it with: pip install 'seesaw_cf[plots]'"
    else:
        pictures = draw(results, folder)
    write_text(folder / "report.md", markdown_report(results, pictures, without))
    written = f"Written to {folder}: report.md, {len(tables)} CSV files, {len(pictures)} pictures."
    return "\n\n".join([terminal_report(results), "\n".join(filter(None, (written, without)))])


def _tables(results: Results) -> dict[str, pd.DataFrame]:
    tables = {
        "effects_by_group": _named(results.effects, ["relation"]),
        "accuracy": _named(results.accuracy, ["edit_relation", "effect_relation"]),
        "efficacy": _named(results.efficacy, ["relation"]),
        "edits": results.edits,
        "unscored": results.unscored,
    }
    return {name: frame for name, frame in tables.items() if len(frame.columns)}


def _named(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Adds the papers' names beside relation ids."""
    return frame.assign(**{f"{name}_name": frame[name].map(relation_name) for name in columns if name in frame})
