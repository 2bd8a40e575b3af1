"""Writes a comparison: Markdown, CSV and pictures, each file whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.errors import RunFolderError
from seesaw_cf.io.files import write_text
from seesaw_cf.io.sheets import csv_text
from seesaw_cf.io.terminal import wrap
from seesaw_cf.page.findings import said_lines
from seesaw_cf.report.pictures import drawn
from seesaw_cf.study.conclusion import conclude
from seesaw_cf.study.html import comparison_html
from seesaw_cf.study.members import read_members
from seesaw_cf.study.page import comparison_page, gate_table
from seesaw_cf.study.papers import decrease_shares, paper_tables, tables_csv, tables_page
from seesaw_cf.study.tables import TABLES, Comparison, compare


def compare_runs(folders: Sequence[Path], out: str | os.PathLike[str], settings: AuditSettings | None = None) -> str:
    """Compare finished runs and write the comparison.

    Args:
        folders: Run folders, at least two.
        out: Where the files go; see `write_comparison`.
        settings: What is declared for verdicts and differences.

    Returns:
        What a terminal shows.

    Raises:
        RunFolderError: Fewer than two folders, or one is no finished run.
        StorageError: A folder is named twice, or a file could not be written.
    """
    if len(folders) < 2:
        raise RunFolderError(f"compare: got {len(folders)} run, expected at least two. Name more, or report one alone.")
    declared = settings or AuditSettings()
    comparison = compare(read_members(folders, declared), declared, every=True)
    return write_comparison(comparison, Path(out), f"Comparison of {len(folders)} runs")


def write_comparison(
    comparison: Comparison, out: Path, title: str, missing: Sequence[str] = (), declared: Sequence[str] = ()
) -> str:
    """Write `report.html`, `report.md`, `tables.md` (Tables 4, 5 and 8 to 15 of SEESAW-CF), CSV files and pictures.

    Args:
        comparison: The comparison.
        out: Where the files go.
        title: The heading.
        missing: What is not there and why, in sentences.
        declared: What was declared, in sentences.

    Returns:
        What a terminal shows: whether the edits took, what is missing, where the files are, the conclusion.

    Raises:
        StorageError: A file could not be written.
    """
    tables, shares = paper_tables(comparison), decrease_shares(comparison)
    frames = {**comparison.tables, "tables": tables_csv(tables), "decreases": shares}
    frames = {name: frame for name, frame in frames.items() if len(frame)}
    for name, frame in frames.items():
        write_text(out / f"{name}.csv", csv_text(frame))
    figures, without = drawn(lambda: _draw(comparison, shares, out))
    write_text(out / "report.md", comparison_page(comparison, title, [*missing, *filter(None, [without])], declared))
    write_text(out / "report.html", comparison_html(comparison, title, [*missing, *filter(None, [without])], declared))
    write_text(out / "tables.md", tables_page(tables, figures))
    _forget({file.name for file in out.glob("figure_[234]_*.png")} - figures.keys(), out)
    _forget({f"{name}.csv" for name in (*TABLES, "tables", "decreases")} - {f"{name}.csv" for name in frames}, out)
    written = f"Written to {out}:\nreport.html, report.md, tables.md, {len(frames)} CSV files, {len(figures)} pictures."
    summary = "\n".join(said_lines(conclude(comparison, missing)))
    parts = [
        title,
        gate_table(comparison).terminal(),
        *map(wrap, missing),
        written,
        without,
        summary,
    ]
    return "\n\n".join(filter(None, parts))


def _draw(comparison: Comparison, shares: pd.DataFrame, out: Path) -> dict[str, str]:
    from seesaw_cf.study.figures import draw_figures

    return draw_figures(comparison, shares, out)


def _forget(names: Iterable[str], out: Path) -> None:
    """Remove what an earlier report of fewer runs left, and this one does not have."""
    for name in names:
        (out / name).unlink(missing_ok=True)
