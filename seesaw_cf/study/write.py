"""The report of a comparison: the runs side by side on the same axes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.base.terminal import wrap
from seesaw_cf.editors.control_names import is_control, split_control
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.groups import BiasMode
from seesaw_cf.report import notes
from seesaw_cf.report.forms import Report
from seesaw_cf.report.html.findings import Findings, FirstScreen, Legend, PageSection, Panels, findings_page
from seesaw_cf.report.page_forest import about_controls, colours_of, forests_of, lines_of, scale_of
from seesaw_cf.report.table import Table, rows_of
from seesaw_cf.study.conclusion import conclude
from seesaw_cf.study.matrix import ABOUT_MEASURES
from seesaw_cf.study.members import NAMES, disagreements, read_members
from seesaw_cf.study.page import comparison_head, comparison_tables, file_tables, run_notes
from seesaw_cf.study.papers import decrease_shares, paper_tables, tables_csv, tables_page
from seesaw_cf.study.tables import Comparison, compare

# `report.html` of a comparison: the runs side by side on the same axes, in one file that needs no network.


def comparison_html(
    comparison: Comparison, screen: FirstScreen, missing: Sequence[str], declared: Sequence[str]
) -> str:
    """Return the page.

    Args:
        comparison: The comparison.
        screen: What was found.
        missing: What is not there and why, in sentences.
        declared: What was declared, in sentences.
    """
    matrix, *tables = comparison_tables(comparison)
    cautions = [*missing, *disagreements(comparison.members), *run_notes(comparison), *declared]
    sections = [PageSection("first", "Read this first", [], cautions)] if cautions else []
    sections += [PageSection(table.name, table.title, [replace(table, lines=())], table.lines) for table in tables]
    return findings_page(
        Findings(
            screen=screen,
            sections=[*sections, *_forests(comparison)],
            method=[ABOUT_MEASURES, _LAYOUTS, *notes.CAUTION],
            tables=file_tables(comparison),
            first=[matrix],
        )
    )


_LAYOUTS = "The layouts of the papers' tables are in papers.md beside this page; each run has a page of its own."


def _forests(comparison: Comparison) -> list[PageSection]:
    """Return forest plots, a line per editor of each run and its control, on the scale that decides most verdicts."""
    effects = comparison.table("effects_by_group")
    if effects.empty:
        return []
    varying = [name for name in NAMES if effects[name].map(_edited).nunique() > 1] or ["editor"]
    names = ["editor", *(name for name in varying if name != "editor")]
    effects = effects.assign(editor=[_label(row, names) for row in rows_of(effects[names])])
    colours = colours_of(dict.fromkeys(effects["editor"]))
    controls: dict[str, list[str]] = {}
    for name in filter(is_control, dict.fromkeys(effects["editor"])):
        controls.setdefault(split_control(name)[1], []).append(name)
    scale = scale_of(comparison.table("verdicts"))
    lines = lines_of(scale, [member.results.floor for member in comparison.members], comparison.settings)
    forests = forests_of(effects, colours, controls, scale, lines, lambda _: "")
    keys = Legend([(number, 0, name) for name, number in colours.items()], f"{_MARKS} {about_controls(controls)}")
    return [
        PageSection(f"by-{forest.axis_name}", f"Effects by {forest.axis_name}", [keys, Panels(forest.panels)])
        for forest in forests
    ]


_MARKS = (
    "Each line is a group of people who were not edited; 0 means that an edit left the answers about them alone. Dot "
    "and line: effect and 95 % interval (open: no interval). Grey band: noise floor. Dashed: margin. ‹ and ›: the "
    "interval goes on. All lines of a column have one axis; the columns have their own."
)


def _edited(name: str) -> str:
    return split_control(name)[1] if is_control(name) else name


def _label(row: Mapping[Any, Any], names: Sequence[str]) -> str:
    """Return what a line is called; a control keeps its kind around it, so that it is found as its line's."""
    whole = ", ".join([_edited(row["editor"]), *(str(row[name]) for name in names[1:])])
    return f"{split_control(row['editor'])[0]}({whole})" if is_control(row["editor"]) else whole


def compare_runs(
    folders: Sequence[Path],
    out: str | os.PathLike[str],
    settings: AuditSettings | None = None,
    *,
    mode: BiasMode = "crossed",
    pictures: bool = False,
    full: bool = False,
) -> str:
    """Compare finished runs and write the comparison.

    Args:
        folders: Run folders, at least two.
        out: Where the files go; see `write_comparison`.
        settings: What is declared for verdicts and differences.
        mode: See `compare`.
        pictures, full: See `write_comparison`.

    Returns:
        What a terminal shows.

    Raises:
        RunFolderError: Fewer than two folders, one that is not a finished run, or one named twice.
        StorageError: A file could not be written.
    """
    if len(folders) < 2:
        raise RunFolderError(f"compare: got {len(folders)} run, expected at least two. Name more, or report one alone.")
    declared = settings or AuditSettings()
    comparison = compare(read_members(folders, declared), declared, every=True, mode=mode)
    return write_comparison(comparison, Path(out), f"Comparison of {len(folders)} runs", pictures=pictures, full=full)


def write_comparison(
    comparison: Comparison,
    out: Path,
    title: str,
    missing: Sequence[str] = (),
    declared: Sequence[str] = (),
    *,
    pictures: bool = False,
    full: bool = False,
) -> str:
    """Write the report of a comparison, and `papers.md`: Tables 4, 5 and 8 to 15 of SEESAW-CF.

    Args:
        comparison: The comparison.
        out: Where the files go.
        title: The heading.
        missing: What is not there and why, in sentences.
        declared: What was declared, in sentences.
        pictures: Draw Figures 2 to 4 too; needs matplotlib.
        full: Return every table; else one screen.

    Returns:
        Plain text for a terminal.

    Raises:
        MissingExtraError: Pictures without matplotlib.
        StorageError: A file could not be written.
    """
    papers, shares = paper_tables(comparison), decrease_shares(comparison)
    screen = conclude(comparison, title, missing)
    cells = Table("papers", "Cells of papers.md", "", (), tables_csv(papers), brief=False)
    cells_below = Table("decreases", "Cells with decreased confidence", "", (), shares, brief=False)
    tables = file_tables(comparison)
    matrix = [] if full else [replace(tables[0], about="", lines=()).terminal()]
    report = Report(
        head=comparison_head(comparison, screen, missing, declared),
        screen="\n\n".join([screen.terminal(), *matrix, *map(wrap, missing)]),
        tables=[*tables, *(table for table in (cells, cells_below) if len(table.frame))],
        pages={
            "report.html": comparison_html(comparison, screen, missing, declared),
            "papers.md": tables_page(papers, comparison.mode),
        },
        record={"findings": screen.record(), "declared": list(declared)},
        foot=[notes.ABOUT_LABELS, notes.COUNTERFACTUALS],
        draw=partial(_draw, comparison, shares),
    )
    return report.write(out, pictures=pictures, full=full)


def _draw(comparison: Comparison, shares: pd.DataFrame, out: Path) -> dict[str, str]:
    from seesaw_cf.study.figures import draw_figures

    return draw_figures(comparison, shares, out)
