"""The cases behind the accuracy about other properties: what the model answered about each person before and after."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from seesaw_cf.base.terminal import printable
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.groups import ALL
from seesaw_cf.report import notes
from seesaw_cf.report.html.look import Choice, ListColumn, PromptList, make_look, short, view_link
from seesaw_cf.report.page_cases import edited_facts
from seesaw_cf.report.results import Results, relation_name
from seesaw_cf.report.rows import rows_of

_KEPT = 12  # of each cell
_MOST = 6_000  # rows of a page
_KEY = ("editor", "edited", "asked", "outcome")
_OUTCOMES = {(True, False): "lost", (False, True): "gained", (True, True): "right both times"}
_COLUMNS: Mapping[str, ListColumn] = {
    "editor": ListColumn("editor", "who edited the model", True),
    "edit": ListColumn("edit", "the fact that was edited: subject, true answer, new answer", True),
    "edited": ListColumn("edited", "the edited property", True),
    "asked": ListColumn("asked", "the property that was asked about", True),
    "prompt": ListColumn("prompt", "what the model was given", True),
    "gold": ListColumn("right", "the right answers among the candidates", True),
    "before": ListColumn("answer before", "the likeliest candidate before the edit", True),
    "after": ListColumn("answer after", "the likeliest candidate after the edit", True),
    "outcome": ListColumn("outcome", "whether the right answer came first before and after", True),
    "rank_pre": ListColumn("rank before", "place of the right answer among the candidates"),
    "rank_post": ListColumn("rank after", "place of the right answer among the candidates after the edit"),
    "share_pre": ListColumn("share before", "the right answers' part of the candidates' probability"),
    "share_post": ListColumn("share after", "the right answers' part of the candidates' probability after the edit"),
    "change": ListColumn("change", "change of that share's log-odds, nats"),
}


def case_link(editor: str, edited: str, property_asked: str, outcome: str) -> str:
    """Return the address of a view of cases, within the page; "all" and "" mean any."""
    filters = dict(zip(_KEY, (editor, edited, property_asked, outcome), strict=True))
    return view_link("cases", **{name: value for name, value in filters.items() if value not in ("", ALL)})


def look_answers(results: Results) -> PromptList | None:
    """Return the list of cases; None without any.

    Of every editor, pair of properties and outcome the twelve that moved most, fewer where a page would become
    too large.
    """
    if results.answers is None or results.accuracy.empty:
        return None
    frame = results.answers[results.answers["status"].isin(["ok", "unanswerable"])].reset_index(drop=True)
    if frame.empty:
        return None
    right = zip(frame["pre_correct"], frame["post_correct"], strict=True)
    frame = frame.assign(
        outcome=[_OUTCOMES.get(change, "wrong both times") for change in right],
        change=frame["post_odds"].astype(float) - frame["pre_odds"].astype(float),
    )
    cells = ["editor", "edit_relation", "effect_relation", "outcome"]
    each = max(1, min(_KEPT, _MOST // frame.groupby(cells).ngroups))
    size = np.nan_to_num(frame["change"].abs().to_numpy(float), nan=-1.0)
    order = frame.iloc[np.argsort(-size, kind="stable")]
    examples = order[order.groupby(cells, sort=False).cumcount() < each].sort_index()
    facts = edited_facts(results.edits)
    rows = [_row(row, facts) for row in rows_of(examples)]
    about = f"{len(examples):,} of {len(frame):,} cases, of each outcome those whose answers moved most."
    about += f" {notes.FIRST_SEED}" if results.further_seeds else ""
    texts = ("The cases behind these shares", about, "cases")
    search = ("edit", "prompt", "gold", "before", "after")
    sizes = (_KEY, _counts(frame, cells))
    return make_look("cases", texts, _COLUMNS, rows, _choices(examples), search=search, sort="change", sizes=sizes)


def _counts(frame: pd.DataFrame, cells: list[str]) -> dict[tuple[str, ...], int]:
    """Return the size of every view that a table links to: with and without an outcome, of a pair and of all."""
    counts: dict[tuple[str, ...], int] = {}
    for key, n in frame.groupby(cells, sort=True).size().items():
        editor, edited, asked, outcome = map(str, key)  # type: ignore[call-overload]
        for pair in ((edited, asked), ("", "")):
            for result in (outcome, ""):
                counts[editor, *pair, result] = counts.get((editor, *pair, result), 0) + int(n)
    return counts


def _row(row: Mapping[Any, Any], facts: Mapping[tuple[str, int], str]) -> TableRow:
    names = list(row["candidates"])
    first = {phase: printable(names[int(np.argmax(row[phase]))]) for phase in ("pre", "post")}
    shares = {f"share_{phase}": short(float(expit(row[f"{phase}_odds"]))) for phase in ("pre", "post")}
    return {
        "editor": printable(row["editor"]),
        "edit": facts.get((row["edit_relation"], row["case_id"]), ""),
        "edited": row["edit_relation"],
        "asked": row["effect_relation"],
        "prompt": printable(row["prompt_post"] or row["prompt_pre"]),
        "gold": printable(", ".join(row["gold"])),
        "before": first["pre"],
        "after": first["post"],
        "outcome": row["outcome"],
        **{f"rank_{phase}": int(row[f"{phase}_rank"]) or None for phase in ("pre", "post")},
        **shares,
        "change": short(row["change"]) if math.isfinite(row["change"]) else None,
    }


def _choices(examples: pd.DataFrame) -> list[Choice]:
    def named(column: str) -> list[tuple[str, str]]:
        return [(name, relation_name(name)) for name in dict.fromkeys(examples[column])]

    editors = [(name, name) for name in dict.fromkeys(map(printable, examples["editor"]))]
    outcomes = [(name, name) for name in dict.fromkeys(examples["outcome"])]
    return [
        ("editor", "editor", editors),
        ("edited", "edited property", named("edit_relation")),
        ("asked", "asked property", named("effect_relation")),
        ("outcome", "right answer", outcomes),
    ]
