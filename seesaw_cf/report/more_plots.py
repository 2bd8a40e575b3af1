"""Pictures of the audit (contrasts with corrected intervals), of dose runs and of changed models. Needs matplotlib."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from seesaw_cf.base.terminal import printable
from seesaw_cf.effects.audit import HOLDERS
from seesaw_cf.effects.dose import Curves, summarise_curves
from seesaw_cf.effects.groups import ALL
from seesaw_cf.report.canvas import COLOURS, GREY, MARKERS, add_legend, new_figure, save_picture
from seesaw_cf.report.dose_title import POSSIBLE, mix_name
from seesaw_cf.report.html.forest import Axis
from seesaw_cf.report.moved import block_of, moved_table
from seesaw_cf.report.results import Results, relation_name, sort_groups, sort_relations
from seesaw_cf.report.rows import rows_of
from seesaw_cf.report.text import HOLDS

_LOOKS = {
    "worse off": ("#D55E00", "v"),
    "better off": ("#0072B2", "^"),
    "equivalent": ("#009E73", "s"),
    "undetermined": (GREY, "o"),
}
# Deciding scale -> label of its axis.
_UNITS = {"probability": "contrast in probability", "log-odds": "contrast in log-odds, nats"}
_PANELS = (
    ("S", "editing score", "harmonic mean of efficacy, paraphrase, neighbourhood (0 to 1)"),
    ("D", "D_d of other people", "below 0: less confident in what is right"),
    ("perplexity", "perplexity", "of a fixed text"),
    ("entropy", "entropy of answers, nats", "0 = one answer for all"),
)
# Figure 10 of MEMIT.
_SUCCESS = (
    _PANELS[0],
    ("ES", "efficacy", "edits after which the new target is likelier"),
    ("PS", "generalisation", "the same after paraphrases"),
    ("NS", "specificity", "neighbours whose true target is likelier"),
)


def draw_verdicts(results: Results, folder: Path) -> dict[str, str]:
    """Draw `verdicts_AXIS.png` for every axis with an interval, pooled where there are several relations.

    Returns:
        File name -> description.
    """
    audit = results.audit
    files: dict[str, str] = {}
    if audit is None or "verdict" not in audit.verdicts:
        return files
    verdicts = audit.verdicts[audit.verdicts["low"].notna()]
    pooled = verdicts["relation"] == ALL
    verdicts = verdicts[pooled] if pooled.any() else verdicts
    for axis in dict.fromkeys(verdicts["axis"]):
        name = f"verdicts_{axis}.png"
        save_picture(_verdicts(verdicts[verdicts["axis"] == axis], str(axis), results), folder / name)
        files[name] = f"Contrasts by {axis} with 95 % intervals, and their verdicts"
    return files


def _verdicts(rows: pd.DataFrame, axis: str, results: Results) -> Figure:
    relations = sort_relations(rows["relation"])
    editors = [name for name in results.editors if name in set(rows["editor"])]
    parts = dict(list(rows.groupby(["relation", "editor", "holds", "scale"], sort=False)))
    keys = [key for key in product(relations, editors, HOLDERS, _UNITS) if key in parts]
    columns = min(2, len(keys))
    high = -(-len(keys) // columns)
    most = max(map(len, parts.values()))
    alike = len({scale for *_, scale in keys}) == 1
    figure, panels = new_figure(1.4 + high * (1.3 + 0.3 * most), high, columns, share_x=alike)
    axes = {scale: Axis.around(own["value"], [*own["low"], *own["high"]]) for scale, own in rows.groupby("scale")}
    for panel, key in zip(panels, keys):
        (relation, editor, holds, scale), frame = key, parts[key]
        order = sort_groups(axis, frame["group"])
        _contrasts(panel, frame.set_index("group").loc[order].reset_index(), axes[scale])
        about = "all properties" if relation == ALL else f"edited: {relation_name(relation)}"
        title = f"{printable(editor)[:40]}\n{about}; hold the {HOLDS[holds]}"
        panel.set_title(title, loc="left", fontsize=11, fontweight="bold")
        panel.set_xlabel(_UNITS[scale], fontsize=10)
    for panel in panels[len(keys) :]:
        panel.set_visible(False)
    figure.suptitle(
        f"D_d of a group minus its reference, by {axis}; 95 % intervals, arrow: it goes on; shaded: margin",
        fontsize=12.5,
    )
    handles = [Line2D([], [], color=c, marker=m, linestyle="", label=name) for name, (c, m) in _LOOKS.items()]
    add_legend(figure, handles, 5)
    return figure


def _contrasts(panel: Axes, rows: pd.DataFrame, axis: Axis) -> None:
    """Draw contrasts on an axis; an arrow stands where an interval goes on beyond it."""
    y, margin = -np.arange(len(rows), dtype=float), float(rows["margin"].iloc[0])
    colours = [_LOOKS[label][0] for label in rows["verdict"]]
    panel.axvspan(-margin, margin, color="#e6e6e6", zorder=0)
    panel.axvline(0, color="black", linewidth=1, zorder=1)
    low, high = (rows[end].clip(axis.low, axis.high) for end in ("low", "high"))
    panel.hlines(y, low, high, colors=colours, linewidth=2)
    for end, side, arrow in ((rows["low"] < axis.low, axis.low, "<"), (rows["high"] > axis.high, axis.high, ">")):
        panel.scatter([side] * int(end.sum()), y[end], c=[c for c, cut in zip(colours, end) if cut], marker=arrow)
    for label, (colour, marker) in _LOOKS.items():
        chosen = (rows["verdict"] == label).to_numpy()
        panel.plot(rows["value"][chosen], y[chosen], linestyle="", marker=marker, color=colour, markersize=7)
    counts = [clusters.get("edit", 0) for clusters in rows["clusters"]]
    panel.set_yticks(y, [f"{printable(g)[:22]}  (n={n})" for g, n in zip(rows["group"], counts)])
    panel.set_ylim(-len(rows) + 0.4, 0.6)
    panel.set_xlim(1.08 * axis.low, 1.08 * axis.high)


def dose_figure(curves: Curves, success: bool = False) -> Figure:
    """Draw measures against the number of edits, one line per editor and mix, with 90 % bands.

    Args:
        curves: What is drawn.
        success: Score, efficacy, generalisation and specificity, in place of score, D_d, perplexity and entropy.
    """
    table = summarise_curves(curves)
    figure, panels = new_figure(9.0, 2, 2, share_x=True)
    lines = list(table.groupby(["editor", "mix"], sort=False))
    for panel, (name, label_y, about) in zip(panels, _SUCCESS if success else _PANELS):
        for number, ((editor, mix), rows) in enumerate(lines):
            colour, marker = COLOURS[number % 7], MARKERS[number % 7]
            dashed = "--" if "+" in str(mix) else ":" if " " in str(mix) else "-"
            label = f"{printable(editor)[:16]}, {mix_name(str(mix))}"
            panel.plot(rows["dose"], rows[name], linestyle=dashed, label=label, color=colour, marker=marker)
            low, high = (rows[f"{name}_{end}"].clip(*POSSIBLE[name]) for end in ("low", "high"))
            panel.fill_between(rows["dose"], low, high, color=colour, alpha=0.15)
            bad = rows[rows["collapsed"]]
            panel.plot(bad["dose"], bad[name], "x", color="black", markersize=11, linestyle="")
        levels = [baseline.get(name) for baseline in curves.baseline.values() if isinstance(baseline, dict)]
        for value in sorted({value for value in levels if value is not None})[:3]:
            panel.axhline(value, color="black", linestyle=":", linewidth=1)
        panel.set_xscale("log")
        doses = sorted(set(table["dose"]))
        panel.set_xticks(doses, [f"{dose:,}" for dose in doses])
        panel.set_xticks([], minor=True)
        panel.set_title(about, loc="left", fontsize=10.5)
        panel.set_ylabel(label_y)
        panel.set_xlabel("facts edited together")
        panel.grid(color="#e6e6e6", linewidth=0.8)
    figure.suptitle(
        "Mass editing: mean of repeated samples, 90 % bands; dotted: unedited; cross: collapse alarm", fontsize=12.5
    )
    add_legend(figure, panels[0].get_legend_handles_labels()[0], 4)
    return figure


def draw_moved(results: Results, folder: Path) -> dict[str, str]:
    """Draw `moved.png`; return file name -> description, nothing where no model moved weights of two blocks."""
    table = moved_table(results.manifest)
    if table.empty:
        return {}
    places = table["name"].map(block_of)
    table = table.assign(block=[place[0] for place in places], part=[place[1] for place in places])
    table = table[table["block"].notna() & table["relative"].notna()]
    if table["block"].nunique() < 2:
        return {}
    models = list(dict.fromkeys(table["model"]))
    parts = list(dict.fromkeys(table["part"]))
    figure, panels = new_figure(1.2 + len(models) * (0.6 + 0.3 * len(parts)), len(models), 1)
    blocks = int(table["block"].max()) + 1
    for panel, model in zip(panels, models):
        own = table[table["model"] == model]
        sizes = np.full((len(parts), blocks), np.nan)
        for row in rows_of(own):
            sizes[parts.index(row["part"]), int(row["block"])] = row["relative"]
        image = panel.imshow(sizes, aspect="auto", cmap="viridis", vmin=0)
        panel.set_yticks(range(len(parts)), [printable(part)[:28] for part in parts])
        panel.set_xlabel("block")
        panel.set_title(f"{printable(model)[:40]}: size of the change over that of the weights", loc="left")
        figure.colorbar(image, ax=panel)
    save_picture(figure, folder / "moved.png")
    return {"moved.png": "How far each block's weights moved, over their own size; a description, not a detection"}
