"""Writes a report: Markdown, CSV and pictures, each file whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.dose import Curves, read_curves
from seesaw_cf.io.files import write_text
from seesaw_cf.io.sheets import csv_text
from seesaw_cf.report.audit import audit_summary
from seesaw_cf.report.audit_page import audit_page
from seesaw_cf.report.conclusion import conclude
from seesaw_cf.report.markdown import markdown_report
from seesaw_cf.report.moved import moved_table
from seesaw_cf.report.page import report_page
from seesaw_cf.report.pictures import drawn
from seesaw_cf.report.results import Results, read_results, relation_name
from seesaw_cf.report.success import success_table
from seesaw_cf.report.terminal import terminal_report
from seesaw_cf.stats.plain import plain


def write_report(
    run_folder: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    settings: AuditSettings | None = None,
    dose: str | os.PathLike[str] | None = None,
    full: bool = True,
) -> str:
    """Writes the report of a finished run.

    Files: `report.html` (one page that needs no network), `report.md`, `levels.csv`, `efficacy.csv`, `edits.csv`,
    `knowledge.csv`, `unscored.csv`; `success.csv` (paraphrases, neighbours, consequences, scores); `audit.html` (for a
    judge's file), `audit.json`, `verdicts.csv` and `effects_by_group.csv` where the run asked cross-subject prompts,
    `accuracy.csv` where it asked cross-property prompts; `verdicts_known.csv`, `effects_known.csv` and
    `accuracy_known.csv` of the known facts among them; `excess.csv` with control editors, `editors.csv` with two or
    more, `moved.csv` with models that somebody else edited; with matplotlib `levels.png`, `verdicts_AXIS.png`,
    `forest_AXIS.png`, `heatmap_AXIS.png`, `accuracy.png` and `dose.png`. The same run gives the same bytes.

    Args:
        run_folder: A finished run.
        out: Where the files go; `RUN_FOLDER/report` when None.
        settings: What is declared for the audit: margins, level, correction, families, method, noise floors.
        dose: A folder of `seesaw-cf dose` whose curves are shown as well.
        full: Return every table; else one screen with efficacy, files and conclusion.

    Returns:
        Plain text for a terminal, the conclusion last.

    Raises:
        RunFolderError: Not a run folder, or the run is not finished.
        RecordError: Its tables are damaged.
        StorageError: A file could not be written.
    """
    results = read_results(run_folder, settings=settings)
    curves = None if dose is None else read_curves(dose)
    folder = Path(run_folder) / "report" if out is None else Path(out)
    tables = report_tables(results)
    for name, frame in tables.items():
        write_text(folder / f"{name}.csv", csv_text(frame))
    pictures, without = drawn(lambda: _draw(results, folder, curves))
    write_text(folder / "report.md", markdown_report(results, pictures, without, curves))
    audited = ""
    if results.audit is not None:
        record = audit_summary(results.audit, results.manifest, results.score, results.gates)
        whole = plain(record | {"conclusion": conclude(results), "levels": results.levels.to_dict("records")})
        write_text(folder / "audit.json", json.dumps(whole, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
        write_text(folder / "audit.html", audit_page(results))
        audited = "audit.html, audit.json, "
    write_text(folder / "report.html", report_page(results, tables))
    written = (
        f"Written to {folder}:\nreport.html, report.md, {audited}{len(tables)} CSV files, {len(pictures)} pictures."
    )
    more = "" if full else "All tables: report.md, or this command with --full."
    return terminal_report(results, "\n".join(filter(None, (written, without, more))), full)


def _draw(results: Results, folder: Path, curves: Curves | None) -> dict[str, str]:
    from seesaw_cf.report.plots import draw

    return draw(results, folder, curves)


def report_tables(results: Results) -> dict[str, pd.DataFrame]:
    """Name -> table that a report writes as CSV."""
    audit, nothing = results.audit, pd.DataFrame()
    tables = {
        "levels": results.levels,
        "effects_by_group": _named(results.effects, ["relation"]),
        "verdicts": _named(audit.verdicts, ["relation"]) if audit and "verdict" in audit.verdicts else nothing,
        "verdicts_known": _named(audit.known, ["relation"]) if audit else nothing,
        "excess": _named(audit.excess, ["relation"]) if audit else nothing,
        "editors": _named(audit.pairs, ["relation"]) if audit else nothing,
        "accuracy": _named(results.accuracy, ["edit_relation", "effect_relation"]),
        "efficacy": _named(results.efficacy, ["relation"]),
        "success": success_table(results.success),
        "effects_known": _named(results.known.effects, ["relation"]),
        "accuracy_known": _named(results.known.accuracy, ["edit_relation", "effect_relation"]),
        "knowledge": _named(results.known.facts, ["relation"]),
        "edits": results.edits.drop(columns=["candidates", "candidates_pre"]),
        "moved": moved_table(results.manifest),
        "unscored": results.unscored,
    }
    return {name: frame for name, frame in tables.items() if len(frame.columns)}


def _named(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Adds the papers' names beside relation ids."""
    return frame.assign(**{f"{name}_name": frame[name].map(relation_name) for name in columns if name in frame})
