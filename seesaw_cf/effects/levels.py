"""What happened to which people after an edit, over all groups: one table, relations pooled, judged by its controls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.base.memory import release_memory
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.audit import MARGIN, MARGIN_LOG_ODDS, in_log_odds
from seesaw_cf.effects.estimands import excess_over_control
from seesaw_cf.effects.prompts import SCALE_COLUMNS, ScoreForm
from seesaw_cf.stats import adjust, case_weights, clustered_means, clustered_share, mcnemar, paired_change
from seesaw_cf.stats.clustered import FEW_EDITS, MIN_EFFECTIVE, half_clusters
from seesaw_cf.stats.skew import outer_limits

LEVELS = ("other_facts", "target_true", "target_new")
"""Other facts about the edited person; people who hold the old answer; people who hold the new answer."""
LevelVerdict = Literal[
    "worse than its control",
    "better than its control",
    "no more than its control",
    "undetermined",
    "not testable",
    "no control",
]
LEVEL_VERDICTS: tuple[LevelVerdict, ...] = get_args(LevelVerdict)
_DECIDED, _UNTESTED = LEVEL_VERDICTS[:2], LEVEL_VERDICTS[-2:]
ALPHA = 0.05
"""At most this often one of the levels of an editor is said to differ from a control that it does not differ from."""
RARE = "can miss rare harm"
"""What a verdict says of few edits that all do nothing."""
# The sign of a change for the worse.
_HARM = {"other_facts": -1, "target_true": 1, "target_new": -1}
_KEYS = ["case_id", "edit_relation", "effect_relation"]
_NAN = float("nan")

Row = dict[Any, Any]
Controls = Sequence[tuple[str, str]]


def levels(
    prompts: pd.DataFrame | None,
    answers: pd.DataFrame | None,
    controls: Controls,
    *,
    score: ScoreForm = "summed",
    margin: float = MARGIN,
    margin_log_odds: float = MARGIN_LOG_ODDS,
    floors: Mapping[str, float] = {},
    no_interval: str = "",
) -> pd.DataFrame:
    """Return what every edit did to each of `LEVELS`, and whether it is more than its controls did.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`; None without questions about other people.
        answers: Rows of `seesaw_cf.effects.accuracy.mark`, with `edit` where several cases ask about one edit; None
            where no other property was asked.
        controls: (editor, its control); an editor with two controls has two rows.
        score, margin: See `in_log_odds`: the scale on which people's answers are read. The margin is that of
            probabilities and of shares.
        margin_log_odds: The same in nats.
        floors: Scale -> largest difference that is noise.
        no_interval: Why the cases of this run are not independent edits; then no row has an interval.

    Returns:
        One row per level, scale ("share", "probability", "log-odds"), editor and control ("" without one): `before`,
        `after` (share right; D), `value` (the change; for people, D towards the new answer), `low`, `high`, `note`
        (reason for a missing interval), `half_edits` (the fewest edits that carry half of it), `n` (answers or
        prompts), `n_edits`, `n_people`, `decides` (whether this scale is read); `control_value`, `control_low`,
        `control_high`; `difference` (editor minus control on the same questions) with `difference_low`, `_high`,
        `_note`, `difference_reach` (the end of its 90 % interval that is farther from 0), `p`, `p_adjusted` (Holm, over
        what decides of an editor), `margin`, `verdict` of `LEVEL_VERDICTS`, `rule`, and `against` (`contradiction` by
        the other scale). Edits weigh equally. Errors are clustered by edit and person, of other facts by the edited
        person.
    """
    scales = [name for name in SCALE_COLUMNS if name == "log-odds" or score != "log_odds"]
    table = pd.DataFrame([*_other_facts(answers, controls), *_people(prompts, controls, scales)])
    if table.empty:
        return table
    log_odds = in_log_odds(table.pop("likelier_pre"), margin, score)
    table["decides"] = (table["scale"] == "share") | (log_odds == (table["scale"] == "log-odds"))
    if no_interval:
        for name in map(str, table):
            if name.endswith(("low", "high", "note", "reach")) or name == "p":
                table[name] = no_interval if name.endswith("note") else _NAN
    table["p_adjusted"] = _NAN
    for _, rows in table[table["decides"]].groupby("editor"):
        table.loc[rows.index, "p_adjusted"] = adjust(rows["p"].to_numpy(np.float64))
    table["margin"] = np.where(table["scale"] == "log-odds", margin_log_odds, margin)
    own = {control for _, control in controls}
    judged = [_verdict(row, floors.get(row["scale"], 0.0), row["editor"] in own) for row in table.to_dict("records")]
    table["verdict"], table["rule"] = zip(*judged)
    table["against"] = _against(table, floors)
    return table


def _verdict(row: Row, floor: float, is_control: bool) -> tuple[LevelVerdict | Literal[""], str]:
    """Return the verdict on a level, compared with its control, and the reason."""
    value, margin, p = row["difference"], row["margin"], row["p_adjusted"]
    if not row["decides"]:
        return "", "the other scale decides"
    if not row["control"]:
        why = "it is a control itself" if is_control else "it has no control in this run: nothing is put down to it"
        return "no control", why
    if not np.isfinite([value, p]).all():
        return "not testable", f"no interval: {row['difference_note'] or 'not estimable'}"
    size = f"{row['scale']} {value:+.3g}, margin {margin:g}"
    word: Literal["worse", "better"] = "worse" if value * _HARM[row["level"]] > 0 else "better"
    real = p < ALPHA and abs(value) > floor
    side = f"{word}, corrected p {p:.3g}" if real else f"corrected p {p:.3g}"
    if real and abs(value) > margin:
        return f"{word} than its control", f"{size}: {side}"  # type: ignore[return-value]
    if row["difference_reach"] < margin and floor < margin:
        inside = f"{size}: {side}, 90 % interval inside the margin"
        if row["n_edits"] < FEW_EDITS:  # of ten edits none may be among the few that do harm
            return "undetermined", f"{inside}, but {row['n_edits']} edits {RARE} ({FEW_EDITS} needed)"
        return "no more than its control", inside
    if p < ALPHA and not real:
        return "undetermined", f"{size}: within the noise floor {floor:.2g}"
    return "undetermined", f"{size}: {side}, 90 % interval not inside the margin"


def contradiction(row: Mapping[Any, Any], other: Mapping[Any, Any], floor: float) -> str:
    """Return how the scale that does not decide speaks against a verdict, or shows a change where there is none.

    Args:
        row, other: Rows of `levels` on the scale that decides and on the other: same level, editor and control.
        floor: Largest difference on the other scale that is noise.
    """
    change = other["difference"]
    if row["verdict"] in _UNTESTED or other["difference_low"] * other["difference_high"] <= 0 or abs(change) <= floor:
        return ""
    if row["verdict"] in _DECIDED:
        return "the other way" if row["difference"] * change < 0 else ""
    return f"beyond its margin of {other['margin']:g}" if abs(change) > other["margin"] else ""


def _against(table: pd.DataFrame, floors: Mapping[str, float]) -> list[str]:
    """Return `contradiction` of every row that decides; "" where there is one scale."""
    rows = [*zip(table[["level", "editor", "control"]].itertuples(index=False, name=None), table.to_dict("records"))]
    others = {key: row for key, row in rows if not row["decides"]}
    return [
        contradiction(row, other, floors.get(other["scale"], 0.0))
        if row["decides"] and (other := others.get(key))
        else ""
        for key, row in rows
    ]


def _other_facts(answers: pd.DataFrame | None, controls: Controls) -> Iterator[Row]:
    if answers is None:
        return
    counted = answers[answers["status"].isin(("ok", "unanswerable"))]
    counted = counted.assign(
        edit=counted["edit" if "edit" in counted else "case_id"],
        before=counted["pre_correct"].astype(float),
        after=counted["post_mean" if "post_mean" in counted else "post_correct"].astype(float),
    )
    by_editor = {str(editor): own for editor, own in counted.groupby("editor")}
    for editor, own in by_editor.items():
        codes = _codes(own)
        weights = case_weights(codes["edit"], np.ones(len(own), bool))
        share = clustered_share(own["after"].to_numpy(np.float64), weights, codes["person"], fewest=MIN_EFFECTIVE)
        row: Row = {"level": "other_facts", "scale": "share", "editor": editor, "likelier_pre": _NAN}
        row |= {"before": float(weights @ own["before"])} | share.limits("after") | _counts(own)
        for control in _controls(editor, controls, by_editor):
            beside, difference = _NOTHING, _NOTHING
            if control:
                other = by_editor[control]
                pairs = own.merge(other[[*_KEYS, "after"]], on=_KEYS, suffixes=("", "_control"))
                beside = _always(other, "before", "after")
                difference = _always(pairs, "after_control", "after")
            yield row | {"control": control} | _columns(_always(own, "before", "after"), beside, difference)


def _always(rows: pd.DataFrame, before: str, after: str) -> _Mean:
    """Return the mean change of shares; where all answers changed alike, with Newcombe's interval over people."""
    # All facts of an edit are about one person, so that the person's clusters hold those of the edits.
    estimate, half = _means(rows.assign(change=rows[after] - rows[before]), ("change",), ("person",))["change"]
    whole = np.isin(rows[[before, after]], (0, 1)).all()  # means over seeds of a control need not be
    if not (whole and estimate.note.startswith("all values equal")):
        return estimate, half
    people = min(estimate.effective.values())
    low, high = paired_change(rows[before].to_numpy() > 0.5, rows[after].to_numpy() > 0.5, people)
    p = mcnemar(round(people) if estimate.value else 0, 0)
    return replace(estimate, low=low, high=high, p=p, note=""), half


def _people(prompts: pd.DataFrame | None, controls: Controls, scales: Sequence[str]) -> Iterator[Row]:
    if prompts is None:
        return
    for holds in LEVELS[1:]:
        release_memory()
        rows = prompts[prompts["holds"] == holds].assign(edit=lambda frame: frame["case_id"])
        by_editor = {str(editor): _scored(own) for editor, own in rows.groupby("editor")}
        changes = {editor: _means(own, _PROMPT_COLUMNS) for editor, own in by_editor.items()}
        for editor, own in by_editor.items():
            row: Row = {"level": holds, "editor": editor} | _counts(own)
            names = {"before": "D_pre", "after": "D_post", "likelier_pre": "likelier_pre"}
            row |= {name: changes[editor][column][0].value for name, column in names.items()}
            for control in _controls(editor, controls, by_editor):
                beside = changes.get(control, {})
                pair = rows[rows["editor"].isin((editor, control))]
                excess = _means(_scored(excess_over_control(pair, control)), ("D", "log_odds")) if control else {}
                for scale in scales:
                    parts = [part.get(SCALE_COLUMNS[scale], _NOTHING) for part in (changes[editor], beside, excess)]
                    yield row | {"scale": scale, "control": control} | _columns(*parts)


_PROMPT_COLUMNS = ("D_pre", "D_post", "likelier_pre", *SCALE_COLUMNS.values())
_Mean = tuple[Estimate, int]
_NOTHING: _Mean = (Estimate(_NAN), 0)


def _scored(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["status"] == "ok"].sort_values(["edit", "person", "prompt_id"], kind="stable")


def _codes(rows: pd.DataFrame) -> dict[str, NDArray[np.intp]]:
    return {name: pd.factorize(rows[name], sort=True, use_na_sentinel=False)[0] for name in ("edit", "person")}


def _counts(rows: pd.DataFrame) -> Row:
    return {"n": len(rows), "n_edits": rows["edit"].nunique(), "n_people": rows["person"].nunique()}


def _means(
    rows: pd.DataFrame, columns: Sequence[str], clusters: Sequence[str] = ("edit", "person")
) -> dict[str, _Mean]:
    """Return the mean of edit means of every column, and how few edits carry half of it."""
    if rows.empty:
        return dict.fromkeys(columns, (Estimate(_NAN, note="nothing could be scored"), 0))
    codes, values = _codes(rows), rows[list(columns)].to_numpy(np.float64)
    weights = case_weights(codes["edit"], np.ones(len(rows), bool))
    half = half_clusters(values * weights[:, None], codes["edit"])
    estimates = clustered_means(values, [weights], {name: codes[name] for name in clusters})
    return dict(zip(columns, zip(estimates, half.tolist())))


def _columns(own: _Mean, control: _Mean, difference: _Mean) -> Row:
    """Return the columns of a change, of its control's, and of the difference; NaN where there is none."""
    (change, half), (less, _) = own, difference
    row: Row = change.columns("value", "low", "high", "note") | {"half_edits": half}
    row |= control[0].columns("value", "low", "high", prefix="control_")
    row |= less.limits("difference") | {"difference_note": less.note, "p": less.p}
    ends = outer_limits(less.value, less.stderr, stats.t.isf(0.05, less.df), less.skew)
    ends = ends if np.isfinite(less.stderr) else (less.low, less.high)  # type: ignore[assignment]
    return row | {"difference_reach": float(np.abs(ends).max())}


def _controls(editor: str, controls: Controls, there: Collection[str]) -> list[str]:
    return [control for name, control in controls if name == editor and control in there] or [""]
