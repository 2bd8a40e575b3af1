"""The report of a dose run: what happened as more and more facts were edited together."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from seesaw_cf.editors.control_names import first_seed, is_control
from seesaw_cf.effects.dose import BAND, group_doses, read_curves, summarise_curves
from seesaw_cf.report.figures import COLOURS, WIDTH, save_figure, style, svg
from seesaw_cf.report.rows import Manifest, model_name, repeat_command, rows_of
from seesaw_cf.report.screen import LABELS, Part, Screen, ScreenRow, render_page, write_files
from seesaw_cf.report.words import and_list, digits_for, minus, relation_name

MEASURES: Mapping[str, str] = {
    "S": "score (harmonic mean of worked, paraphrases, neighbours)",
    "ES": "edits that worked",
    "PS": "paraphrases",
    "NS": "neighbours still right",
    "D": "D_d of other people, points",
    "perplexity": "perplexity of fixed texts",
    "entropy": "entropy of answers, nats",
}
_ON_SCREEN, _MOST = ("S", "D"), 6  # what the first screen shows, of how many lines
_METHOD = (
    "Facts are edited together, in orders that are drawn (MEMIT, appendix D). A number is the mean over "
    f"orders with a {BAND:.0%} band for facts like these; one order, or orders that share most facts, have none. "
    "The alarm is raised when the perplexity of fixed texts doubles or the entropy of answers halves: scores of a "
    "collapsed model say nothing about bias. “Average of” two relations is both edited apart."
)
_ABOUT = {"dose": "Every measure of each editor, mix and checkpoint.", "dose_groups": "D_d by group."}


def dose_screen(table: pd.DataFrame, model: str) -> Screen:
    """Return what a dose run found: numbers at the first and at the last checkpoint, of editors before their controls.

    Args:
        table: Rows of `seesaw_cf.effects.dose.summarise_curves` by checkpoint, with `line`.
        model: Its name.
    """
    if table.empty:
        return Screen(model, ["Nothing was edited."])
    counts = sorted(set(table["checkpoint"]))
    lines = [own for _, own in table[table["editor"] == table["editor"].map(first_seed)].groupby("line", sort=False)]
    lines.sort(key=lambda own: is_control(own["editor"].iloc[0]))
    sections = dict[str, list[ScreenRow]]()
    for name in _ON_SCREEN:
        rows = [_screen_row(own, name) for own in lines if own[name].notna().any()]
        more = [ScreenRow(f"and {len(rows) - _MOST} more in the table dose")] if len(rows) > _MOST else []
        sections |= {MEASURES[name].capitalize(): rows[:_MOST] + more} if rows else {}
    return Screen(
        about=f"{model}: {and_list([f'{count:,}' for count in counts])} facts edited together",
        finding=list(_finding(table)),
        columns=[f"{count:,} fact{'s' * (count > 1)}" for count in (counts[0], counts[-1])],
        sections=sections,
    )


def _screen_row(own: pd.DataFrame, name: str) -> ScreenRow:
    first, last = own.iloc[0], own.iloc[-1]
    row = ScreenRow(str(last["line"]), [_value(first, name), _value(last, name)])
    return replace(row, badge="COLLAPSED", severity="bad", detail=str(last["alarm"])) if last["collapsed"] else row


def _finding(table: pd.DataFrame) -> Iterator[str]:
    """Yield who collapsed, and how far the score fell where nobody did."""
    alarms = table[table["collapsed"]]
    if len(alarms):
        least = alarms["checkpoint"].min()
        names = sorted(set(alarms.loc[alarms["checkpoint"] == least, "line"]))
        yield f"The model collapses from {least:,} facts on: {and_list(names)}."
    falls = []
    for line, own in table[~table["collapsed"] & table["S"].notna()].groupby("line", sort=False):
        first, last = own.iloc[0], own.iloc[-1]
        if last["S_high"] < first["S_low"]:
            words = f"from {first['S']:.2f} to {last['S']:.2f} with {last['checkpoint']:,} facts"
            falls.append((first["S"] - last["S"], f"{words} ({line})"))
    yield f"The score falls {max(falls)[1]}." if falls else "No fall of the score with the number of facts is shown."


def _value(row: pd.Series, name: str) -> str:
    value, low, high = ((100 if name == "D" else 1) * float(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    digits = 1 if name == "D" else digits_for(value)
    interval = f" [{low:.{digits}f}, {high:.{digits}f}]" if math.isfinite(low) else ""
    return minus(f"{value:.{digits}f}{interval}") if math.isfinite(value) else ""


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
        for colour, (line, own) in zip(cycle(COLOURS), table.groupby("line", sort=False)):
            ax.plot(own["checkpoint"], own[name], marker="o", markersize=3, color=colour, label=str(line))
            ax.fill_between(
                own["checkpoint"], own[f"{name}_low"], own[f"{name}_high"], color=colour, alpha=0.15, linewidth=0
            )
        ax.set_title(MEASURES[name])
        if table["checkpoint"].max() > 20 * table["checkpoint"].min():
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
    manifest: Manifest = curves.manifest
    tables = {"dose": summarise_curves(curves), "dose_groups": group_doses(curves)}
    table, parts, out = tables["dose"], list[Part](), Path(folder) / "report"
    if len(table):
        lines = [f"{editor}, {mix_name(str(mix))}" for editor, mix in zip(table["editor"], table["mix"])]
        table = table.assign(line=lines).sort_values("checkpoint", kind="stable")
        with style():
            figure = dose_figure(table)
        picture = Markup(svg(figure, "Measures by number of facts"))
        parts.append(Part("Dose and response", [_METHOD], {"": [("", picture)]}))
        if pictures:
            save_figure(figure, out / "pictures", "dose")
    screen = dose_screen(table, model_name(manifest))
    page = render_page(screen, parts, tables=_ABOUT, foot=[LABELS], command=repeat_command(manifest))
    write_files(out, page, {"screen": screen.record(), "dose": rows_of(tables["dose"])}, tables)
    return screen.terminal(f"See {out / 'report.html'}")
