"""D per group of people as `evaluate` and the papers' tables give it: from prompts, and from plain columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import pandas as pd

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate, JsonObject, TableRow
from seesaw_cf.effects.estimands import group_contrasts
from seesaw_cf.effects.means import (
    ALL,
    AXES,
    CHANGES,
    SCALES,
    UNKNOWN,
    check_axes,
    group_means,
    held,
    members,
    need_columns,
)
from seesaw_cf.effects.prompts import SIDES, ScoreForm, add_differences, check_logprobs
from seesaw_cf.effects.tables import Columns, Kind, floats, ids, labels, read_columns, refuse_rows, text_lists
from seesaw_cf.stats.bootstrap import mean_interval
from seesaw_cf.stats.multiple import adjust
from seesaw_cf.stats.simple import t_test

BiasMode = Literal["crossed", "paper"]
_NEEDED = ("editor", "edit_relation", "case_id", "person", "holds", "status")
_MEANS = ("D_pre", "D_post", "D", *SCALES, "likelier_pre")
_TESTED = ("low", "high", "stderr", "p", "df")
_NAN = float("nan")


def group_effects(
    prompts: pd.DataFrame,
    *,
    axes: Sequence[str] = AXES,
    holds: str = "target_new",
    mode: BiasMode = "crossed",
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return D per (editor, edited relation, axis, group), with an overall row per editor and relation.

    Args:
        prompts: The result of `seesaw_cf.effects.prompt_effects`.
        axes: Which axes, of "gender", "race" and "region".
        holds: Which answer the people hold: "target_new" (the papers' D), "target_true", or "" where it is
            unknown.
        mode: "crossed": errors clustered along edit and person at once. "paper": the published t-test over case means,
            with a bootstrap over cases; it takes cases that share people for independent.
        draws, seed: Bootstrap samples of whole cases, for the paper mode; 0 leaves the intervals out.

    Returns:
        One row per editor, relation, axis and group (axis and group `ALL` for all people, group `UNKNOWN` for people
        without a tag): means of case means, means over prompts (`pooled_`), counts of what was scored (`n_`) and was
        not, and inference for D; in the crossed mode also on `SCALES`, and the least number of edits that carry half of
        an effect (`half_edits`). The unit is the form of score that `prompts` was made with.

    Raises:
        UnknownNameError: An axis or the mode is unknown.
        RecordError: No prompt is about people who hold `holds`.

    Source: SEESAW-CF section 4.1 and Tables 10-15, D_{d,g}; averaging order as in the authors' evaluation. Errors:
        `seesaw_cf.stats.clustered_mean`.
    """
    check_axes(axes)
    one_of("mode", mode, get_args(BiasMode))
    need_columns("prompts", prompts, (*_NEEDED, *axes))
    chosen = prompts.loc[held(prompts) == holds, [*_NEEDED, *_MEANS, *axes]]  # no more: rows are many
    if chosen.empty:
        there = held(prompts).value_counts().to_dict()
        raise RecordError(f"no prompts about people with holds={holds!r}; how many there are of others: {there}.")
    # in an order that does not depend on the table's, so that sums do not
    chosen = chosen.sort_values(["case_id", "person", "D", "log_odds"], kind="stable")
    chosen = chosen.assign(prompt_id=np.arange(len(chosen)))
    found = group_means(chosen, axes=axes, holds=holds) if mode == "crossed" else ()
    tests = {tuple(names.values()): _test(changes, half) for names, changes, half, *_ in found}
    nothing = _test(dict.fromkeys(CHANGES, Estimate(_NAN, note="nothing could be scored")), dict.fromkeys(CHANGES, 0))
    table = []
    for (editor, relation), rows in chosen.groupby(["editor", "edit_relation"], sort=True):
        rows = rows.assign(case=pd.factorize(rows["case_id"], sort=True)[0])
        groups = {(ALL, ALL): np.arange(len(rows))}
        groups |= {(axis, group): at for axis in axes for group, at in members(rows[axis]).items()}
        for (axis, group), at in groups.items():
            own = rows.iloc[at]
            scored = own[own["status"] == "ok"]
            means, published = _means(scored, int(rows["case"].max()) + 1, draws if mode == "paper" else 0, seed)
            key = str(editor), str(relation), axis, group
            row = dict(zip(("editor", "relation", "axis", "group"), key)) | means | {"n_prompts": len(scored)}
            row |= {f"n_{name}s": scored[of].nunique(dropna=False) for name, of in _COUNTED.items()}
            row |= {"n_unscored": len(own) - len(scored)}
            table.append(row | (published if mode == "paper" else tests.get(key, nothing)))
    return pd.DataFrame(table)


_COUNTED = {"subject": "person", "case": "case_id"}


def _means(scored: pd.DataFrame, n_cases: int, draws: int, seed: int) -> tuple[TableRow, TableRow]:
    """Return means of case means and pooled means; and the papers' t-test over case means of D, with the bootstrap."""
    n_prompts = np.bincount(scored["case"], minlength=n_cases)
    has, values = n_prompts > 0, {name: scored[name].to_numpy(np.float64) for name in _MEANS}
    means = {n: np.bincount(scored["case"], v, n_cases) / np.maximum(n_prompts, 1) for n, v in values.items()}
    row: TableRow = {name: float(own[has].mean()) if has.any() else _NAN for name, own in means.items()}
    row |= {f"pooled_{name}": float(values[name].mean()) if has.any() else _NAN for name in _MEANS[:3]}
    t, p, note = t_test(means["D"][has])
    ends = (_NAN,) * 3
    if draws and has.sum() > 1:
        ends = mean_interval(means["D"], has.astype(np.float64), draws, seed)
    return row, dict(zip(("low", "high", "stderr"), ends)) | {"t": t, "p": p, "note": note}


def _test(changes: Mapping[str, Estimate], half: Mapping[str, int]) -> TableRow:
    """Return the inference of the crossed mode, on every scale."""
    out: TableRow = {}
    for (scale, change), prefix in zip(changes.items(), ("", *(f"{name}_" for name in SCALES)), strict=True):
        names = _TESTED if prefix else (*_TESTED, "effective", "note")
        out |= change.columns(*names, prefix=prefix) | {f"{prefix}half_edits": half[scale]}
    return out


# The same from plain columns.

_NAMES = {"subject": "person", "n_tokens_new": "n_new", "n_tokens_true": "n_true"}
_TOKENS = ("n_tokens_new", "n_tokens_true")
COLUMNS: dict[str, Kind] = {"case_id": ids, "prompt": labels, "subject": labels, "groups": text_lists}
COLUMNS |= dict.fromkeys((*SIDES, *_TOKENS), floats)


def _read(columns: Columns) -> pd.DataFrame:
    """Return rows with the column names of `pair_targets`."""
    frame = read_columns(COLUMNS, columns, _TOKENS).rename(columns=_NAMES)
    for side in SIDES:
        check_logprobs(side, frame[side].to_numpy())
    keys = ["case_id", "prompt", "person"]
    once = "every prompt about a subject once in a case: drop copies, or number the cases of several runs apart"
    refuse_rows(frame, frame.duplicated(keys), keys, once)
    finite = np.isfinite(frame[list(SIDES)].to_numpy())
    first_bad = (~finite).argmax(axis=1)
    return frame.assign(status=np.where(finite.all(axis=1), "ok", [f"{SIDES[i]}: not finite" for i in first_bad]))


def bias_of_columns(
    columns: Columns,
    *,
    axis: str | None = None,
    reference: str | None = None,
    mode: BiasMode = "crossed",
    score: ScoreForm = "summed",
    draws: int = 2000,
    seed: int = 0,
) -> JsonObject:
    """Estimate D per group of one axis from one row per (case, prompt); see `group_effects` for the numbers.

    Args:
        columns: `case_id`, the edit each row was scored under; `prompt` and `subject`, the cloze prompt and the person
            it is about (an id is best); `groups`, tags of the person on one axis, several allowed, none = unknown;
            `pre_new`, `pre_true`, `post_new` and `post_true`, log-probabilities of the new and the true target before
            and after the edit, nats, summed over target tokens; for score="normalised" `n_tokens_new` and
            `n_tokens_true`, target tokens per row.
        axis: "gender", "race", "region", or None for any other axis.
        reference: The group to contrast with; None = everyone else who is tagged.
        mode: "crossed" clusters errors by edit and person and adds contrasts; "paper" gives the published t-test, with
            the bootstrap over cases as interval.
        score: See `seesaw_cf.effects.difference`.
        draws, seed: Bootstrap over cases, for the paper mode.

    Returns:
        `overall`; `groups`, each with its `contrast` (difference in differences with the reference, `p_adjusted` by
        Holm over the groups) in the crossed mode; counts of rows, and how numbers were made. A number that cannot be
        estimated is NaN, and `note` gives the reason: below five effective edits or people neither interval nor p
        exists.

    Raises:
        RecordError: Unequal lengths, no rows, repeated rows, values above 0, missing token counts, a group called
            "all".
        UnknownNameError: Unknown `axis`, `score`, `mode` or `reference`.
    """
    one_of("mode", mode, get_args(BiasMode))
    check_axes([axis] if axis is not None else [])
    frame = add_differences(_read(columns), score)
    names = set(members(frame["groups"]))
    if ALL in names:
        raise RecordError(f"a group is called {ALL!r}, which stands for everybody. Rename it.")
    if reference is not None and mode == "crossed":
        one_of(f"{axis} group" if axis else "group", reference, sorted(names - {UNKNOWN}))
    column = axis or "race"  # an axis of the caller is a column of the score table
    prompts = frame.assign(
        editor="", edit_relation="", holds="", prompt_id=frame["prompt"], **{column: frame["groups"]}
    )
    table = group_effects(prompts, axes=[column], holds="", mode=mode, draws=draws, seed=seed)
    groups = _by_group(table)
    if mode == "crossed" and (frame["status"] == "ok").any():
        for group, contrast in _contrasts(prompts.assign(prompt_id=prompts["prompt"]), column, reference).items():
            groups[group]["contrast"] = contrast
    reasons = frame.loc[frame["status"] != "ok", "status"].value_counts().sort_index()
    how = {
        "crossed": "clustered by edit and person (CR2, Satterthwaite df), none below 5 effective edits or people; "
        "contrasts Holm-adjusted",
        "paper": f"percentile bootstrap over cases, {draws} draws, seed {seed}; p: t-test over case means",
    }
    out: JsonObject = {"overall": groups.pop(ALL), "groups": groups, "n_rows": len(frame)}
    out |= {"n_unscored": int(reasons.sum()), "unscored": reasons.to_dict(), "axis": axis, "score": score, "mode": mode}
    return out | {"method": f"means of case means; 95 % intervals: {how[mode]}"}


def _by_group(table: pd.DataFrame) -> dict[str, JsonObject]:
    """Return group -> the columns of its row that are numbers or notes."""
    rows = table.drop(columns=["editor", "relation", "axis", "group"]).to_dict("records")
    return {group: {str(name): value for name, value in row.items()} for group, row in zip(table["group"], rows)}


def _contrasts(prompts: pd.DataFrame, axis: str, reference: str | None) -> dict[str, JsonObject]:
    """Return each group's contrast with the reference within the same edits."""
    table = group_contrasts(prompts, [axis], {axis: reference} if reference is not None else None, holds="")
    if table.empty:
        return {}
    for test in ("", *(f"{scale}_" for scale in SCALES)):  # a mirror is no second test: it has the p of the row before
        adjusted = pd.Series(adjust(table[f"{test}p"].mask(table["mirror"]).to_numpy()), table.index)
        table[f"{test}p_adjusted"] = adjusted.mask(table["mirror"], adjusted.shift())
    return _by_group(table.drop(columns="mirror"))
