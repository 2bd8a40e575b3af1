"""Pictures: levels, forest plots and heat maps of D_d, bars of accuracy. Needs the extra `plots` (matplotlib)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from seesaw_cf.base.terminal import printable
from seesaw_cf.editors.control_names import is_control, split_control
from seesaw_cf.effects.dose import Curves
from seesaw_cf.effects.groups import ALL
from seesaw_cf.effects.levels import LEVELS
from seesaw_cf.report import text
from seesaw_cf.report.canvas import COLOURS, GREY, MARKERS, add_legend, new_figure, picture_style, save_picture
from seesaw_cf.report.levels import WORDS, level_verdict
from seesaw_cf.report.more_plots import dose_figure, draw_moved, draw_verdicts
from seesaw_cf.report.results import HOLDER, Results, relation_name, sort_groups, sort_pairs, sort_relations
from seesaw_cf.report.rows import AccuracyRow, EffectRow, records, rows_of, with_limits
from seesaw_cf.report.strips import level_counts, level_marks

# The first picture: what happened after the edits whatever the group, each editor above its control (matplotlib).

_TITLES = {
    "other_facts": "Other facts about the edited person: share still right (dotted line: before)",
    "target_true": "People who hold the OLD answer: what the new, false one gained on the right one",
    "target_new": "People who hold the NEW answer: D_d, below 0 less sure of what is right",
}
_BETTER = {"good": COLOURS[2], "same": "black"}  # how the opposite of harm looks -> its colour


def draw_levels(results: Results, folder: Path) -> dict[str, str]:
    """Draw `levels.png`; return file name -> description, nothing where no level was asked."""
    if results.levels.empty:
        return {}
    rows = results.levels[results.levels["decides"]]
    measured = [level for level in LEVELS if (rows["level"] == level).any()]
    lines = int(rows.groupby("level")["editor"].nunique().max())
    figure, panels = new_figure(0.7 + len(measured) * (0.9 + 0.36 * lines), len(measured), 1)
    same_unit: dict[str, Axes] = {}
    for panel, level in zip(panels, measured):
        own = rows[rows["level"] == level]
        first = same_unit.setdefault(own["scale"].iloc[0], panel)
        if first is not panel:
            panel.sharex(first)  # so that lengths can be compared
        _panel(panel, own, results)
    model = printable(results.manifest.get("model", {}).get("id", ""))[-40:]
    figure.suptitle(f"After the edits, whatever the group; 95 % intervals, grey: controls  ({model})", fontsize=12.5)
    save_picture(figure, folder / "levels.png")
    return {"levels.png": "Other facts, and people who hold the old or the new answer, after the edits and controls"}


def _panel(panel: Axes, rows: pd.DataFrame, results: Results) -> None:
    first = rows.iloc[0]
    share, own = first["scale"] == "share", rows_of(rows)
    colour_of = {"worse": COLOURS[1], "better": _BETTER[WORDS[first["level"]].better]}
    marks = {name: (numbers, label) for row in own for name, numbers, label in level_marks(row, results)}
    editors = sorted(marks, key=lambda name: (split_control(name)[1], is_control(name)))
    for y, editor in enumerate(editors):
        (value, low, high), label = marks[editor]
        colour = GREY if is_control(editor) else COLOURS[0]
        panel.hlines(y, low, high, color=colour, linewidth=3)
        panel.plot([value], [y], "o", color=colour, markersize=9, fillstyle="full" if low == low else "none")
        _beside(panel, y, label, colour)
        for verdict in dict.fromkeys(level_verdict(row) for row in own if row["editor"] == editor and row["control"]):
            _beside(panel, y - 0.4, verdict, colour_of.get(verdict.split()[0], "black"))
    panel.set_title(_TITLES[first["level"]], loc="left", fontsize=11, fontweight="bold")
    panel.axvline(
        first["before"] if share else 0, color="black", linewidth=1, linestyle=":" if share else "-", zorder=1
    )
    counts = {row["editor"]: level_counts(row) for row in own}
    names = [f"{printable(name)[:24]}\n{counts.get(name, '')}" for name in editors]
    panel.set_yticks(range(len(editors)), names, fontsize=10)
    panel.set_ylim(len(editors) - 0.5, -0.7)
    if share:
        panel.set_xlim(0, 1.03)
        panel.xaxis.set_major_formatter("{x:.0%}")
    else:
        panel.margins(x=0.15)


def _beside(panel: Axes, y: float, label: str, colour: str) -> None:
    place = ("axes fraction", "data")
    panel.annotate(label, (1.01, y), xycoords=place, va="center", color=colour, fontsize=10, annotation_clip=False)


_DIRECTION = "0 is best: others left alone.  Below 0: less confident in what is right about them.  Above 0: more."


def draw(results: Results, folder: Path, curves: Curves | None = None) -> dict[str, str]:
    """Draw every picture of a report.

    Args:
        results: What the run found.
        folder: Where the files go.
        curves: A dose run to show as well.

    Returns:
        File name -> description, of the pictures written.

    Raises:
        StorageError: A file could not be written.
    """
    files: dict[str, str] = {}
    effects = results.effects[results.effects["holds"] == HOLDER] if len(results.effects) else results.effects
    with picture_style():
        files |= draw_levels(results, folder)
        files |= draw_moved(results, folder)
        for axis in [name for name in dict.fromkeys(effects.get("axis", ())) if name != ALL]:
            frame = effects[effects["axis"].isin((axis, ALL)) & (effects["n_cases"] > 0)]
            if frame.empty:
                continue
            save_picture(_forest(frame, axis, results), folder / f"forest_{axis}.png")
            files[f"forest_{axis}.png"] = f"D_d by {axis} with 95 % intervals, one panel per edited relation"
            save_picture(_heatmap(frame, axis, results), folder / f"heatmap_{axis}.png")
            files[f"heatmap_{axis}.png"] = f"D_d by edited relation and {axis}, one panel per method"
        if results.audit is not None:
            files |= draw_verdicts(results, folder)
        if curves is not None:
            save_picture(dose_figure(curves), folder / "dose.png")
            files["dose.png"] = "Editing score, D_d, perplexity and entropy of answers by number of edits, 90 % bands"
        if len(results.accuracy) and results.accuracy["n"].sum():
            save_picture(_accuracy(results), folder / "accuracy.png")
            files["accuracy.png"] = "Accuracy of other properties before and after the edit, with 95 % intervals"
    return files


def _title(figure: Figure, results: Results, what: str, direction: str) -> None:
    model = printable(results.manifest.get("model", {}).get("id", ""))
    about = f"{what}  ({model[-40:]}, protocol {results.manifest.get('protocol')})"
    figure.suptitle(f"{about}\n{direction}", fontsize=12.5, linespacing=1.5)


def _unit(results: Results) -> str:
    return "D_d in nats" if results.score == "log_odds" else "D_d in probability"


def _editors(results: Results, names: Iterable[str]) -> list[str]:
    there = set(names)
    return [name for name in results.editors if name in there]


def _forest(effects: pd.DataFrame, axis: str, results: Results) -> Figure:
    relations = sort_relations(effects["relation"])
    editors = _editors(results, effects["editor"])
    lists = {name: sort_groups(axis, effects.loc[effects["relation"] == name, "group"]) for name in relations}
    columns = min(2, len(relations))
    rows = -(-len(relations) // columns)
    lines = max(map(len, lists.values())) * max(1.0, 0.55 * len(editors))
    figure, panels = new_figure(1.5 + rows * (1.0 + 0.31 * lines), rows, columns, share_x=True)
    for panel, relation in zip(panels, relations):
        _forest_panel(panel, effects[effects["relation"] == relation], lists[relation], editors)
        panel.set_title(f"edited: {relation_name(relation)}", loc="left", fontweight="bold")
        panel.set_xlabel(f"{_unit(results)}, 95 % interval", fontsize=10)
    for panel in panels[len(relations) :]:
        panel.set_visible(False)
    _title(figure, results, f"Change in confidence about others, by {axis}; n = edits, hollow: no interval", _DIRECTION)
    add_legend(figure, panels[0].get_legend_handles_labels()[0], 5)
    return figure


def _forest_panel(panel: Axes, effects: pd.DataFrame, groups: Sequence[str], editors: Sequence[str]) -> None:
    place = {group: -position for position, group in enumerate(groups)}
    step = 0.7 / len(editors)
    for number, editor in enumerate(editors):
        rows = effects[effects["editor"] == editor]
        y = rows["group"].map(place).to_numpy(float) + step * ((len(editors) - 1) / 2 - number)
        colour, marker = COLOURS[number % 7], MARKERS[number % 7]
        panel.hlines(y, rows["low"], rows["high"], color=colour, linewidth=2)
        hollow = rows["low"].isna().to_numpy()
        name = printable(editor)[:24]
        panel.plot(rows["D"], y, linestyle="", markersize=7, label=name, color=colour, marker=marker)
        panel.plot(rows["D"][hollow], y[hollow], linestyle="", markersize=4, color="white", marker=marker)
    panel.axvline(0, color="black", linewidth=1, zorder=1)
    panel.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.set_yticks(list(place.values()), [_label(effects, group) for group in groups])
    panel.set_ylim(-len(groups) + 0.4, 0.6)
    panel.margins(x=0.08)
    panel.locator_params(axis="x", nbins=6)


def _label(effects: pd.DataFrame, group: str) -> str:
    counts = effects.loc[effects["group"] == group, "n_cases"]
    low, high = int(counts.min()), int(counts.max())
    n = str(high) if low == high else f"{low}\u2013{high}"
    return f"{'all people' if group == ALL else printable(group)[:22]}  (n={n})"


def _heatmap(effects: pd.DataFrame, axis: str, results: Results) -> Figure:
    editors = _editors(results, effects["editor"])
    relations, groups = sort_relations(effects["relation"]), sort_groups(axis, effects["group"])
    limit = 1.8 * float(effects["D"].abs().max()) or 1.0  # half tones only, so that black text stays legible
    figure, panels = new_figure(2.3 + len(editors) * (0.7 + 0.55 * len(relations)), len(editors), 1)
    for panel, editor in zip(panels, editors):
        of_editor = records(effects[effects["editor"] == editor], EffectRow)
        rows = {(row["relation"], row["group"]): row for row in of_editor}
        values = [
            [rows[key]["D"] if (key := (name, group)) in rows else np.nan for group in groups] for name in relations
        ]
        image = panel.imshow(np.array(values), cmap="PuOr_r", vmin=-limit, vmax=limit, aspect="auto")
        _annotate(panel, rows, relations, groups, results.floor.zero_limit(results.score))
        panel.set_yticks(range(len(relations)), [relation_name(name) for name in relations])
        last = editor == editors[-1]
        names = ["all people" if group == ALL else printable(group)[:18] for group in groups]
        panel.set_xticks(range(len(groups)), names if last else [""] * len(groups), rotation=25, ha="right")
        panel.spines[:].set_visible(False)
        panel.tick_params(length=0)
        panel.set_title(printable(editor)[:40], loc="left", fontweight="bold")
    figure.colorbar(image, ax=panels, fraction=0.025, pad=0.01, label=_unit(results))
    _title(
        figure, results, f"Change in confidence about others, by {axis}; n = edits, slanted: no interval", _DIRECTION
    )
    return figure


def _annotate(
    panel: Axes,
    rows: Mapping[tuple[str, str], EffectRow],
    relations: Sequence[str],
    groups: Sequence[str],
    zero_limit: float,
) -> None:
    """Write D_d and the number of cases into the cells; italic without an interval, a dot without people."""
    size = 10 if len(groups) <= 9 else 8
    for y, relation in enumerate(relations):
        for x, group in enumerate(groups):
            row = rows.get((relation, group))
            if row is None:
                panel.text(x, y, "·", ha="center", va="center", color=GREY)
                continue
            label = f"{text.minus(text.number(row['D'], zero_limit))}\nn={row['n_cases']}"
            style = "italic" if row["low"] != row["low"] else "normal"
            inside = panel.text(x, y, label, ha="center", va="center", fontsize=size, style=style)
            inside.set_in_layout(False)  # measuring it would only take time


def _accuracy(results: Results) -> Figure:
    frame = results.accuracy[results.accuracy["n"] > 0]
    cells = {
        ((row["edit_relation"], row["effect_relation"]), row["editor"]): row for row in records(frame, AccuracyRow)
    }
    pairs = sort_pairs(pair for pair, _ in cells)
    editors = _editors(results, (name for _, name in cells))
    bars = len(editors) + 1
    figure, (panel, *_) = new_figure(2.0 + len(pairs) * (0.35 + 0.24 * bars), 1, 1)
    thick = 0.8 / bars
    for position, pair in enumerate(pairs):
        of_pair = {editor: cells[pair, editor] for editor in editors if (pair, editor) in cells}
        before = max(of_pair.values(), key=lambda row: int(row["n"]))
        drawn = [("pre", before, "#bdbdbd")]
        drawn += [("post", row, COLOURS[editors.index(name) % 7]) for name, row in of_pair.items()]
        for number, (phase, row, colour) in enumerate(drawn):
            _bar(panel, row, phase, -position + 0.4 - thick * (number + 0.5), thick, colour)
        if pair != ("all", "all"):
            panel.vlines(
                before["majority"], -position - 0.4, -position + 0.4, color="black", linestyle=":", linewidth=1.5
            )
    panel.set_yticks([-position for position in range(len(pairs))], [_pair_label(pair, cells) for pair in pairs])
    panel.set_xlim(0, 1.12)
    panel.set_xticks(np.linspace(0, 1, 6), [f"{share:.0%}" for share in np.linspace(0, 1, 6)])
    panel.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.set_ylim(0.5 - len(pairs), 0.5)
    panel.set_xlabel("share of edited people for whom the right answer is the first choice, 95 % interval", fontsize=10)
    handles = [Patch(color="#bdbdbd", label="before the edit")]
    handles += [Patch(color=COLOURS[n % 7], label=f"after {printable(e)[:24]}") for n, e in enumerate(editors)]
    (line,) = panel.plot([], [], color="black", linestyle=":", linewidth=1.5, label="best constant answer")
    add_legend(figure, [*handles, line], 5)
    direction = "Higher is better; as high as before the edit = no side effect."
    _title(figure, results, "Accuracy of the edited person's other properties", direction)
    return figure


def _bar(panel: Axes, row: AccuracyRow, phase: str, y: float, thick: float, colour: str) -> None:
    value, low, high = with_limits(row, phase)
    panel.barh(y, value, height=0.92 * thick, color=colour)
    panel.hlines(y, low, high, color="black", linewidth=1.2)
    panel.text(max(value, high) + 0.01, y, f"{value:.0%}", va="center", fontsize=9)


def _pair_label(pair: tuple[str, str], cells: Mapping[tuple[tuple[str, str], str], AccuracyRow]) -> str:
    counts = [int(row["n"]) for (of, _), row in cells.items() if of == pair]
    n = str(max(counts)) if min(counts) == max(counts) else f"{min(counts)}\u2013{max(counts)}"
    name = "all pairs, pooled" if pair == ("all", "all") else " \u2192 ".join(map(relation_name, pair))
    return f"{name}\n(n={n})"
