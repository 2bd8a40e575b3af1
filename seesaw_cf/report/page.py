"""`report.html`: what a run found, in the order in which a reader asks, in one file that needs no network."""

from __future__ import annotations

from typing import Any

from seesaw_cf.editors.control_names import compared
from seesaw_cf.page.render import download_csv, render
from seesaw_cf.report import notes
from seesaw_cf.report.conclusion import conclude, lacking
from seesaw_cf.report.page_answers import look_answers
from seesaw_cf.report.page_cases import look_prompts
from seesaw_cf.report.page_forest import about_controls, colours_of, forests
from seesaw_cf.report.page_most import most_affected
from seesaw_cf.report.provenance import recorded, repeat_command
from seesaw_cf.report.results import Results
from seesaw_cf.report.run_tables import page_tables

_SECTIONS = {
    "most": "Who lost most",
    "groups": "Effects by group",
    "look": "Look into it",
    "method": "Method and provenance",
    "downloads": "Tables",
}


def report_page(results: Results) -> str:
    """The page.

    Args:
        results: What the run found.

    Returns:
        HTML; the same run gives the same bytes.
    """
    run = results.manifest
    tables = page_tables(results)
    controls: dict[str, list[str]] = {}
    for editor, control in compared(results.editors, run):
        controls.setdefault(editor, []).append(control)
    values: dict[str, Any] = {
        "title": f"Side effects of editing {run.get('model', {}).get('id', 'a model')}",
        "conclusion": list(conclude(results).items()),
        "lacking": lacking(results),
        "most": most_affected(results, controls),
        "forests": forests(results, controls),
        "about_forest": _ABOUT_FOREST,
        "editors": [(number, name) for name, number in colours_of(results.editors).items()],
        "about_controls": about_controls(controls),
        "look": look_prompts(results.prompts, results.edits, controls) if results.prompts is not None else None,
        "cases": look_answers(results),
        "tables": tables,
        "method": notes.CAUTION,
        "command": repeat_command(run),
        "facts": recorded(run),
        "downloads": [download_csv(table.name, table.csv(), len(table.frame)) for table in tables if len(table.frame)],
    }
    parts = {"most": values["most"], "groups": values["forests"], "look": values["look"]}
    shown = {name: _SECTIONS[name] for name, part in parts.items() if part}
    shown |= {table.name: table.title for table in tables}
    values["sections"] = [*shown.items(), *((name, _SECTIONS[name]) for name in ("method", "downloads"))]
    return render("report.html", values)


_ABOUT_FOREST = (
    "An edit replaces one answer, its true target, by another, its new target. Each line is a group of people who were "
    "not edited. 0 means that the edit left the model's answers about them alone; below 0 the model turned away from "
    "the new target, above 0 towards it. The new target is right about people who hold it, and wrong about those who "
    "hold the true target."
)
