"""The report of a dose run: what happened as more and more facts were edited together."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from seesaw_cf.base.files import csv_text, sweep, write_text
from seesaw_cf.effects.dose import BAND, Curves, group_doses, read_curves, summarise_curves
from seesaw_cf.report.figures import COLOURS, style, svg
from seesaw_cf.report.provenance import model_name, repeat_command
from seesaw_cf.report.render import LABELS, Part, render_page
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.rows import Manifest, rows_of
from seesaw_cf.report.screen import Screen, ScreenRow
from seesaw_cf.report.words import and_list, minus
from seesaw_cf.stats.plain import plain

MEASURES: Mapping[str, str] = {
    "S": "score (harmonic mean of the next three)",
    "ES": "edits that worked",
    "PS": "paraphrases",
    "NS": "neighbours still right",
    "D": "D_d of other people",
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
        badge = ("COLLAPSED", "bad") if last["collapsed"] else ("", "open")
        rows = [*rows[:-1], ScreenRow(rows[-1].words, rows[-1].cells, *badge, str(last["alarm"]))] if rows else []
        sections[f"{editor}, {mix_name(str(mix))}"] = rows
    return Screen(
        about=f"{model}: {and_list([f'{dose:,}' for dose in doses])} facts edited together",
        finding=_finding(table),
        columns=[f"{doses[0]:,} facts", f"{doses[-1]:,} facts"],
        sections=sections,
    )


def _finding(table: pd.DataFrame) -> list[str]:
    """Return who collapsed, and how far the score and other people moved where nobody did."""
    sentences = []
    alarms = table[table["collapsed"]]
    if len(alarms):
        least = alarms["dose"].min()
        names = sorted(
            {f"{row['editor']} on {mix_name(row['mix'])}" for _, row in alarms[alarms["dose"] == least].iterrows()}
        )
        sentences.append(f"The model collapses from {least:,} facts on: {and_list(names)}.")
    sound = table[~table["collapsed"]]
    falls = []
    for (editor, mix), own in sound.groupby(["editor", "mix"], sort=False):
        ordered = own[own["S"].notna()].sort_values("dose")
        if len(ordered) > 1 and ordered["S_high"].iloc[-1] < ordered["S_low"].iloc[0]:
            falls.append((ordered["S"].iloc[0] - ordered["S"].iloc[-1], editor, mix, ordered))
    if falls:
        _, editor, mix, own = max(falls, key=lambda fall: fall[0])
        ends = f"{own['S'].iloc[0]:.2f} to {own['S'].iloc[-1]:.2f}"
        sentences.append(
            f"The score falls from {ends} with {own['dose'].iloc[-1]:,} facts ({editor}, {mix_name(str(mix))})."
        )
    else:
        sentences.append("No fall of the score with the number of facts is shown.")
    return sentences


def _value(row: Row | pd.Series, name: str) -> str:
    value, low, high = (float(row[key]) for key in (name, f"{name}_low", f"{name}_high"))
    if not math.isfinite(value):
        return ""
    ends = f" [{low:.3g}, {high:.3g}]" if math.isfinite(low) else ""
    return minus(f"{value:.3g}{ends}")


def mix_name(mix: str) -> str:
    """Return the papers' words for the relations of a mix, or of the average of two."""
    return " + ".join(" ".join(map(relation_name, part.split())) for part in mix.split("+"))


def dose_figure(table: pd.DataFrame, names: Sequence[str] = ("S", "ES", "PS", "NS", "D", "perplexity")) -> Figure:
    """Return every measure against the number of facts, a line an editor and mix (MEMIT Figure 10)."""
    there = [name for name in names if table[name].notna().any()]
    figure = Figure(figsize=(6.8, 1.9 * ((len(there) + 1) // 2)), layout="constrained")
    axes = figure.subplots((len(there) + 1) // 2, 2, squeeze=False).ravel()
    for ax, name in zip(axes, there):
        for number, ((editor, mix), own) in enumerate(table.groupby(["editor", "mix"], sort=False)):
            own = own.sort_values("dose")
            colour = COLOURS[number % len(COLOURS)]
            ax.plot(
                own["dose"], own[name], marker="o", markersize=3, color=colour, label=f"{editor}, {mix_name(str(mix))}"
            )
            ax.fill_between(own["dose"], own[f"{name}_low"], own[f"{name}_high"], color=colour, alpha=0.15, linewidth=0)
        ax.set_title(MEASURES[name], loc="left", fontsize=8)
        if table["dose"].max() > 20 * table["dose"].min():
            ax.set_xscale("log")
    for ax in axes[len(there) :]:
        ax.set_visible(False)
    if there:
        axes[0].legend(fontsize=6, frameon=False)
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
    curves: Curves = read_curves(folder)
    table, groups = summarise_curves(curves), group_doses(curves)
    manifest = cast(Manifest, curves.manifest)
    screen, out = dose_screen(table, model_name(manifest)), Path(folder) / "report"
    sweep(out)
    parts = []
    if len(table):
        with style():
            figure = dose_figure(table)
        parts.append(
            Part("Dose and response", [_METHOD], {"": [("", Markup(svg(figure, "Measures by number of facts")))]})
        )
        if pictures:
            (out / "pictures").mkdir(parents=True, exist_ok=True)
            figure.savefig(out / "pictures" / "dose.png", dpi=200)
    tables = {"dose": "Every measure of each editor, mix and dose.", "dose_groups": "D_d by group."}
    for name, rows in (("dose", table), ("dose_groups", groups)):
        write_text(out / "tables" / f"{name}.csv", csv_text(rows))
    settings: dict[str, Any] = cast(dict[str, Any], curves.manifest.get("settings") or {})
    pairs = [",".join(map(str, pair)) for pair in settings.get("pairs", ())]
    options = {"dose": list(settings.get("doses", ())), "pair": pairs}
    options |= {name: settings[name] for name in ("repeats", "people") if name in settings}
    command = repeat_command(manifest, "dose", options)
    write_text(out / "report.html", render_page(screen, parts, tables=tables, foot=[LABELS], command=command))
    record = plain({"screen": screen.record(), "dose": rows_of(table)})
    write_text(out / "report.json", json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    return screen.terminal(f"See {out / 'report.html'}")
