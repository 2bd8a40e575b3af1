"""Writes a report: Markdown, CSV and pictures, each file whole or not at all."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from seesaw_cf.base.files import csv_text, sweep, write_text
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.dose import Curves, read_curves
from seesaw_cf.report import notes
from seesaw_cf.report.audit import audit_summary
from seesaw_cf.report.findings import RunFindings, find
from seesaw_cf.report.html.render import render
from seesaw_cf.report.markdown import markdown_report
from seesaw_cf.report.page import report_page
from seesaw_cf.report.pictures import drawn
from seesaw_cf.report.provenance import recorded, repeat_command
from seesaw_cf.report.results import Results, read_results, relation_name
from seesaw_cf.report.run_tables import run_tables
from seesaw_cf.report.table import Column, Table
from seesaw_cf.report.terminal import terminal_report
from seesaw_cf.stats.plain import json_text

# `audit.html`: for those who have to judge a run: scope, who was counted, verdicts, methods, limits, a crosswalk.

_LIMITS = (
    "Effects are of the edited facts, prompts and people of this run. They say nothing about another model, another "
    "method or another setting, and nothing about how the model is used.",
    "A contrast that is undetermined or not testable is no evidence that nothing happened; verdicts.csv says why.",
)


def audit_page(results: Results, findings: RunFindings | None = None) -> str:
    """The page.

    Args:
        results: The numbers of a run.
        findings: What they say; computed when None.

    Returns:
        HTML without anything to click that a print would lose; the same run gives the same bytes.
    """
    values: dict[str, Any] = {
        "title": f"Audit of edits to {results.manifest.get('model', {}).get('id', 'a model')}",
        "findings": findings or find(results),
        "scope": _scope(results),
        "tables": [_unlinked(table) for table in run_tables(results)],
        "method": [*notes.CAUTION, *_LIMITS],
        "command": repeat_command(results.manifest),
        "crosswalk": crosswalk(),
        "facts": recorded(results.manifest),
    }
    return render("audit.html", values)


def _scope(results: Results) -> list[tuple[str, str]]:
    manifest = results.manifest
    model, data = manifest.get("model", {}), manifest.get("data", {})
    relations = dict.fromkeys(results.edits["relation_id"])
    return [
        ("model", f"{model.get('id')}, {model.get('dtype')}, weights {str(model.get('fingerprint', ''))[:16]}"),
        ("edited with", ", ".join(results.editors)),
        ("edited properties", ", ".join(map(relation_name, relations))),
        ("edits", f"{len(results.distinct):,}"),
        ("records", f"{data.get('source')} ({', '.join(map(str, data.get('configs', ())))})"),
        ("protocol", str(manifest.get("protocol"))),
        ("scores", f"{results.n_rows:,}"),
    ]


def _unlinked(table: Table) -> Table:
    """Return the table for a page that has no prompts to lead to."""
    return replace(table, columns=[replace(column, link=None) for column in table.columns])


def crosswalk() -> Table:
    """Return what three frameworks ask for, and where it is: names only, nothing about whether it is met."""
    source = (files("seesaw_cf.report.html") / "crosswalk.tsv").read_text(encoding="utf-8")
    heads, *rows = csv.reader(source.splitlines(), delimiter="\t")
    columns = [Column(head, words=True) for head in heads]
    return Table("crosswalk", "Crosswalk", "", columns, pd.DataFrame(rows, columns=heads))


def write_report(
    run_folder: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    settings: AuditSettings | None = None,
    dose: str | os.PathLike[str] | None = None,
    full: bool = True,
) -> str:
    """Write the report of a finished run.

    Files: `report.html` (one page that needs no network), `report.md`, `report.json` and one CSV per table of
    `run_tables`, `edits.csv`; `audit.html` (for a judge's file) and `audit.json` where the run asked cross-subject
    prompts. With matplotlib: `levels.png`, `verdicts_AXIS.png`, `forest_AXIS.png`, `heatmap_AXIS.png`,
    `accuracy.png` and `dose.png`. The same run gives the same bytes.

    Args:
        run_folder: A finished run.
        out: Where the files go; `RUN_FOLDER/report` when None.
        settings: What is declared for the audit: margins, level, correction, families, method, noise floors.
        dose: A folder of `seesaw-cf dose`; its curves are shown as well.
        full: Return every table; else one screen with files and findings.

    Returns:
        Plain text for a terminal, the findings last.

    Raises:
        RunFolderError: Not a run folder, or the run is not finished.
        RecordError: Its tables are damaged.
        StorageError: A file could not be written.
    """
    results = read_results(run_folder, settings=settings)
    curves = None if dose is None else read_curves(dose)
    folder = Path(run_folder) / "report" if out is None else Path(out)
    sweep(folder)
    tables, findings = run_tables(results), find(results)
    write_text(folder / "edits.csv", csv_text(results.edits.drop(columns=["candidates", "candidates_pre"])))
    for table in tables:
        write_text(folder / f"{table.name}.csv", table.csv())
    write_text(
        folder / "report.json",
        json_text({"findings": findings.record()} | {table.name: table.records() for table in tables}),
    )
    pictures, without = drawn(lambda: _draw(results, folder, curves))
    write_text(folder / "report.md", markdown_report(results, pictures, without, curves, findings))
    audited = ""
    if results.audit is not None:
        summary = audit_summary(results.audit, results.manifest, results.score, results.gates)
        whole = summary | {"findings": findings.record(), "levels": results.levels.to_dict("records")}
        write_text(folder / "audit.json", json_text(whole))
        write_text(folder / "audit.html", audit_page(results, findings))
        audited = "audit.html, audit.json, "
    write_text(folder / "report.html", report_page(results, findings))
    counts = f"{len(tables) + 1} CSV files, {len(pictures)} pictures."
    written = f"Written to {folder}:\nreport.html, report.md, report.json, {audited}{counts}"
    more = "" if full else "All tables: report.md, or this command with --full."
    return terminal_report(results, "\n".join(filter(None, (written, without, more))), full, findings)


def _draw(results: Results, folder: Path, curves: Curves | None) -> dict[str, str]:
    from seesaw_cf.report.plots import draw

    return draw(results, folder, curves)
