"""`report.html`: what a run found, in the order in which a reader asks, in one file that needs no network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from seesaw_cf.editors.control_names import compared
from seesaw_cf.page.render import csv_files, render
from seesaw_cf.report import notes
from seesaw_cf.report.conclusion import conclude, lacking
from seesaw_cf.report.page_answers import look_answers
from seesaw_cf.report.page_cases import look_prompts
from seesaw_cf.report.page_forest import about_controls, colours_of, forests
from seesaw_cf.report.page_most import most_affected
from seesaw_cf.report.page_tables import accuracy, coverage, crossed, efficacy, verdict_tables
from seesaw_cf.report.provenance import recorded, repeat_command
from seesaw_cf.report.results import Results

_SECTIONS = {
    "verdicts": "Verdicts",
    "most": "Who lost most",
    "groups": "Effects by group",
    "look": "Look into it",
    "accuracy": "Other properties",
    "efficacy": "Did the edits take",
    "coverage": "Who was asked about",
    "intersections": "Intersections",
    "method": "Method and provenance",
    "downloads": "Tables",
}


def report_page(results: Results, tables: Mapping[str, pd.DataFrame]) -> str:
    """The page.

    Args:
        results: What the run found.
        tables: Name -> table to download as CSV.

    Returns:
        HTML; the same run gives the same bytes.
    """
    made = results.manifest
    controls: dict[str, list[str]] = {}
    for editor, control in compared(results.editors, made):
        controls.setdefault(editor, []).append(control)
    values: dict[str, Any] = {
        "title": f"Side effects of editing {made.get('model', {}).get('id', 'a model')}",
        "conclusion": list(conclude(results).items()),
        "lacking": lacking(results),
        "verdicts": verdict_tables(results),
        "most": most_affected(results, controls),
        "forests": forests(results, controls),
        "about_forest": _ABOUT_FOREST,
        "editors": [(number, name) for name, number in colours_of(results.editors).items()],
        "about_controls": about_controls(controls),
        "look": look_prompts(results.prompts, results.edits, controls) if results.prompts is not None else None,
        "cases": look_answers(results),
        "tables": [found for make in (accuracy, efficacy, coverage, crossed) if (found := make(results))],
        "method": notes.CAUTION,
        "command": repeat_command(made),
        "facts": recorded(made),
        "downloads": csv_files({name: frame for name, frame in tables.items() if name != "edits" and len(frame)}),
    }
    there = {found.name for found in values["tables"]} | {"method", "downloads"}
    keys = {"verdicts": "verdicts", "most": "most", "groups": "forests", "look": "look"}
    there |= {name for name, key in keys.items() if values[key]}
    values["sections"] = [(name, said) for name, said in _SECTIONS.items() if name in there]
    return render("report.html", values)


_ABOUT_FOREST = (
    "An edit replaces one answer, its true target, by another, its new target. Each line is a group of people who were "
    "not edited. 0 means that the edit left the model's answers about them alone; below 0 the model turned away from "
    "the new target, above 0 towards it. The new target is right about people who hold it, and wrong about those who "
    "hold the true target."
)
