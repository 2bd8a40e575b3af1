"""D per group of people as `evaluate` and the papers' tables give it: from prompts, and from plain columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate, JsonObject, TableRow
from seesaw_cf.effects.estimands import group_contrasts
from seesaw_cf.effects.groups import ALL, AXES, SCALES, UNKNOWN, check_axes, held, members, need_columns
from seesaw_cf.effects.means import CHANGES, GroupMean, group_means
from seesaw_cf.effects.prompts import SIDES, ScoreForm, add_differences, check_form, check_logprobs
from seesaw_cf.effects.reader import Kind, floats, ids, labels, read_columns, text_lists
from seesaw_cf.stats import adjust, t_test
from seesaw_cf.stats.bootstrap import Floats, mean_interval

BiasMode = Literal["crossed", "paper"]
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
    need_columns("prompts", prompts, ("editor", "edit_relation", "case_id", "holds", "status", *axes))
    needed = ["editor", "edit_relation", "case_id", "person", "holds", "status", *_MEANS, *axes]
    chosen = prompts.loc[held(prompts) == holds, needed]  # no more: rows are many
    if chosen.empty:
        there = held(prompts).value_counts().to_dict()
        raise RecordError(
            f"no prompts about people with holds={holds!r}; prompts per value: {there}. "
            "Known: target_new, target_true, and '' where it is not recorded."
        )
    # in an order that does not depend on the table's, so that sums do not
    chosen = chosen.sort_values(["case_id", "person", "D", "log_odds"], kind="stable")
    chosen = chosen.assign(prompt_id=np.arange(len(chosen)))
    inferred = {} if mode == "paper" else {_key(own): own for own in group_means(chosen, axes=axes, holds=holds)}
    table = []
    for (editor, relation), rows in chosen.groupby(["editor", "edit_relation"], sort=True):
        case, values = pd.factorize(rows["case_id"], sort=True)[0], rows[list(_MEANS)].to_numpy(np.float64)
        person, usable = pd.factorize(rows["person"])[0], (rows["status"] == "ok").to_numpy(bool)
        for axis in (ALL, *axes):
            groups = {ALL: np.arange(len(rows))} if axis == ALL else members(rows[axis])
            for group, at in groups.items():
                scored = at[usable[at]]
                key = (str(editor), str(relation), axis, group)
                row = dict(zip(("editor", "relation", "axis", "group"), key)) | _means(values[scored], case[scored])
                row |= {"n_prompts": scored.size, "n_subjects": np.unique(person[scored]).size}
                row |= {"n_cases": np.unique(case[scored]).size, "n_unscored": at.size - scored.size}
                published = mode == "paper"
                change, cases = values[scored, _MEANS.index("D")], int(case.max()) + 1
                test = _published(change, case[scored], cases, draws, seed) if published else _test(inferred.get(key))
                table.append(row | test)
    return pd.DataFrame(table)


def _key(found: GroupMean) -> tuple[str, str, str, str]:
    return found.editor, found.relation, found.axis, found.group


def _means(values: Floats, case: NDArray[np.intp]) -> TableRow:
    """Return means of case means, and pooled means."""
    if not len(values):
        return dict.fromkeys((*_MEANS, *(f"pooled_{name}" for name in _MEANS[:3])), _NAN)
    n_prompts = np.bincount(case)
    has = n_prompts > 0
    by_name = dict(zip(_MEANS, values.T, strict=True))
    means: TableRow = {name: float((np.bincount(case, v)[has] / n_prompts[has]).mean()) for name, v in by_name.items()}
    return means | {f"pooled_{name}": float(by_name[name].mean()) for name in _MEANS[:3]}


def _test(found: GroupMean | None) -> TableRow:
    """Return the inference of the crossed mode, on every scale."""
    changes = found.changes if found else dict.fromkeys(CHANGES, Estimate(_NAN, note="nothing could be scored"))
    half = found.half if found else dict.fromkeys(CHANGES, 0)
    out: TableRow = changes["probability"].columns(*_TESTED, "effective", "note") | {"half_edits": half["probability"]}
    for name, scale in zip(SCALES, ("log-odds", "share"), strict=True):
        out |= changes[scale].columns(*_TESTED, prefix=f"{name}_") | {f"{name}_half_edits": half[scale]}
    return out


def _published(changes: Floats, case: NDArray[np.intp], n_cases: int, draws: int, seed: int) -> TableRow:
    """Return the papers' t-test over case means, with the bootstrap over cases as interval."""
    n_prompts = np.bincount(case, minlength=n_cases)
    has = n_prompts > 0
    means = np.bincount(case, changes, n_cases) / np.maximum(n_prompts, 1)
    t, p, note = t_test(means[has])
    ends = (_NAN,) * 3
    if draws and has.sum() > 1:
        ends = mean_interval(means, has.astype(np.float64), draws, seed)
    return dict(zip(("low", "high", "stderr"), ends)) | {"t": t, "p": p, "note": note}


# The same from plain columns.

_NAMES = {"subject": "person", "n_tokens_new": "n_new", "n_tokens_true": "n_true"}
_KINDS: dict[str, Kind] = {"case_id": ids, "prompt": labels, "subject": labels, "groups": text_lists}
_KINDS |= dict.fromkeys((*SIDES, "n_tokens_new", "n_tokens_true"), floats)


@dataclass(frozen=True, slots=True)
class BiasColumns:
    """One row per (case, prompt).

    Attributes:
        case_id: The edit each row was scored under.
        prompt, subject: The cloze prompt and the person it is about (an id is best).
        groups: Group tags of the person on one axis; several allowed, none = unknown.
        pre_new, pre_true, post_new, post_true: Log-probabilities of the new and the true target before and after the
            edit, nats, summed over target tokens.
        n_tokens_new, n_tokens_true: Target tokens per row; needed for score="normalised".
    """

    case_id: Sequence[int]
    prompt: Sequence[str]
    subject: Sequence[str]
    groups: Sequence[Sequence[str]]
    pre_new: Sequence[float]
    pre_true: Sequence[float]
    post_new: Sequence[float]
    post_true: Sequence[float]
    n_tokens_new: Sequence[int] | None = None
    n_tokens_true: Sequence[int] | None = None

    def frame(self) -> pd.DataFrame:
        """Return the rows with the column names of `pair_targets`.

        Raises:
            RecordError: Unequal lengths, no rows, repeated rows, or log-probabilities above 0.
        """
        given = {name: getattr(self, name) for name in _KINDS if getattr(self, name) is not None}
        frame = read_columns(_KINDS, given).rename(columns=_NAMES)
        for side in SIDES:
            check_logprobs(side, frame[side].to_numpy())
        twice = frame.duplicated(["case_id", "prompt", "person"])
        if twice.any():
            row = frame[twice].iloc[0]
            raise RecordError(
                f"{int(twice.sum())} rows repeat a (case_id, prompt, subject), first: case {row['case_id']}, prompt "
                f"{row['prompt']!r}. Drop the copies, or give different case ids to the cases of different runs."
            )
        finite = np.isfinite(frame[list(SIDES)].to_numpy())
        first_bad = (~finite).argmax(axis=1)
        frame["status"] = np.where(finite.all(axis=1), "ok", [f"{SIDES[i]}: not finite" for i in first_bad])
        return frame


def bias_of_columns(
    columns: BiasColumns,
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
        columns: The rows.
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
    check_form(score)
    one_of("mode", mode, get_args(BiasMode))
    check_axes([axis] if axis is not None else [])
    frame = add_differences(columns.frame(), score)
    names = set(members(frame["groups"]))
    if ALL in names:
        raise RecordError(f"a group is called {ALL!r}, which stands for everybody. Rename it.")
    if reference is not None and mode == "crossed":
        one_of(f"{axis} group" if axis else "group", reference, sorted(names - {UNKNOWN}))
    column = axis or "race"  # an axis of the caller is a column of the score table
    prompts = frame.assign(editor="", edit_relation="", holds="", **{column: frame["groups"]})
    table = group_effects(prompts, axes=[column], holds="", mode=mode, draws=draws, seed=seed)
    rows = table.drop(columns=["editor", "relation", "axis", "group"]).to_dict("records")
    groups = {group: {str(name): value for name, value in row.items()} for group, row in zip(table["group"], rows)}
    if mode == "crossed" and (frame["status"] == "ok").any():
        for group, contrast in _contrasts(prompts.assign(prompt_id=prompts["prompt"]), column, reference):
            groups[group]["contrast"] = contrast
    reasons = frame.loc[frame["status"] != "ok", "status"].value_counts()
    how = {
        "crossed": "clustered by edit and person (CR2, Satterthwaite df), none below 5 effective edits or people; "
        "contrasts Holm-adjusted",
        "paper": f"percentile bootstrap over cases, {draws} draws, seed {seed}; p: t-test over case means",
    }
    return {
        "overall": groups.pop(ALL),
        "groups": groups,
        "n_rows": len(frame),
        "n_unscored": int(reasons.sum()),
        "unscored": {str(reason): int(n) for reason, n in sorted(reasons.items())},
        "axis": axis,
        "score": score,
        "mode": mode,
        "method": f"means of case means; 95 % intervals: {how[mode]}",
    }


def _contrasts(prompts: pd.DataFrame, axis: str, reference: str | None) -> list[tuple[str, Mapping[str, object]]]:
    """Return each group's contrast with the reference within the same edits."""
    table = group_contrasts(prompts, [axis], {axis: reference} if reference is not None else None, holds="")
    if table.empty:
        return []
    for test in ("", *(f"{scale}_" for scale in SCALES)):  # a mirror is no second test: it has the p of the row before
        adjusted = pd.Series(adjust(table[f"{test}p"].mask(table["mirror"]).to_numpy()), table.index)
        table[f"{test}p_adjusted"] = adjusted.mask(table["mirror"], adjusted.shift())
    rows = table.drop(columns=["editor", "relation", "axis", "method", "group", "mirror"]).to_dict("records")
    return list(zip(table["group"], [{str(name): value for name, value in row.items()} for row in rows]))
