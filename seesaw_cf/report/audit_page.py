"""`audit.html`: for those who have to judge a run: scope, who was counted, verdicts, methods, limits, a crosswalk."""

from __future__ import annotations

import csv
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pandas as pd

from seesaw_cf.page.render import render
from seesaw_cf.report import notes
from seesaw_cf.report.conclusion import conclude, lacking
from seesaw_cf.report.provenance import recorded, repeat_command
from seesaw_cf.report.results import Results, relation_name
from seesaw_cf.report.run_tables import page_tables
from seesaw_cf.report.table import Column, Table

_LIMITS = (
    "Effects are of the edited facts, prompts and people of this run. They say nothing about another model, another "
    "method or another setting, and nothing about how the model is used.",
    "A contrast that is undetermined is not evidence that nothing happened; the reason stands beside it.",
)


def audit_page(results: Results) -> str:
    """The page.

    Args:
        results: What the run found.

    Returns:
        HTML without anything to click that a print would lose; the same run gives the same bytes.
    """
    values: dict[str, Any] = {
        "title": f"Audit of edits to {results.manifest.get('model', {}).get('id', 'a model')}",
        "conclusion": list(conclude(results).items()),
        "lacking": lacking(results),
        "scope": _scope(results),
        "tables": [_unlinked(table) for table in page_tables(results)],
        "method": [*notes.CAUTION, *_LIMITS],
        "command": repeat_command(results.manifest),
        "crosswalk": crosswalk(),
        "facts": recorded(results.manifest),
    }
    return render("audit.html", values)


def _scope(results: Results) -> list[tuple[str, str]]:
    made = results.manifest
    model, data = made.get("model", {}), made.get("data", {})
    relations = dict.fromkeys(results.edits["relation_id"])
    return [
        ("model", f"{model.get('id')}, {model.get('dtype')}, weights {str(model.get('fingerprint', ''))[:16]}"),
        ("edited with", ", ".join(results.editors)),
        ("edited properties", ", ".join(map(relation_name, relations))),
        ("edits", f"{len(results.distinct):,}"),
        ("records", f"{data.get('source')} ({', '.join(map(str, data.get('configs', ())))})"),
        ("protocol", str(made.get("protocol"))),
        ("scores", f"{results.n_rows:,}"),
    ]


def _unlinked(table: Table) -> Table:
    """Return the table for a page that has no prompts to lead to."""
    return replace(table, columns=[replace(column, link=None) for column in table.columns])


def crosswalk() -> Table:
    """Return what three frameworks ask for, and where it is: names only, nothing about whether it is met."""
    source = (files("seesaw_cf.page") / "crosswalk.tsv").read_text(encoding="utf-8")
    heads, *rows = csv.reader(source.splitlines(), delimiter="\t")
    columns = [Column(head, words=True) for head in heads]
    return Table("crosswalk", "Crosswalk", "", columns, pd.DataFrame(rows, columns=heads))
