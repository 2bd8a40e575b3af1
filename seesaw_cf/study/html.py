"""`report.html` of a comparison: the runs side by side on the same axes, in one file that needs no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seesaw_cf.editors.control_names import is_control, split_control
from seesaw_cf.page.findings import HEADS
from seesaw_cf.page.forest import Forest
from seesaw_cf.page.render import csv_files, render
from seesaw_cf.report import notes
from seesaw_cf.report.page_forest import about_controls, colours_of, forests_of, lines_of, scale_of
from seesaw_cf.study.conclusion import conclude
from seesaw_cf.study.members import NAMES, disagreements
from seesaw_cf.study.page import comparison_tables, run_notes
from seesaw_cf.study.tables import Comparison


def comparison_html(comparison: Comparison, title: str, missing: Sequence[str], declared: Sequence[str]) -> str:
    """The page.

    Args:
        comparison: The comparison.
        title: Its heading.
        missing: What is not there and why, in sentences.
        declared: What was declared, in sentences.
    """
    forests, colours, beside = _forests(comparison)
    tables = comparison_tables(comparison)
    contents = [(table.name, table.title) for table in tables]
    contents += [("groups", "Effects by group")] if forests else []
    values: dict[str, Any] = {
        "title": title,
        "conclusion": list(zip(HEADS, conclude(comparison, missing), strict=True)),
        "first": [*missing, *disagreements(comparison.members), *run_notes(comparison)],
        "declared": list(declared),
        "tables": tables,
        "forests": forests,
        "about_controls": beside,
        "editors": [(number, name) for name, number in colours.items()],
        "method": notes.CAUTION,
        "downloads": csv_files(comparison.tables),
        "contents": [*contents, ("method", "Method"), ("downloads", "Tables")],
    }
    return render("comparison.html", values)


def _forests(comparison: Comparison) -> tuple[Sequence[Forest], Mapping[str, int], str]:
    """One line for each editor of each run, its control on the same line; the scale that decides most verdicts."""
    effects = comparison.table("effects_by_group")
    if effects.empty:
        return [], {}, ""
    varying = [name for name in NAMES if effects[name].map(_edited).nunique() > 1] or ["editor"]
    names = ["editor", *(name for name in varying if name != "editor")]
    effects = effects.assign(editor=[_label(row, names) for row in effects[names].to_dict("records")])
    colours = colours_of(dict.fromkeys(effects["editor"]))
    controls: dict[str, list[str]] = {}
    for name in filter(is_control, dict.fromkeys(effects["editor"])):
        controls.setdefault(split_control(name)[1], []).append(name)
    scale = scale_of(comparison.table("verdicts"))
    lines = lines_of(scale, [member.results.floor for member in comparison.members], comparison.settings)
    return forests_of(effects, colours, controls, scale, lines, lambda _: ""), colours, about_controls(controls)


def _edited(name: str) -> str:
    return split_control(name)[1] if is_control(name) else name


def _label(row: Mapping[Any, Any], names: Sequence[str]) -> str:
    """What a line is called; a control keeps its kind around it, so that it is found as that of its line."""
    whole = ", ".join([_edited(row["editor"]), *(str(row[name]) for name in names[1:])])
    return f"{split_control(row['editor'])[0]}({whole})" if is_control(row["editor"]) else whole
