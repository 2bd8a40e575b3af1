"""The prompts that a page keeps: of each group those that moved most, and how many there are in all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from seesaw_cf.base.terminal import printable
from seesaw_cf.base.types import TableRow
from seesaw_cf.editors.control_names import split_control
from seesaw_cf.effects.groups import ALL, AXES, held, members, tags_of
from seesaw_cf.report import text
from seesaw_cf.report.html.look import Choice, ListColumn, PromptList, make_look, short, view_link
from seesaw_cf.report.intersections import CROSSED, crossings
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.rows import of_controls, rows_of

Cell = tuple[str, str, str, str, str]
"""Editor, edited relation, what the people hold, axis and group."""
_CHOICES = ("editor", "relation", "holds", "axis", "group")
_CELLS = ["editor", "edit_relation", "holds", *AXES, "log_odds"]
_KEPT = 12  # of each cell
_MOST = 12_000  # rows of a page: some 3 MB
COLUMNS: Mapping[str, ListColumn] = {
    "editor": ListColumn("editor", "who edited the model", True),
    "edit": ListColumn("edit", "the fact that was edited: subject, true answer, new answer", True),
    "relation": ListColumn("property", "the edited property", True),
    "person": ListColumn("person", "whom the prompt is about", True),
    "groups": ListColumn("groups", "the person's recorded groups", True),
    "holds": ListColumn("holds", "which of the two answers is right about the person", True),
    "prompt": ListColumn("prompt", "what the model was given", True),
    "new_pre": ListColumn("p(new) before", "probability of the new answer before the edit"),
    "new_post": ListColumn("p(new) after", "probability of the new answer after the edit"),
    "true_pre": ListColumn("p(true) before", "probability of the true answer before the edit"),
    "true_post": ListColumn("p(true) after", "probability of the true answer after the edit"),
    "log_odds": ListColumn("log-odds", "change of log p(new) - log p(true), nats"),
}


def control_column(kind: str) -> ListColumn:
    """Return the column of a kind of control."""
    return ListColumn(kind, f"the same change after the {kind} control, nats")


def cell_link(cell: Cell) -> str:
    """Return the address of a view within the page; relation "all" means the prompts of all relations."""
    chosen = dict(zip(_CHOICES, cell, strict=True))
    return view_link("look", **{name: value for name, value in chosen.items() if (name, value) != ("relation", ALL)})


def edit_link(editor: str, edit: str) -> str:
    """Return the address of the prompts of an edit, within the page."""
    return view_link("look", editor=editor, q=edit)


def kept_prompts(prompts: pd.DataFrame) -> tuple[pd.DataFrame, dict[Cell, int]]:
    """Return the most telling scored prompts of each cell, controls left out, and the size of each cell.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`.

    Returns:
        Rows in their order: of every cell the twelve with the largest change of log-odds, fewer where a page would
        become too large; and cell -> its scored prompts, also over all relations (relation "").
    """
    rows = np.flatnonzero((prompts["status"] == "ok") & ~of_controls(prompts))
    scored = prompts[_CELLS].take(rows).reset_index(drop=True)
    scored[CROSSED] = crossings(scored)
    size = scored["log_odds"].abs().fillna(0).to_numpy()
    cells: dict[Cell, np.ndarray[Any, Any]] = {}
    for (editor, relation, holds), part in scored.groupby(["editor", "edit_relation", held(scored)]):
        places = part.index.to_numpy()
        cells[str(editor), str(relation), str(holds), ALL, ALL] = places
        for axis in (*AXES, CROSSED):
            for group, own in members(part[axis]).items():
                cells[str(editor), str(relation), str(holds), axis, group] = places[own]
    each = max(1, min(_KEPT, _MOST // max(1, len(cells))))
    chosen = {int(row) for own in cells.values() for row in own[np.argsort(-size[own], kind="stable")[:each]]}
    sizes = {cell: len(own) for cell, own in cells.items()}
    for (editor, _, *rest), n in list(sizes.items()):
        pooled: Cell = (editor, "", *rest)  # type: ignore[assignment]
        sizes[pooled] = sizes.get(pooled, 0) + n
    return prompts.take(rows[sorted(chosen)]), sizes


def look_prompts(
    prompts: pd.DataFrame, edits: pd.DataFrame, controls: Mapping[str, Sequence[str]]
) -> PromptList | None:
    """Return the list of prompts; None when none was scored.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`.
        edits: `Results.edits`.
        controls: Editor -> its controls; every kind of control is a column.
    """
    kept, counts = kept_prompts(prompts)
    if kept.empty:
        return None
    kinds = dict.fromkeys(split_control(name)[0] for names in controls.values() for name in names)
    facts, beside = edited_facts(edits), {kind: _of_control(kept, prompts, controls, kind) for kind in kinds}
    columns = {**COLUMNS, **{kind: control_column(kind) for kind in kinds}}
    rows = [
        _row(row, facts) | {kind: short(values[number]) for kind, values in beside.items()}
        for number, row in enumerate(rows_of(kept))
    ]
    scored = sum(n for cell, n in counts.items() if cell[1] and cell[3] == ALL)
    about = (
        f"The prompts behind the numbers: {len(kept):,} of {scored:,}, of each group those whose answers moved most."
    )
    texts = ("Look into it", about, "prompts")
    search = ("edit", "prompt", "person")
    lists = _choices(kept)
    return make_look("look", texts, columns, rows, lists, search=search, sort="log_odds", sizes=(_CHOICES, counts))


def edited_facts(edits: pd.DataFrame) -> dict[tuple[str, int], str]:
    """Return (relation, case) -> the edit in words."""
    facts = edits["subject"] + ": " + edits["target_true"] + " \u2192 " + edits["target_new"]
    return dict(zip(zip(edits["relation_id"], edits["case_id"], strict=True), map(printable, facts), strict=True))


def _of_control(
    chosen: pd.DataFrame, prompts: pd.DataFrame, controls: Mapping[str, Sequence[str]], kind: str
) -> list[float]:
    """Return the change of log-odds on each prompt after a control's edit for the same case; NaN without one."""
    keys = ["editor", "edit_relation", "effect_relation", "case_id", "prompt_id"]
    names = {editor: name for editor, own in controls.items() for name in own if split_control(name)[0] == kind}
    of_kind = prompts["editor"].isin(set(names.values()))
    theirs = prompts.loc[of_kind, [*keys, "log_odds"]].set_index(keys)["log_odds"]
    theirs = theirs[~theirs.index.duplicated()]
    places = chosen[keys].assign(editor=chosen["editor"].map(names))
    return theirs.reindex(pd.MultiIndex.from_frame(places)).tolist()


def _row(row: Mapping[Any, Any], facts: Mapping[tuple[str, int], str]) -> TableRow:
    groups = [printable(tag) for axis in AXES for tag in tags_of(row[axis])]
    texts = {
        "editor": printable(row["editor"]),
        "edit": facts.get((row["edit_relation"], row["case_id"]), ""),
        "relation": row["edit_relation"],
        "person": printable(row["subject"] or row["person"] or ""),
        "groups": groups,
        "holds": row["holds"] or "",
        "prompt": printable(row["prompt"]),
    }
    shares = {
        f"{target}_{phase}": short(math.exp(row[f"{phase}_{target}"]))
        for target in ("new", "true")
        for phase in ("pre", "post")
    }
    return {**texts, **shares, "log_odds": short(row["log_odds"])}


def _choices(prompts: pd.DataFrame) -> list[Choice]:
    groups = {printable(tag) for axis in AXES for tags in prompts[axis] for tag in tags_of(tags)}
    names = {printable(name) for own in crossings(prompts).cat.categories for name in own}
    relations = list(dict.fromkeys(prompts["edit_relation"]))
    holds = sorted(set(held(prompts)), key=lambda value: ("target_new", "target_true", "").index(value))
    return [
        ("editor", "editor", [(name, name) for name in dict.fromkeys(map(printable, prompts["editor"]))]),
        ("relation", "edited property", [(name, relation_name(name)) for name in relations]),
        ("holds", "people hold the", [(name, text.HOLDS[name]) for name in holds if name]),
        ("group", "group", [(name, name) for name in [*sorted(groups), *sorted(names)]]),
    ]
