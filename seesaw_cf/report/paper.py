"""Tables 4, 5 and 8 to 15 of SEESAW-CF, in its layout and by its arithmetic, from one run or several.

D_d is per token, an answer is right where the right one is a part of it, the star is a t-test over case means below
0.05, uncorrected, and the last row of Tables 4 and 5 is the mean of the rows above.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from seesaw_cf.base.terminal import markdown_table
from seesaw_cf.effects.accuracy import accuracy_table
from seesaw_cf.effects.answers import answers, mark
from seesaw_cf.effects.bias import group_effects
from seesaw_cf.effects.prompts import ScoreForm, add_differences
from seesaw_cf.effects.tables import ScoreFile
from seesaw_cf.records import groups
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.rows import rows_of
from seesaw_cf.report.words import minus, relation_name, sort_pairs, sort_relations
from seesaw_cf.stats.simple import tolerance

STAR = 0.05
_BY_METHOD, _BY_MODEL = {"race": 10, "region": 12, "gender": 14}, {"race": 11, "region": 13, "gender": 15}
_AXES = {"race": "race", "region": "geographic origin", "gender": "gender"}
_COLUMNS = ("table", "panel", "row", "column", "value", "low", "high", "n", "star")
_TITLES = {
    4: "Change of accuracy about P2 after editing P1, in points",
    5: "Accuracy about P2 before and after editing P1, per cent",
    8: "Cells with decreased confidence, by property",
    9: "Cells with decreased confidence, by group",
    **{
        number: f"Cross-subject D_d by {_AXES[axis]}"
        for numbers in (_BY_METHOD, _BY_MODEL)
        for axis, number in numbers.items()
    },
}
# Every cell of Tables 8 and 9: five properties by group, and no edits of gender by gender.
_PUBLISHED = [
    (relation, axis, group)
    for axis in ("gender", "race", "region")
    for group in groups.members(axis)
    for relation in RELATIONS
    if (relation, axis) != ("P21", "gender")
]
Cell = Mapping[str, Any]


def paper_tables(runs: Sequence[RunResult], score: ScoreForm = "normalised") -> pd.DataFrame:
    """Return every cell of the papers' tables that the runs have numbers for.

    Args:
        runs: Finished runs.
        score: Form of confidence that D_d is made of; the papers' is per token.

    Returns:
        Columns table, panel (model or editor), row, column, value, low, high (bootstrap over cases), n (cases), star.
    """
    effects, accuracy = paper_effects(runs, score), _accuracy(runs)
    rows = [*_group_cells(effects), *_decrease_cells(effects), *_accuracy_cells(accuracy)]
    return pd.DataFrame(rows, columns=list(_COLUMNS)).sort_values("table", kind="stable", ignore_index=True)


def paper_effects(runs: Sequence[RunResult], score: ScoreForm = "normalised") -> pd.DataFrame:
    """Return D_d of people who hold the new target by group, with the papers' test and star.

    Columns: model, editor and those of `seesaw_cf.effects.group_effects` in the mode "paper", and `star`.
    """
    tables = []
    for run in runs:
        if run.people is None or not (run.people["holds"] == "target_new").any():
            continue
        people = run.people[run.people["holds"] == "target_new"]
        scored = people if score == "summed" else add_differences(people, score)
        tables.append(group_effects(scored, mode="paper").assign(model=_model(run)))
    out = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=["model", "editor", "relation"])
    return out.assign(star=(out["D"] < 0) & (out["p"] < STAR)) if tables else out


def _model(run: RunResult) -> str:
    return str(run.manifest.get("model", {}).get("id", "a model"))


def _accuracy(runs: Sequence[RunResult]) -> pd.DataFrame:
    tables = []
    for run in runs:
        if run.facts is None:
            continue
        marked = mark(
            answers(ScoreFile(run.folder / "scores.parquet"), mode="paper"), "paper", tolerance(run.manifest)[0]
        )
        marked = marked.assign(editor=[run.names.get(name, name) for name in marked["editor"]])
        tables.append(accuracy_table(marked, mode="paper").assign(model=_model(run)))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _cell(table: int, panel: Any, row: str, column: Any, numbers: Cell) -> Cell:
    empty = {"low": np.nan, "high": np.nan, "star": False}
    return {"table": table, "panel": panel, "row": row, "column": column} | empty | dict(numbers)


def _group_cells(effects: pd.DataFrame) -> Iterator[Cell]:
    """Yield Tables 10 to 15: property and method, or property and model, by group."""
    for relation in sort_relations(effects["relation"]):
        rows = effects[(effects["relation"] == relation)]
        for row in rows_of(rows[rows["axis"].isin(list(_AXES)) & (rows["n_cases"] > 0)]):
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
    parts = []
    for (model, editor), rows in effects.groupby(["model", "editor"], sort=False):
        cells = pd.DataFrame(_PUBLISHED, columns=["relation", "axis", "group"])
        cells = cells.merge(rows[["relation", "axis", "group", "star"]], how="left", on=["relation", "axis", "group"])
        parts.append(cells.assign(model=str(model), editor=str(editor), star=cells["star"].eq(True)))
    return pd.concat(parts, ignore_index=True)


def _decrease_cells(effects: pd.DataFrame) -> Iterator[Cell]:
    cells = decreases(effects)
    if cells.empty:
        return
    named = cells.assign(property=cells["relation"].map(relation_name))
    for (editor, model), own in named.groupby(["editor", "model"], sort=False):
        for table, column in ((8, "property"), (9, "group")):
            for row, rows in [*own.groupby(column, sort=False), ("Total", own)]:
                numbers = {"value": int(rows["star"].sum()), "n": len(rows)}
                yield _cell(table, str(editor), str(row), str(model), numbers)


def _accuracy_cells(accuracy: pd.DataFrame) -> Iterator[Cell]:
    """Yield Tables 4 and 5; the last row of each is the mean of the rows above, without interval."""
    if accuracy.empty:
        return
    accuracy = accuracy[accuracy["n"] > 0]
    for (model, editor), own in accuracy.groupby(["model", "editor"], sort=False):
        rows = {(row["edit_relation"], row["effect_relation"]): row for row in rows_of(own)}
        for pair in sort_pairs(rows):
            row, name = rows[pair], "/".join(map(relation_name, pair))
            yield _cell(4, editor, name, model, _percent(row, "change", "low", "high"))
            for column, phase in (("Pre-edit", "pre"), (editor, "post")):
                yield _cell(5, model, name, column, _percent(row, phase, f"{phase}_low", f"{phase}_high"))
        means = ((4, editor, model, "change"), (5, model, "Pre-edit", "pre"), (5, model, editor, "post"))
        for table, panel, column, phase in means:
            yield _cell(table, panel, "mean of the rows", column, {"value": 100 * own[phase].mean(), "n": len(rows)})


def _percent(row: Cell, value: str, low: str, high: str) -> Cell:
    return {"value": 100 * row[value], "low": 100 * row[low], "high": 100 * row[high], "n": row["n"]}


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
