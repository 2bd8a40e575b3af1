"""Tables 4, 5 and 8 to 15 of SEESAW-CF, in its layout and by its arithmetic, from one run or several; Figures 2 to 4.

D_d is per token, an answer is right where the right one is a part of it, the star is a t-test over case means below
0.05, uncorrected, and the last row of Tables 4 and 5 is the mean of the rows above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

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
from seesaw_cf.report.figures import COLOURS, INK, save_figure, style
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.rows import model_name, rows_of
from seesaw_cf.report.words import in_order, minus, relation_name
from seesaw_cf.stats.simple import tolerance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STAR = 0.05
_BY_METHOD, _BY_MODEL = {"race": 10, "region": 12, "gender": 14}, {"race": 11, "region": 13, "gender": 15}
_COLUMNS = ("table", "panel", "row", "column", "value", "low", "high", "n", "star")
_TITLES = {
    4: "Change of accuracy about P2 after editing P1, in points",
    5: "Accuracy about P2 before and after editing P1, per cent",
    8: "Cells with decreased confidence, by property",
    9: "Cells with decreased confidence, by group",
    **{number: f"Cross-subject D_d by {axis}" for own in (_BY_METHOD, _BY_MODEL) for axis, number in own.items()},
}
# Every cell of Tables 8 and 9: five properties by group, and no edits of gender by gender.
_PUBLISHED = [
    (relation, axis, group)
    for axis in ("gender", "race", "region")
    for group in groups.members(axis)
    for relation in RELATIONS
    if (relation, axis) != ("P21", "gender")
]
_PICTURED = ("P103", "P19")  # language and birth, as in the paper
_CITIZENSHIP = "P27"
Cell = Mapping[str, Any]


def paper_tables(runs: Sequence[RunResult]) -> pd.DataFrame:
    """Return every cell of the papers' tables that the runs have numbers for.

    Returns:
        Columns table, panel (model or editor), row, column, value, low, high (bootstrap over cases), n (cases), star.
    """
    effects = paper_effects(runs)
    rows = [*_group_cells(effects), *_decrease_cells(effects), *_accuracy_cells(runs)]
    return pd.DataFrame(rows, columns=list(_COLUMNS)).sort_values("table", kind="stable", ignore_index=True)


def paper_effects(runs: Sequence[RunResult]) -> pd.DataFrame:
    """Return D_d of people who hold the new target by group, with the papers' test and star.

    Columns: model, editor and those of `seesaw_cf.effects.group_effects` in the mode "paper", and `star`.
    """
    tables = []
    for run in runs:
        people = run.people[run.people["holds"] == "target_new"] if run.people is not None else ()
        if isinstance(people, pd.DataFrame) and len(people):
            effects = group_effects(add_differences(people, "normalised"), mode="paper")
            tables.append(effects.assign(model=model_name(run.manifest)))
    if not tables:
        return pd.DataFrame(columns=["model", "editor", "relation"])
    out = pd.concat(tables, ignore_index=True)
    return out.assign(star=(out["D"] < 0) & (out["p"] < STAR))


def _cell(table: int, panel: Any, row: str, column: Any, numbers: Cell) -> Cell:
    empty = {"low": np.nan, "high": np.nan, "star": False}
    return {"table": table, "panel": panel, "row": row, "column": column} | empty | dict(numbers)


def _group_cells(effects: pd.DataFrame) -> Iterator[Cell]:
    """Yield Tables 10 to 15: property and method, or property and model, by group."""
    for relation in in_order(effects["relation"], RELATIONS, ALL):
        rows = effects[(effects["relation"] == relation)]
        for row in rows_of(rows[rows["axis"].isin(list(_BY_MODEL)) & (rows["n_cases"] > 0)]):
            if row["group"] not in groups.members(row["axis"]):
                continue
            numbers = {"value": row["D"], "n": row["n_cases"]} | {name: row[name] for name in ("low", "high", "star")}
            model, editor, axis = row["model"], row["editor"], row["axis"]
            for table, panel, name in ((_BY_METHOD[axis], model, editor), (_BY_MODEL[axis], editor, model)):
                yield _cell(table, panel, f"{relation_name(relation)} / {name}", row["group"], numbers)


def decreases(effects: pd.DataFrame) -> pd.DataFrame:
    """Return every cell of Tables 8 and 9: model, editor, relation, axis, group and `star`, blank ones too."""
    if effects.empty:
        return effects
    keys = ["relation", "axis", "group"]
    cells = pd.DataFrame(_PUBLISHED, columns=keys)
    cells = effects[["model", "editor"]].drop_duplicates().merge(cells, how="cross")
    cells = cells.merge(effects[["model", "editor", *keys, "star"]], how="left", on=["model", "editor", *keys])
    return cells.assign(star=cells["star"].eq(True))


def _decrease_cells(effects: pd.DataFrame) -> Iterator[Cell]:
    cells = decreases(effects)
    named = cells.assign(property=cells["relation"].map(relation_name))
    for (editor, model), own in named.groupby(["editor", "model"], sort=False):
        for table, column in ((8, "property"), (9, "group")):
            for row, rows in [*own.groupby(column, sort=False), ("Total", own)] if len(own) else ():
                numbers = {"value": int(rows["star"].sum()), "n": len(rows)}
                yield _cell(table, str(editor), str(row), str(model), numbers)


def _accuracy_cells(runs: Sequence[RunResult]) -> Iterator[Cell]:
    """Yield Tables 4 and 5; the last row of each is the mean of the rows above, without interval."""
    for run in (run for run in runs if run.facts is not None):
        scores, nats = ScoreFile(run.folder / "scores.parquet"), tolerance(run.manifest)[0]
        marked = mark(answers(scores, mode="paper"), "paper", nats)
        marked = marked.assign(editor=[run.names.get(name, name) for name in marked["editor"]])
        accuracy, model = accuracy_table(marked, mode="paper"), model_name(run.manifest)
        for editor, own in accuracy[accuracy["n"] > 0].groupby("editor", sort=False):
            rows = {(row["edit_relation"], row["effect_relation"]): row for row in rows_of(own)}
            places = ((4, editor, model, "change"), (5, model, "Pre-edit", "pre"), (5, model, editor, "post"))
            for pair in in_order(rows, PAIRS, (ALL, ALL)):
                for table, panel, column, name in places:
                    low, high = ("low", "high") if name == "change" else (f"{name}_low", f"{name}_high")
                    numbers = {key: 100 * rows[pair][of] for key, of in (("value", name), ("low", low), ("high", high))}
                    title = "/".join(map(relation_name, pair))
                    yield _cell(table, panel, title, column, {**numbers, "n": rows[pair]["n"]})
            for table, panel, column, name in places:
                mean = {"value": 100 * own[name].mean(), "n": len(rows)}
                yield _cell(table, panel, "mean of the rows", column, mean)


def paper_page(cells: pd.DataFrame) -> str:
    """Return the tables as Markdown."""
    about = (__doc__ or "").partition("\n\n")[2].strip()
    parts = ["# Tables in the layout of SEESAW-CF", " ".join(about.split())]
    for (number, panel), own in cells.groupby(["table", "panel"], sort=False):
        number = int(str(number))
        columns, rows = list(dict.fromkeys(own["column"])), list(dict.fromkeys(own["row"]))
        texts = {(row["row"], row["column"]): _text(number, row) for row in rows_of(own)}
        body = [[row, *(texts.get((row, column), "") for column in columns)] for row in rows]
        parts += [f"## Table {number}: {_TITLES[number]}: {panel}", markdown_table(["", *columns], body)]
    return "\n\n".join(parts) + "\n"


def _text(number: int, cell: Cell) -> str:
    value, n = float(cell["value"]), int(cell["n"])
    if number in (8, 9):
        return f"{value:.0f} of {n}"
    digits = 1 if number in (4, 5) else 3
    ends = [float(cell[end]) for end in ("low", "high")]
    interval = f" [{ends[0]:.{digits}f}, {ends[1]:.{digits}f}]" if np.isfinite(ends).all() else ""
    return minus(f"{value:.{digits}f}{'*' * bool(cell['star'])}{interval} n={n}")


# Figures 2 to 4: D_d by group, citizenship by continent and race, and shares of cells that decreased.


def save_paper_figures(runs: Sequence[RunResult], folder: Path) -> list[Path]:
    """Write the figures that the runs have numbers for as PNG; controls are left out. Return their paths."""
    effects = paper_effects(runs)
    effects = effects[~effects["editor"].map(is_control).astype(bool)]
    with style():
        figures = [*_by_group(effects), *_by_continent(runs), *_by_share(effects)]
    return [path for name, figure in figures for path in save_figure(figure, folder, name)]


def _by_group(effects: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Yield Figure 2 for each model: D_d by race and region, of language and birth or of every property there is."""
    from matplotlib.figure import Figure

    if effects.empty:
        return
    shown = effects[effects["axis"].isin(("race", "region")) & (effects["n_cases"] > 0)]
    near = shown[shown["relation"].isin(_PICTURED)]
    for model, rows in (near if len(near) else shown).groupby("model", sort=False):
        relations = in_order(rows["relation"], RELATIONS, ALL)
        figure = Figure(figsize=(6 * len(relations), 7), layout="constrained")
        axes = figure.subplots(2, len(relations), squeeze=False)
        for across, axis in enumerate(("race", "region")):
            for column, relation in enumerate(relations):
                own = rows[(rows["axis"] == axis) & (rows["relation"] == relation)]
                names = [name for name in groups.members(axis) if (own["group"] == name).any()]
                _bars(axes[across, column], own, "group", names, "editor")
                axes[across, column].set_title(f"edited: {relation_name(relation)}, by {axis}", loc="left", fontsize=9)
        yield f"figure_2_{model}", figure


def _by_continent(runs: Sequence[RunResult]) -> Iterator[tuple[str, Figure]]:
    """Yield Figure 3 for each model and editor: D_d after edits of citizenship, by continent of the target and race."""
    from matplotlib.figure import Figure

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
            _bars(figure.subplots(), own, "relation", sorted(set(own["relation"])), "group")
            model = model_name(run.manifest)
            figure.suptitle(f"{model}, {editor}: D_d after editing citizenship", fontsize=10)
            yield f"figure_3_{model}_{editor}", figure


def _by_share(effects: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Yield Figure 4 for each editor: share of cells with decreased confidence, of all cells of the paper."""
    from matplotlib.figure import Figure

    cells = decreases(effects)
    if cells.empty:
        return
    shares = cells.groupby(["editor", "model", "axis"], sort=False)["star"].agg(D="mean", n_cases="size").reset_index()
    for editor, own in shares.assign(low=np.nan, high=np.nan).groupby("editor", sort=False):
        figure = Figure(figsize=(7, 4), layout="constrained")
        ax = figure.subplots()
        _bars(ax, own, "axis", ["race", "region", "gender"], "model")
        ax.set_ylabel("share of cells that decreased")
        yield f"figure_4_{editor}", figure


def _bars(ax: Axes, rows: pd.DataFrame, place: str, names: Sequence[str], bar: str) -> None:
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
    ax.set_ylabel("D_d, per token")
    ax.legend(fontsize=7, frameon=False, ncols=4)
