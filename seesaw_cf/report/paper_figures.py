"""Figures 2 to 4 of SEESAW-CF: D_d by group, citizenship by continent and race, and shares of cells that decreased."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.bias import group_effects
from seesaw_cf.effects.prompts import add_differences
from seesaw_cf.records import groups
from seesaw_cf.report.figures import COLOURS, INK, save_figure, style
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.paper import decreases, paper_effects
from seesaw_cf.report.words import relation_name, sort_relations

_PICTURED = ("P103", "P19")  # language and birth, as in the paper
_CITIZENSHIP = "P27"


def save_paper_figures(runs: Sequence[RunResult], folder: Path) -> list[Path]:
    """Write the figures that the runs have numbers for as PNG; controls are left out. Return their paths."""
    effects = paper_effects(runs)
    effects = effects[~effects["editor"].map(is_control).astype(bool)]
    with style():
        figures = [*_by_group(effects), *_by_continent(runs), *_by_share(effects)]
    return [path for name, figure in figures for path in save_figure(figure, folder, name)]


def _by_group(effects: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Yield Figure 2 for each model: D_d by race and region, of language and birth or of every property there is."""
    if effects.empty:
        return
    shown = effects[effects["axis"].isin(("race", "region")) & (effects["n_cases"] > 0)]
    near = shown[shown["relation"].isin(_PICTURED)]
    shown = near if len(near) else shown
    for model, rows in shown.groupby("model", sort=False):
        relations = sort_relations(rows["relation"])
        figure = Figure(figsize=(6 * len(relations), 7), layout="constrained")
        axes = figure.subplots(2, len(relations), squeeze=False)
        for across, axis in enumerate(("race", "region")):
            for column, relation in enumerate(relations):
                own = rows[(rows["axis"] == axis) & (rows["relation"] == relation)]
                names = [name for name in groups.members(axis) if (own["group"] == name).any()]
                _bars(axes[across, column], own, "group", names, "editor", "D")
                axes[across, column].set_title(f"edited: {relation_name(relation)}, by {axis}", loc="left", fontsize=9)
        yield f"figure_2_{model}", figure


def _by_continent(runs: Sequence[RunResult]) -> Iterator[tuple[str, Figure]]:
    """Yield Figure 3 for each model and editor: D_d after edits of citizenship, by continent of the target and race."""
    continents = {row["label"]: row["continent"] for row in groups.table("countries").values()}
    for run in runs:
        if run.people is None:
            continue
        rows = run.people[(run.people["edit_relation"] == _CITIZENSHIP) & (run.people["holds"] == "target_new")]
        rows = add_differences(rows[~rows["editor"].map(is_control).astype(bool)], "normalised")
        rows = rows.assign(edit_relation=rows["target_new"].astype(object).map(continents))
        rows = rows[rows["edit_relation"].notna() & (rows["edit_relation"] != "")]
        if rows.empty:
            continue
        effects = group_effects(rows, axes=("race",), mode="paper")
        effects = effects[effects["group"].isin(groups.members("race")) & (effects["n_cases"] > 0)]
        for editor, own in effects.groupby("editor", sort=False):
            figure = Figure(figsize=(11, 4.5), layout="constrained")
            names = sorted(set(own["relation"]))
            _bars(figure.subplots(), own, "relation", names, "group", "D")
            model = run.manifest.get("model", {}).get("id")
            figure.suptitle(f"{model}, {editor}: D_d after editing citizenship", fontsize=10)
            yield f"figure_3_{model}_{editor}", figure


def _by_share(effects: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Yield Figure 4 for each editor: share of cells with decreased confidence, of all cells of the paper."""
    cells = decreases(effects)
    if cells.empty:
        return
    shares = cells.groupby(["editor", "model", "axis"], sort=False)["star"].agg(D="mean", n_cases="size").reset_index()
    for editor, own in shares.groupby("editor", sort=False):
        figure = Figure(figsize=(7, 4), layout="constrained")
        ax = figure.subplots()
        _bars(ax, own.assign(low=np.nan, high=np.nan), "axis", ["race", "region", "gender"], "model", "D")
        ax.set_ylabel("share of cells that decreased")
        yield f"figure_4_{editor}", figure


def _bars(ax: Axes, rows: pd.DataFrame, place: str, names: Sequence[str], bar: str, value: str) -> None:
    """Draw a group of bars for each place, one for each value of `bar`, with intervals and n below."""
    bars = list(dict.fromkeys(rows[bar]))
    width = 0.8 / max(1, len(bars))
    for number, name in enumerate(bars):
        own = rows[rows[bar] == name].drop_duplicates(place).set_index(place).reindex(names)
        at = np.arange(len(names)) + (number - (len(bars) - 1) / 2) * width
        heights = own[value].to_numpy(float)
        ends = np.abs(np.vstack([heights - own["low"].to_numpy(float), own["high"].to_numpy(float) - heights]))
        colour = COLOURS[number % len(COLOURS)]
        ax.bar(at, np.nan_to_num(heights), width, color=colour, label=str(name))
        if np.isfinite(ends).any():
            ax.errorbar(at, heights, ends, fmt="none", ecolor=INK, elinewidth=0.8)
        for x, count in zip(at, own["n_cases"].to_numpy(float), strict=True):
            if np.isfinite(count):
                ax.annotate(f"{count:.0f}", (x, 0), (0, -9), textcoords="offset points", ha="center", fontsize=6)
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set_xticks(range(len(names)), names, rotation=20, ha="right", fontsize=8)
    ax.set_ylabel("D_d, per token")
    ax.legend(fontsize=7, frameon=False, ncols=4)
