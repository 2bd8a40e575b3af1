"""What happened to which people after an edit, over all groups: one table, relations pooled, with controls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pandas as pd

from seesaw_cf.effects.accuracy import paired_shares
from seesaw_cf.effects.audit import MARGIN, in_log_odds
from seesaw_cf.effects.estimands import excess_over_control
from seesaw_cf.effects.groups import ALL, group_effects
from seesaw_cf.effects.prompts import ScoreForm

LEVELS = ("other_facts", "target_true", "target_new")
"""Other facts about the edited person; people who hold the old answer; people who hold the new answer."""
SCALE_COLUMNS = {"probability": ("D", ""), "log-odds": ("log_odds", "log_odds_")}
"""Scale -> the column of `group_effects` with its value, and the prefix of its limits."""
_KEYS = ["case_id", "edit_relation", "effect_relation"]
_FIELDS = {"before": "D_pre", "after": "D_post", "likelier_pre": "likelier_pre"}
_FIELDS |= {"n": "n_prompts", "n_edits": "n_cases", "n_people": "n_subjects"}
_SHARES = {"pre": "before", "post": "after", "post_low": "after_low", "post_high": "after_high", "change": "value"}
_LIMITS = ("value", "low", "high", "note")

Row = dict[Any, Any]
Controls = Sequence[tuple[str, str]]


def levels(
    prompts: pd.DataFrame | None,
    answers: pd.DataFrame | None,
    accuracy: pd.DataFrame,
    controls: Controls,
    *,
    score: ScoreForm = "summed",
    margin: float = MARGIN,
    no_interval: str = "",
) -> pd.DataFrame:
    """Return what every edit did to each of `LEVELS`, with its controls.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`; None without questions about other people.
        answers: Rows of `seesaw_cf.effects.accuracy.mark`; None where no other property was asked.
        accuracy: Rows of `accuracy_table` over all pairs, one per editor.
        controls: (editor, its control); an editor with two controls has two rows.
        score, margin: See `in_log_odds`: the scale on which people's answers are read.
        no_interval: Why the cases of this run are not independent edits; then no row has an interval.

    Returns:
        One row per level, scale ("share", "probability", "log-odds"), editor and control ("" without one): `before`,
        `after` (share right; D), `value` (the change; for people, D towards the new answer), `low`, `high`, `note`
        (reason for a missing interval), `n` (answers or prompts), `n_edits`, `n_people`, `decides` (whether this scale
        is read); `control_value`, `control_low`, `control_high`; `difference` (editor minus control on the same
        questions) with `difference_low`, `_high`, `_note`. Edits weigh equally; errors: clustered by edit and person.
    """
    scales = [name for name in SCALE_COLUMNS if name == "log-odds" or score != "log_odds"]
    table = pd.DataFrame([*_other_facts(answers, accuracy, controls), *_people(prompts, controls, scales)])
    if "likelier_pre" in table:
        log_odds = in_log_odds(table.pop("likelier_pre"), margin, score)
        table["decides"] = (table["scale"] == "share") | (log_odds == (table["scale"] == "log-odds"))
    if no_interval:
        for name in map(str, table):
            if name.endswith(("low", "high", "note")):
                table[name] = no_interval if name.endswith("note") else float("nan")
    return table


def _other_facts(answers: pd.DataFrame | None, accuracy: pd.DataFrame, controls: Controls) -> Iterator[Row]:
    if answers is None:
        return
    counted = answers[answers["status"].isin(("ok", "unanswerable"))]
    named = accuracy[accuracy["n"] > 0].rename(columns=_SHARES)
    own = {row.pop("editor"): row for row in named[["editor", *_SHARES.values(), *_LIMITS[1:], "n"]].to_dict("records")}
    for editor, row in own.items():
        answered = counted[counted["editor"] == editor]
        counts = {"n_edits": len(answered[_KEYS[:2]].drop_duplicates()), "n_people": answered["person"].nunique()}
        for control in _controls(editor, controls, own):
            key = {"level": "other_facts", "scale": "share", "decides": True, "editor": editor, "control": control}
            difference: Row = {}
            if control:
                pairs = answered.merge(counted[counted["editor"] == control], on=_KEYS, suffixes=("", "_control"))
                estimate = paired_shares(
                    pairs, *(pairs[f"post_correct{side}"].to_numpy(bool) for side in ("_control", ""))
                )
                difference = {name: getattr(estimate, name) for name in _LIMITS}
            yield key | row | counts | _beside(own.get(control, {}), difference)


def _people(prompts: pd.DataFrame | None, controls: Controls, scales: Sequence[str]) -> Iterator[Row]:
    if prompts is None:
        return
    pooled = prompts.assign(edit_relation=ALL)
    for holds in LEVELS[1:]:
        rows = pooled[pooled["holds"] == holds]
        own = _effects(rows, holds)
        for editor, effect in own.items():
            for control in _controls(editor, controls, own):
                pair = rows[rows["editor"].isin((editor, control))]
                excess = _effects(excess_over_control(pair, control), holds) if control else {}
                row = {"level": holds, "editor": editor, "control": control}
                row |= {name: effect[column] for name, column in _FIELDS.items()}
                (difference,) = excess.values() or ({},)
                for scale in scales:
                    beside = _beside(_limits(own.get(control, {}), scale), _limits(difference, scale))
                    yield row | {"scale": scale} | _limits(effect, scale) | beside


def _effects(rows: pd.DataFrame, holds: str) -> dict[str, Row]:
    """Return editor -> its row of `group_effects` over all people."""
    if rows.empty:
        return {}
    return {str(row["editor"]): row for row in group_effects(rows, axes=(), holds=holds).to_dict("records")}


def _limits(effect: Row, scale: str) -> Row:
    if not effect:
        return {}
    value, prefix = SCALE_COLUMNS[scale]
    return {"value": effect[value], "note": effect["note"]} | {name: effect[prefix + name] for name in ("low", "high")}


def _beside(control: Row, difference: Row) -> Row:
    """The columns of a control and of the difference to it; NaN where there is none."""
    nan = float("nan")
    beside = {f"control_{name}": control.get(name, nan) for name in ("value", "low", "high")}
    beside |= {"difference": difference.get("value", nan), "difference_note": difference.get("note", "")}
    return beside | {f"difference_{name}": difference.get(name, nan) for name in ("low", "high")}


def _controls(editor: str, controls: Controls, there: Collection[str]) -> list[str]:
    return [control for name, control in controls if name == editor and control in there] or [""]
