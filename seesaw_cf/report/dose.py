"""The report of a dose run: what happened as more and more facts were edited together."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from seesaw_cf.base.terminal import quantity
from seesaw_cf.editors.control_names import first_seed, is_control, split_control
from seesaw_cf.effects.dose import BAND, group_doses, read_curves, summarise_curves
from seesaw_cf.report.figures import COLOURS, WIDTH, save_figure, style, svg
from seesaw_cf.report.rows import Manifest, model_name, repeat_command, rows_of
from seesaw_cf.report.screen import LABELS, Part, Screen, ScreenRow, render_page, write_files
from seesaw_cf.report.words import FORM_WORDS, and_list, digits_for, minus, relation_name

MEASURES: Mapping[str, str] = {
    "S": "score (harmonic mean of worked, paraphrases, neighbours)",
    "ES": "edits that worked",
    "PS": "paraphrases",
    "NS": "neighbours still right",
    "D": "D_d of other people, points",
    "perplexity": "perplexity of fixed texts",
    "entropy": "entropy of answers, nats",
}
_MOST = 6  # lines of a measure on the first screen
_METHOD = (
    "Facts are edited together, in orders that are drawn (MEMIT, appendix D). A number is the mean over "
    f"orders with a {BAND:.0%} band for facts like these; one order, or orders that share most facts, have none. "
    "The alarm is raised when the perplexity of fixed texts doubles or the entropy of answers halves: scores of a "
    "collapsed model say nothing about bias, and its lines end there. “Average of” two relations is both edited apart."
)
_ABOUT = {"dose": "Every measure of each editor, mix and checkpoint.", "dose_groups": "D_d by group."}


def dose_screen(table: pd.DataFrame, model: str) -> Screen:
    """Return what a dose run found: numbers at the first and at the last checkpoint, of editors before their controls.

    Args:
        table: Rows of `seesaw_cf.effects.dose.summarise_curves` by checkpoint, with `name` and, of a form, `line`.
        model: Its name.
    """
    if table.empty:
        return Screen(model, ["Nothing was edited."])
    counts = sorted(set(table["checkpoint"]))
    shown = sorted({counts[0], counts[-1]})
    lines = [own for _, own in table[table["editor"] == table["editor"].map(first_seed)].groupby("line", sort=False)]
    lines.sort(key=lambda own: is_control(own["editor"].iloc[0]))
    first, *others = forms = list(dict.fromkeys(table["form"]))
    score, scored, sections = _score(table), {*table.loc[table["ES"].notna(), "form"]}, dict[str, list[ScreenRow]]()
    for form, name in [(first, score), *((form, "ES") for form in others), (first, "D")]:
        own = [line for line in lines if line["form"].iloc[0] == form and line[name].notna().any()]
        rows = [_screen_row(line, name, shown) for line in own]
        more = [ScreenRow(f"and {len(rows) - _MOST} more in the table dose")] if len(rows) > _MOST else []
        asked = f", asked {FORM_WORDS[form]}" * (forms != ["plain"])
        sections |= {f"{MEASURES[name].capitalize()}{asked}": rows[:_MOST] + more} if rows else {}
    return Screen(
        about=f"{model}: {and_list([f'{count:,}' for count in counts])} fact{'s' * (counts != [1])} edited together",
        finding=list(_finding(table, score)),
        missing=" ".join(f"No edit has a score, asked {FORM_WORDS[form]}." for form in forms if form not in scored),
        columns=[quantity(count, "fact") for count in shown],
        sections=sections,
    )


def _score(table: pd.DataFrame) -> str:
    """Return what a run is judged by: the score, or where that needs more than was asked the edits that worked."""
    return next((name for name in ("S", "ES") if table[name].notna().any()), "S")


def _screen_row(own: pd.DataFrame, name: str, counts: Sequence[int]) -> ScreenRow:
    last, there = own.iloc[-1], [own[own["checkpoint"] == count] for count in counts]
    row = ScreenRow(str(last["name"]), [_value(rows.iloc[0], name) if len(rows) else "" for rows in there])
    return replace(row, badge="COLLAPSED", severity="bad", detail=str(last["alarm"])) if last["collapsed"] else row


def _finding(table: pd.DataFrame, score: str) -> Iterator[str]:
    """Yield who collapsed, and how far the score fell where nobody did."""
    called = {"S": "score", "ES": "share of edits that worked"}[score]
    alarms = table[table["collapsed"]]
    if len(alarms):
        least = alarms["checkpoint"].min()
        names = sorted(set(alarms.loc[alarms["checkpoint"] == least, "name"]))
        yield f"The model collapses from {quantity(least, 'fact')} on: {and_list(names)}."
    falls, compared = [], False
    for line, own in table[~table["collapsed"] & table[score].notna()].groupby("line", sort=False):
        first, last = own.iloc[0], own.iloc[-1]
        compared = compared or len(own) > 1
        if last[f"{score}_high"] < first[f"{score}_low"]:
            words = f"from {first[score]:.2f} to {last[score]:.2f} with {last['checkpoint']:,} facts"
            falls.append((first[score] - last[score], f"{words} ({line})"))
    if compared:
        yield f"The {called} falls {max(falls)[1]}." if falls else f"No fall of the {called} with more facts is shown."


def _value(row: pd.Series, name: str) -> str:
    if row["collapsed"]:
        return ""
    value, low, high = ((100 if name == "D" else 1) * float(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    digits = 1 if name == "D" else digits_for(value)
    interval = f" [{low:.{digits}f}, {high:.{digits}f}]" if math.isfinite(low) else ""
    return minus(f"{value:.{digits}f}{interval}") if math.isfinite(value) else ""


def mix_name(mix: str) -> str:
    """Return the papers' words for the relations of a mix, or of the average of two."""
    return " + ".join(" ".join(map(relation_name, part.split())) for part in mix.split("+"))


def dose_figure(table: pd.DataFrame, asked: str) -> Figure:
    """Return every measure against the number of facts, a line an editor and mix (MEMIT Figure 10), of one control.

    Args:
        table: See `dose_screen`, of one form.
        asked: How the questions were asked, in words; "" where that goes without saying.
    """
    table, counts = table[table["editor"] == table["editor"].map(first_seed)], sorted(set(table["checkpoint"]))
    table = table.assign(**{name: 100 * table[name] for name in ("D", "D_low", "D_high")})
    there = [name for name in MEASURES if name != "entropy" and table[name].notna().any()] or ["S"]
    height = 1.7 * len(there) + 0.2 * table["name"].nunique()
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(len(there), 1, squeeze=False)[:, 0]
    of = table["editor"].map(lambda editor: split_control(editor)[1] or editor) + table["mix"]
    inks = dict(zip(of.unique(), cycle(COLOURS)))  # a control is dashed, in the ink of its editor
    for ax, name in zip(axes, there, strict=True):
        for line, own in table.groupby("name", sort=False):
            first, colour = own["editor"].iloc[0], inks[of[own.index[0]]]
            dashes = "--" if is_control(first) else "-"
            own = own if name == "perplexity" else own[~own["collapsed"]]
            ax.plot(own["checkpoint"], own[name], f"{dashes}o", markersize=3, color=colour, label=str(line))
            ax.fill_between(
                own["checkpoint"], own[f"{name}_low"], own[f"{name}_high"], color=colour, alpha=0.15, linewidth=0
            )
        ax.set_title(MEASURES[name].partition(" (")[0])
        ax.set_xscale("log" if counts[-1] > 20 * counts[0] else "linear")
        ax.set_xticks(counts, [f"{count:,}" for count in counts], minor=False)
        ax.minorticks_off()
    figure.suptitle(asked, x=0, ha="left")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower left", frameon=False)
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
        fallen, keys = table[table["collapsed"]], ["editor", "mix", "form", "checkpoint"]
        gone = pd.MultiIndex.from_frame(tables["dose_groups"][keys]).isin(pd.MultiIndex.from_frame(fallen[keys]))
        tables["dose_groups"] = tables["dose_groups"][~gone]
        forms = list(table["form"].unique())
        words = {form: f", {FORM_WORDS[form]}" for form in forms[1:]}
        names = [f"{editor}, {mix_name(str(mix))}" for editor, mix in zip(table["editor"], table["mix"])]
        lines = [f"{name}{words.get(form, '')}" for name, form in zip(names, table["form"])]
        table = table.assign(name=names, line=lines).sort_values("checkpoint", kind="stable")
        drawn = list[tuple[str, Markup]]()
        for form in forms:
            asked = f"asked {FORM_WORDS[form]}" * (forms != ["plain"])
            with style():
                figure = dose_figure(table[table["form"] == form], asked)
            drawn.append(("", svg(figure, f"Measures by number of facts {asked}".strip())))
            if pictures:
                save_figure(figure, out / "pictures", "dose" if form == forms[0] else f"dose_{form}")
        parts.append(Part("Dose and response", [_METHOD], {"": drawn}))
    screen = dose_screen(table, model_name(manifest))
    page = render_page(screen, parts, tables=_ABOUT, foot=[LABELS], command=repeat_command(manifest))
    write_files(out, page, {"screen": screen.record(), "dose": rows_of(tables["dose"])}, tables)
    return screen.terminal(f"See {out / 'report.html'}")
