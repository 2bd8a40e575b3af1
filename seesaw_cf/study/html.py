"""`report.html` of a comparison: the runs side by side on the same axes, in one file that needs no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from seesaw_cf.editors.control_names import is_control, split_control
from seesaw_cf.effects.groups import ALL
from seesaw_cf.page.findings import HEADS
from seesaw_cf.page.forest import Forest
from seesaw_cf.page.render import csv_files, render
from seesaw_cf.page.table import Table, TableRow
from seesaw_cf.report import notes, text
from seesaw_cf.report.page_forest import about_controls, colours_of, forests_of, lines_of, scale_of
from seesaw_cf.report.results import relation_name
from seesaw_cf.stats.verdicts import VERDICTS
from seesaw_cf.study.conclusion import conclude
from seesaw_cf.study.members import NAMES, disagreements
from seesaw_cf.study.page import gate_table, run_notes, runs_table, verdict_table
from seesaw_cf.study.tables import Comparison

_MOST = 200


def comparison_html(comparison: Comparison, title: str, missing: Sequence[str], declared: Sequence[str]) -> str:
    """The page.

    Args:
        comparison: The comparison.
        title: Its heading.
        missing: What is not there and why, in sentences.
        declared: What was declared, in sentences.
    """
    forests, colours, beside = _forests(comparison)
    values: dict[str, Any] = {
        "title": title,
        "conclusion": list(zip(HEADS, conclude(comparison, missing), strict=True)),
        "first": [*missing, *disagreements(comparison.members), *run_notes(comparison)],
        "declared": list(declared),
        "tables": [
            _plain("runs", "What is compared", *runs_table(comparison)),
            *_gate(comparison),
            *_verdicts(comparison),
        ],
        "differences": _differences(comparison),
        "forests": forests,
        "about_controls": beside,
        "editors": [(number, name) for name, number in colours.items()],
        "method": notes.CAUTION,
        "downloads": csv_files(comparison.tables),
    }
    there = [("groups", "Effects by group", forests), ("differences", "Paired differences", values["differences"])]
    values["contents"] = [
        *((table.name, table.title) for table in values["tables"]),
        *((name, label) for name, label, content in there if content),
        *(("method", "Method"), ("downloads", "Tables")),
    ]
    return render("comparison.html", values)


def _plain(name: str, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 4) -> Table:
    return Table(
        name, title, "", [head[:1].upper() + head[1:] for head in heads], left, [TableRow(row) for row in rows]
    )


def _gate(comparison: Comparison) -> list[Table]:
    heads, rows = gate_table(comparison)
    return [_plain("efficacy", "Did the edits take, generalise, stay local?", heads, rows, len(heads) - 5)]


def _verdicts(comparison: Comparison) -> list[Table]:
    heads, rows = verdict_table(comparison)
    return [_plain("verdicts", "Verdicts", heads, rows, len(heads) - len(VERDICTS))] if rows else []


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


def _differences(comparison: Comparison) -> Table | None:
    table = comparison.table("differences")
    if table.empty:
        return None
    claimed = table[table["p_adjusted"] < comparison.settings.alpha].sort_values(["measure", "value"], kind="stable")
    rows = [
        TableRow(
            (
                *(str(row[name]) for name in ("first", "second", "measure")),
                "/".join(map(relation_name, row["relation"].split("/"))),
                "all people" if row["group"] == ALL else str(row["group"]),
                text.minus(f"{text.number(row['value'])} {_limits(row)}"),
                text.p_value(row["p_adjusted"]),
                str(row["n_cases"]),
            )
        )
        for row in claimed.head(_MOST).to_dict("records")
    ]
    tests = int(table["p"].notna().sum())
    about = (
        f"{len(claimed)} of {tests} tests have a corrected p below {comparison.settings.alpha:g}; {len(rows)} are shown"
    )
    heads = ("first", "second", "measure", "property", "group", "first − second", "corrected p", "n")
    return Table("differences", "Paired differences", about, heads, 5, rows)


def _limits(row: Mapping[Any, Any]) -> str:
    return text.interval(row["low"], row["high"]) if pd.notna(row["low"]) else ""
