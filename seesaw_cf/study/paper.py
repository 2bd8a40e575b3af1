"""Tables 4, 5 and 8 to 15 of SEESAW-CF, in its layout and by its arithmetic, from one run or several; Figures 2 to 4.

D_d is per token, an answer is right where the right one is a part of it, the star is a t-test over case means below
0.05, uncorrected, and the last row of Tables 4 and 5 is the mean of the rows above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.base.files import csv_text, write_text
from seesaw_cf.base.terminal import markdown_table
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.accuracy import accuracy_table
from seesaw_cf.effects.answers import answers, mark
from seesaw_cf.effects.bias import group_effects
from seesaw_cf.effects.means import ALL
from seesaw_cf.effects.prompts import add_differences
from seesaw_cf.effects.tables import ScoreFile
from seesaw_cf.records import groups
from seesaw_cf.records.relations import PAIRS, RELATIONS
from seesaw_cf.report import Report
from seesaw_cf.report.figures import COLOURS, INK, save_figure, style
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.rows import Row, model_name, rows_of
from seesaw_cf.report.words import in_order, relation_name, with_interval
from seesaw_cf.stats.simple import tolerance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STAR = 0.05
_AXES = ("race", "region", "gender")  # Tables 10, 12, 14 by method, 11, 13, 15 by model
_COLUMNS = ("table", "panel", "row", "column", "value", "low", "high", "n", "star")
_TITLES = {
    4: "Change of accuracy about P2 after editing P1, in points",
    5: "Accuracy about P2 before and after editing P1, per cent",
    8: "Cells with decreased confidence, by property",
    9: "Cells with decreased confidence, by group",
    **{10 + number: f"Cross-subject D_d by {_AXES[number // 2]}" for number in range(6)},
}
# Every cell of Tables 8 and 9: five properties by group, and no edits of gender by gender.
_PUBLISHED = [
    (relation, axis, group)
    for axis in ("gender", "race", "region")
    for group in groups.members(axis)
    for relation in RELATIONS
    if (relation, axis) != ("P21", "gender")
]
_GROUPS = {group for *_, group in _PUBLISHED}
_PICTURED = ("P103", "P19")  # language and birth, as in the paper
_CITIZENSHIP = "P27"
_ACCURACY = ((4, "change", "editor", "model"), (5, "pre", "model", "before"), (5, "post", "model", "editor"))
_EFFECTS = ["model", "editor", "relation", "axis", "group", "D", "low", "high", "n_cases", "star"]


def paper_tables(runs: Sequence[RunResult]) -> pd.DataFrame:
    """Return every cell of the papers' tables that the runs have numbers for.

    Returns:
        Columns table, panel (model or editor), row, column, value, low, high (bootstrap over cases), n (cases), star.
    """
    effects = paper_effects(runs)
    parts = [part for part in (*_group_cells(effects), *_decreases(effects), *_accuracy(runs)) if len(part)]
    cells = (pd.concat(parts, ignore_index=True) if parts else effects).reindex(columns=list(_COLUMNS))
    return cells.assign(star=cells["star"].eq(True)).sort_values("table", kind="stable", ignore_index=True)


def paper_effects(runs: Sequence[RunResult]) -> pd.DataFrame:
    """Return D_d of people who hold the new target by group, with the papers' test and star.

    Columns: model, editor and those of `seesaw_cf.effects.group_effects` in the mode "paper", and `star`.
    """
    tables = [pd.DataFrame(columns=[*_EFFECTS, "p"])]
    for run in runs:
        people = pd.DataFrame() if run.people is None else run.people[run.people["holds"] == "target_new"]
        if len(people):
            effects = group_effects(add_differences(people, "normalised"), mode="paper")
            tables.append(effects.assign(model=model_name(run.manifest)))
    out = pd.concat(tables[1:] or tables, ignore_index=True)
    return out.assign(star=(out["D"] < 0) & (out["p"] < STAR))


def _group_cells(effects: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield Tables 10 to 15: property and method, or property and model, by group."""
    order = in_order(effects["relation"], RELATIONS, ALL)
    own = effects[effects["group"].isin(_GROUPS) & (effects["n_cases"] > 0)]
    if own.empty:  # nobody could be scored
        return
    own = own.sort_values("relation", key=lambda names: names.map(order.index), kind="stable")
    own = own.rename(columns={"D": "value", "n_cases": "n", "group": "column"})
    for first, panel, name in ((10, "model", "editor"), (11, "editor", "model")):
        rows = own["relation"].map(relation_name) + " / " + own[name]
        yield own.assign(table=first + 2 * own["axis"].map(_AXES.index), panel=own[panel], row=rows)


def published_cells(effects: pd.DataFrame) -> pd.DataFrame:
    """Return every cell of Tables 8 and 9: model, editor, relation, axis, group and `star`, blank ones too."""
    keys = ["relation", "axis", "group"]
    cells = pd.DataFrame(_PUBLISHED, columns=keys)
    cells = effects[["model", "editor"]].drop_duplicates().merge(cells, how="cross")
    cells = cells.merge(effects[["model", "editor", *keys, "star"]], how="left", on=["model", "editor", *keys])
    return cells.assign(star=cells["star"].eq(True))


def _decreases(effects: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield Tables 8 and 9: how many cells decreased, of how many."""
    cells = published_cells(effects)
    for table, names in ((8, cells["relation"].map(relation_name)), (9, cells["group"])):
        both = pd.concat([cells.assign(row=names), cells.assign(row="Total")])
        counts = both.groupby(["editor", "model", "row"], sort=False)["star"].agg(value="sum", n="size").reset_index()
        yield counts.rename(columns={"editor": "panel", "model": "column"}).assign(table=table)


def _accuracy(runs: Sequence[RunResult]) -> Iterator[pd.DataFrame]:
    """Yield Tables 4 and 5; the last row of each is the mean of the rows above, without interval."""
    for run in (run for run in runs if run.facts is not None):
        scores, nats = ScoreFile(run.folder / "scores.parquet"), tolerance(run.manifest)[0]
        marked = mark(answers(scores, mode="paper"), "paper", nats)
        marked = marked.assign(editor=[run.names.get(name, name) for name in marked["editor"]])
        accuracy = accuracy_table(marked, mode="paper").rename(columns={"low": "change_low", "high": "change_high"})
        accuracy = accuracy[accuracy["n"] > 0].assign(model=model_name(run.manifest), before="Pre-edit")
        pairs = list(zip(accuracy["edit_relation"], accuracy["effect_relation"]))
        order = in_order(pairs, PAIRS, (ALL, ALL))
        rows = ["/".join(map(relation_name, pair)) for pair in pairs]
        accuracy = accuracy.assign(row=rows, place=list(map(order.index, pairs))).sort_values("place", kind="stable")
        for table, name, panel, column in _ACCURACY:
            ends = {"value": name, "low": f"{name}_low", "high": f"{name}_high"}
            numbers = {end: 100 * accuracy[of] for end, of in ends.items()}
            cells = accuracy.assign(table=table, panel=accuracy[panel], column=accuracy[column], **numbers)
            yield cells
            means = cells.groupby(["editor", "panel", "column"], sort=False)["value"].agg(value="mean", n="size")
            yield means.reset_index().assign(table=table, row="mean of the rows")


def write_papers(report: Report, folder: Path) -> None:
    """Write the papers' tables of a report as `papers.md` and `tables/papers.csv`, and Figures 2 to 4 as PNG.

    Args:
        report: Of one run, or of several.
        folder: Of the report.

    Raises:
        RunFolderError: Edits were made one after another: their states have no mean.
        StorageError: A file could not be written.
    """
    if report.run.protocol == "sequential":
        raise RunFolderError("--paper: the papers' tables are of edits one at a time. Leave it out.")
    runs = report.parts or (report.run,)
    cells = paper_tables(runs)
    write_text(folder / "papers.md", _page(cells))
    write_text(folder / "tables" / "papers.csv", csv_text(cells))
    effects = paper_effects(runs)
    effects = effects[~effects["editor"].map(is_control).astype(bool)]
    with style():
        for name, figure in (*_by_group(effects), *_by_continent(runs), *_by_share(effects)):
            save_figure(figure, folder / "pictures", name)


def _page(cells: pd.DataFrame) -> str:
    about = (__doc__ or "").partition("\n\n")[2].strip()
    parts = ["# Tables in the layout of SEESAW-CF", " ".join(about.split())]
    for (number, panel), own in cells.groupby(["table", "panel"], sort=False):
        own = own.assign(text=list(map(_text, rows_of(own)))).drop_duplicates(["row", "column"], keep="last")
        wide = own.pivot(index="row", columns="column", values="text").fillna("")
        wide = wide.reindex(index=own["row"].unique(), columns=own["column"].unique()).reset_index()
        parts.append(f"## Table {number}: {_TITLES[int(str(number))]}: {panel}")
        parts.append(markdown_table(["", *map(str, wide.columns[1:])], wide.to_numpy().tolist()))
    return "\n\n".join(parts) + "\n"


def _text(cell: Row) -> str:
    if cell["table"] in (8, 9):
        return f"{cell['value']:.0f} of {cell['n']}"
    return f"{with_interval(cell, digits=1 if cell['table'] in (4, 5) else 3, unit='*' * cell['star'])} n={cell['n']}"


# Figures 2 to 4: D_d by group, citizenship by continent and race, and shares of cells that decreased.


def _by_group(effects: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Yield Figure 2 for each model: D_d by race and region, of language and birth or of every property there is."""
    shown = effects[effects["axis"].isin(("race", "region")) & (effects["n_cases"] > 0)]
    near = shown[shown["relation"].isin(_PICTURED)]
    for model, rows in (near if len(near) else shown).groupby("model", sort=False):
        relations = in_order(rows["relation"], RELATIONS, ALL)
        figure, axes = _subplots(2, len(relations), (6 * len(relations), 7))
        for ax, (axis, relation) in zip(axes, product(("race", "region"), relations)):
            own = rows[(rows["axis"] == axis) & (rows["relation"] == relation)]
            names = [name for name in groups.members(axis) if (own["group"] == name).any()]
            _bars(ax, own, "group", names, "editor")
            ax.set_title(f"edited: {relation_name(relation)}, by {axis}", loc="left", fontsize=9)
        yield f"figure_2_{model}", figure


def _by_continent(runs: Sequence[RunResult]) -> Iterator[tuple[str, Figure]]:
    """Yield Figure 3 for each model and editor: D_d after edits of citizenship, by continent of the target and race."""
    continents = {row["label"]: row["continent"] for row in groups.table("countries").values() if row["continent"]}
    for run in runs:
        if run.people is None:
            continue
        rows = run.people[(run.people["edit_relation"] == _CITIZENSHIP) & (run.people["holds"] == "target_new")]
        rows = add_differences(rows[~rows["editor"].map(is_control).astype(bool)], "normalised")
        continent = rows["target_new"].astype(object).map(continents)
        rows = rows.assign(edit_relation=continent)[continent.notna()]
        effects = group_effects(rows, axes=("race",), mode="paper") if len(rows) else pd.DataFrame(columns=_EFFECTS)
        effects = effects[effects["group"].isin(groups.members("race")) & (effects["n_cases"] > 0)]
        for editor, own in effects.groupby("editor", sort=False):
            figure, axes = _subplots(1, 1, (11, 4.5))
            _bars(axes[0], own, "relation", sorted(set(own["relation"])), "group")
            model = model_name(run.manifest)
            figure.suptitle(f"{model}, {editor}: D_d after editing citizenship", fontsize=10)
            yield f"figure_3_{model}_{editor}", figure


def _by_share(effects: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Yield Figure 4 for each editor: share of cells with decreased confidence, of all cells of the paper."""
    cells = published_cells(effects)
    shares = cells.groupby(["editor", "model", "axis"], sort=False)["star"].agg(D="mean", n_cases="size").reset_index()
    for editor, own in shares.assign(low=np.nan, high=np.nan).groupby("editor", sort=False):
        figure, axes = _subplots(1, 1, (7, 4))
        _bars(axes[0], own, "axis", ["race", "region", "gender"], "model", "share of cells that decreased")
        yield f"figure_4_{editor}", figure


def _subplots(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _bars(
    ax: Axes, rows: pd.DataFrame, place: str, names: Sequence[str], bar: str, label: str = "D_d, per token"
) -> None:
    """Draw a group of bars of D for each place, one for each value of `bar`, with intervals and n below."""
    bars = list(dict.fromkeys(rows[bar]))
    width = 0.8 / max(1, len(bars))
    for number, name in enumerate(bars):
        own = rows[rows[bar] == name].drop_duplicates(place).set_index(place).reindex(names)
        at = np.arange(len(names)) + (number - (len(bars) - 1) / 2) * width
        heights, low, high, counts = (own[name].to_numpy(float) for name in ("D", "low", "high", "n_cases"))
        ax.bar(at, np.nan_to_num(heights), width, color=COLOURS[number % len(COLOURS)], label=str(name))
        if np.isfinite([low, high]).any():
            ends = np.abs([heights - low, high - heights])
            ax.errorbar(at, heights, ends, fmt="none", ecolor=INK, elinewidth=0.8)
        for x, count in zip(at[np.isfinite(counts)], counts[np.isfinite(counts)], strict=True):
            ax.annotate(f"{count:.0f}", (x, 0), (0, -9), textcoords="offset points", ha="center", fontsize=6)
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set_xticks(range(len(names)), names, rotation=20, ha="right", fontsize=8)
    ax.set_ylabel(label)
    ax.legend(fontsize=7, frameon=False, ncols=4)
