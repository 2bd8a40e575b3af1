"""The report of a run, and the page for those who have to judge it."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path

import pandas as pd

from seesaw_cf.base.retrying import stage
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.dose import Curves, read_curves, summarise_curves
from seesaw_cf.report import notes, text
from seesaw_cf.report.audit import audit_summary
from seesaw_cf.report.dose import dose_table
from seesaw_cf.report.findings import find
from seesaw_cf.report.forms import Report
from seesaw_cf.report.html.findings import FactList, Findings, FirstScreen, PageSection, findings_page
from seesaw_cf.report.page import report_page
from seesaw_cf.report.provenance import model_name, recorded, records_name, repeat_command
from seesaw_cf.report.results import Results, read_results, relation_name
from seesaw_cf.report.run_tables import run_tables
from seesaw_cf.report.table import Table, word_column

_DETAILS = ("Known before", "How sure", "Not known")  # lines of the findings that one screen leaves to report.md

# `audit.html`: for those who have to judge a run: scope, who was counted, verdicts, methods, limits, a crosswalk.

_LIMITS = (
    "Effects are of the edited facts, prompts and people of this run. They say nothing about another model, another "
    "method or another setting, and nothing about how the model is used.",
    "A contrast that is undetermined or not testable is no evidence that nothing happened; tables/verdicts.csv says "
    "why.",
)
_WHAT = (
    "A record of what was measured, with how many people and how surely, for those who have to judge it. It certifies "
    "nothing, and it is not a statement of compliance with any law or framework."
)
_CROSSWALK = (
    "Where this document holds what some frameworks ask for, in their words shortened. A crosswalk helps to find "
    "things; whether a framework applies, and whether it is met, this document does not say."
)


def audit_page(results: Results, screen: FirstScreen, tables: Sequence[Table]) -> Findings:
    """Return a page without anything to click that a print would lose."""
    listed = [replace(table, columns=[replace(column, link=None) for column in table.columns]) for table in tables]
    source = crosswalk()
    sections = [
        PageSection("about", "What this document is", [], [_WHAT]),
        PageSection("scope", "Scope", [FactList(_scope(results))]),
        *(PageSection(table.name, table.title, [table], table.sentences[1:]) for table in listed),
        PageSection(source.name, source.title, [source], [_CROSSWALK]),
        PageSection("provenance", "Provenance", [FactList(recorded(results.manifest))]),
    ]
    title = results.words(f"Audit of edits to {model_name(results.manifest)}")
    method = [*notes.cautions(results), *map(results.words, _LIMITS)]
    return Findings(screen, sections, method, repeat_command(results.manifest), title=title)


def _scope(results: Results) -> list[tuple[str, str]]:
    manifest, model = results.manifest, results.manifest.get("model", {})
    relations = dict.fromkeys(results.edits["relation_id"])
    return [
        ("model", f"{model.get('id')}, {model.get('dtype')}, weights {str(model.get('fingerprint', ''))[:16]}"),
        (results.words("edited with"), ", ".join(results.editors)),
        (results.words("edited properties"), ", ".join(map(relation_name, relations))),
        (results.words("edits"), f"{len(results.distinct):,}"),
        ("records", records_name(manifest)),
        ("protocol", str(manifest.get("protocol"))),
        ("scores", f"{results.n_rows:,}"),
    ]


def crosswalk() -> Table:
    """Return what three frameworks ask for, and where it is: names only, nothing about whether it is met."""
    source = (files("seesaw_cf.report.html") / "crosswalk.tsv").read_text(encoding="utf-8")
    heads, *rows = csv.reader(source.splitlines(), delimiter="\t")
    columns = [word_column(head) for head in heads]
    return Table("crosswalk", "Crosswalk", "", columns, pd.DataFrame(rows, columns=heads))


def run_report(results: Results, curves: Curves | None = None, full: bool = False) -> Report:
    """Return the report of a run.

    Args:
        results: The numbers of a run.
        curves: A dose run to show as well.
        full: The screen has every line of the findings.
    """
    screen, tables = find(results), run_tables(results)
    pages = {"report.html": findings_page(report_page(results, screen, tables))}
    record: JsonObject = {"findings": screen.record()}
    if results.audit is not None:
        pages["audit.html"] = findings_page(audit_page(results, screen, tables))
        record["audit"] = audit_summary(results.audit, results.manifest, results.score)
    dose = [] if curves is None else [dose_table(summarise_curves(curves))]
    edits = results.edits.drop(columns=["candidates", "candidates_pre"])
    return Report(
        head=f"{screen.markdown()}\n\n{results.words(notes.READING)}",
        screen=screen.terminal(() if full else _DETAILS),
        tables=[*tables, *dose, Table("edits", results.words("Every edit"), "", (), edits, brief=False)],
        pages=pages,
        record=record | {"manifest": {name: part for name, part in results.manifest.items() if name != "edited"}},
        foot=[notes.ABOUT_LABELS, *([] if results.asked_only else [notes.COUNTERFACTUALS]), _provenance(results)],
        draw=partial(_draw, results, curves),
    )


def write_report(
    run_folder: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    settings: AuditSettings | None = None,
    dose: str | os.PathLike[str] | None = None,
    pictures: bool = False,
    full: bool = False,
) -> str:
    """Write the report of a finished run.

    Files: `report.html` (one page that needs no network), `report.md`, `report.json` (findings, audit, manifest) and
    in the folder `tables` a CSV file of every table; `audit.html` (for a judge's file) where the run asked
    cross-subject prompts. The same run gives the same bytes.

    Args:
        run_folder: A finished run.
        out: Where the files go; `RUN_FOLDER/report` when None.
        settings: What is declared for the audit: margins, level, correction, families, method, noise floors.
        dose: A folder of `seesaw-cf dose`; its curves are shown as well.
        pictures: Draw pictures too, into the folder `pictures`; needs matplotlib.
        full: Return every table; else one screen with files and findings.

    Returns:
        Plain text for a terminal, the findings last.

    Raises:
        RunFolderError: Not a run folder, or the run is not finished.
        RecordError: Its tables are damaged.
        MissingExtraError: Pictures without matplotlib.
        StorageError: A file could not be written.
    """
    results = read_results(run_folder, settings=settings)
    stage("pages")
    report = run_report(results, None if dose is None else read_curves(dose), full)
    folder = Path(run_folder) / "report" if out is None else Path(out)
    return report.write(folder, pictures=pictures, full=full)


def terminal_report(results: Results) -> str:
    """Return a run's tables and findings as wide as the terminal."""
    return "\n\n".join([*(table.terminal() for table in run_tables(results)), find(results).terminal()])


def _provenance(results: Results) -> str:
    steps = f"{repeat_command(results.manifest)}\nseesaw-cf report RUN"
    return f"## Provenance\n\n{notes.PROVENANCE}\n\n{text.fence(steps)}"


def _draw(results: Results, curves: Curves | None, folder: Path) -> Mapping[str, str]:
    from seesaw_cf.report.plots import draw

    return draw(results, folder, curves)
