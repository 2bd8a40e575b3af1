"""The report of a dose run: what happened as more and more facts were edited together."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import Any, cast

import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from seesaw_cf.base.files import csv_text, sweep, write_text
from seesaw_cf.effects.dose import BAND, group_doses, read_curves, summarise_curves
from seesaw_cf.report.figures import COLOURS, WIDTH, save_figure, style, svg
from seesaw_cf.report.rows import Manifest, model_name, repeat_command, rows_of
from seesaw_cf.report.screen import LABELS, Part, Screen, ScreenRow, render_page
from seesaw_cf.report.words import and_list, digits_for, minus, relation_name
from seesaw_cf.stats.plain import plain

MEASURES: Mapping[str, str] = {
    "S": "score (harmonic mean of the next three)",
    "ES": "edits that worked",
    "PS": "paraphrases",
    "NS": "neighbours still right",
    "D": "D_d of other people, points",
    "perplexity": "perplexity of fixed texts",
    "entropy": "entropy of answers, nats",
}
_METHOD = (
    "Facts are edited together, on samples drawn again for every repeat (MEMIT, appendix D). A number is the mean over "
    f"samples with a {BAND:.0%} band for facts like these; one sample, or samples that share most facts, have none. "
    "The alarm is raised when the perplexity of fixed texts doubles or the entropy of answers halves: scores of a "
    "collapsed model say nothing about bias. “Average of” two relations is both edited apart."
)
Row = Mapping[str, Any]


def dose_screen(table: pd.DataFrame, model: str) -> Screen:
    """Return what a dose run found: numbers at the smallest and at the largest dose of every editor and mix.

    Args:
        table: Rows of `seesaw_cf.effects.dose.summarise_curves`.
        model: Its name.
    """
    if table.empty:
        return Screen(model, ["Nothing was edited."])
    doses = sorted(set(table["dose"]))
    sections = {}
    for (editor, mix), own in table.groupby(["editor", "mix"], sort=False):
        ordered = own.sort_values("dose")
        first, last = ordered.iloc[0], ordered.iloc[-1]
        rows = [
            ScreenRow(words, [_value(first, name), _value(last, name)])
            for name, words in MEASURES.items()
            if math.isfinite(last[name])
        ]
        if rows and last["collapsed"]:
            rows[-1] = ScreenRow(rows[-1].words, rows[-1].cells, "COLLAPSED", "bad", str(last["alarm"]))
        sections[f"{editor}, {mix_name(str(mix))}"] = rows
    return Screen(
        about=f"{model}: {and_list([f'{dose:,}' for dose in doses])} facts edited together",
        finding=_finding(table),
        columns=[f"{doses[0]:,} facts", f"{doses[-1]:,} facts"],
        sections=sections,
    )


def _finding(table: pd.DataFrame) -> list[str]:
    """Return who collapsed, and how far the score fell where nobody did."""
    sentences = []
    alarms = table[table["collapsed"]]
    if len(alarms):
        least = alarms["dose"].min()
        first = alarms[alarms["dose"] == least]
        names = sorted({f"{row['editor']} on {mix_name(row['mix'])}" for row in rows_of(first)})
        sentences.append(f"The model collapses from {least:,} facts on: {and_list(names)}.")
    falls = []
    for (editor, mix), own in table[~table["collapsed"] & table["S"].notna()].groupby(["editor", "mix"], sort=False):
        first, last = (own.sort_values("dose").iloc[at] for at in (0, -1))
        if last["S_high"] < first["S_low"]:
            words = f"from {first['S']:.2f} to {last['S']:.2f} with {last['dose']:,} facts"
            falls.append((first["S"] - last["S"], f"{words} ({editor}, {mix_name(str(mix))})"))
    fall = f"The score falls {max(falls)[1]}." if falls else "No fall of the score with the number of facts is shown."
    return [*sentences, fall]


def _value(row: Row | pd.Series, name: str) -> str:
    factor = 100 if name == "D" else 1
    value, low, high = (factor * float(row[key]) for key in (name, f"{name}_low", f"{name}_high"))
    if not math.isfinite(value):
        return ""
    digits = digits_for(value)
    return minus(f"{value:.{digits}f}" + (f" [{low:.{digits}f}, {high:.{digits}f}]" if math.isfinite(low) else ""))


def mix_name(mix: str) -> str:
    """Return the papers' words for the relations of a mix, or of the average of two."""
    return " + ".join(" ".join(map(relation_name, part.split())) for part in mix.split("+"))


def dose_figure(table: pd.DataFrame) -> Figure:
    """Return every measure against the number of facts, a line an editor and mix (MEMIT Figure 10)."""
    table = table.assign(**{name: 100 * table[name] for name in ("D", "D_low", "D_high")})
    there = [name for name in MEASURES if name != "entropy" and table[name].notna().any()] or ["S"]
    figure = Figure(figsize=(WIDTH, 1.7 * len(there)), layout="constrained")
    axes = figure.subplots(len(there), 1, squeeze=False)[:, 0]
    for ax, name in zip(axes, there, strict=True):
        for colour, ((editor, mix), own) in zip(cycle(COLOURS), table.groupby(["editor", "mix"], sort=False)):
            own = own.sort_values("dose")
            words = f"{editor}, {mix_name(str(mix))}"
            ax.plot(own["dose"], own[name], marker="o", markersize=3, color=colour, label=words)
            ax.fill_between(own["dose"], own[f"{name}_low"], own[f"{name}_high"], color=colour, alpha=0.15, linewidth=0)
        ax.set_title(MEASURES[name])
        if table["dose"].max() > 20 * table["dose"].min():
            ax.set_xscale("log")
    axes[0].legend(frameon=False)
    return figure


def write_dose_report(folder: str | os.PathLike[str], *, pictures: bool = False) -> str:
    """Write the report of a finished dose run into its folder `report`, and return its first screen.

    Args:
        folder: The run.
        pictures: Write the picture as a file too.

    Raises:
        RunFolderError: Not a finished dose run.
        StorageError: A file could not be written.
    """
    curves = read_curves(folder)
    table, groups = summarise_curves(curves), group_doses(curves)
    manifest = cast(Manifest, curves.manifest)
    screen, out, parts = dose_screen(table, model_name(manifest)), Path(folder) / "report", []
    sweep(out)
    if len(table):
        with style():
            figure = dose_figure(table)
        picture = Markup(svg(figure, "Measures by number of facts"))
        parts.append(Part("Dose and response", [_METHOD], {"": [("", picture)]}))
        if pictures:
            save_figure(figure, out / "pictures", "dose")
    for name, rows in (("dose", table), ("dose_groups", groups)):
        write_text(out / "tables" / f"{name}.csv", csv_text(rows))
    tables = {"dose": "Every measure of each editor, mix and dose.", "dose_groups": "D_d by group."}
    command = repeat_command(manifest)
    write_text(out / "report.html", render_page(screen, parts, tables=tables, foot=[LABELS], command=command))
    record = plain({"screen": screen.record(), "dose": rows_of(table)})
    write_text(out / "report.json", json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    return screen.terminal(f"See {out / 'report.html'}")
