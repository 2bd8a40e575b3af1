"""The same effects from plain columns instead of a score table: what the `evaluate` modules compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, get_args

import numpy as np
import pandas as pd

from seesaw_cf.base import checks
from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.accuracy import Accuracy, Mode, mark, summarise_accuracy
from seesaw_cf.effects.estimands import group_contrasts
from seesaw_cf.effects.groups import ALL, SCALES, UNKNOWN, BiasMode, GroupEffect, check_axes, members, summarise
from seesaw_cf.effects.prompts import SIDES, ScoreForm, add_differences, check_form, check_logprobs
from seesaw_cf.effects.reader import check_lengths, float_lists, floats, ids, labels, read_columns, text_lists
from seesaw_cf.stats import adjust

T = TypeVar("T")
_PAIRS = {"case_id": ids, "prompt": labels, "subject": labels, "groups": text_lists, "n_tokens_new": floats}
_NAMES = {"subject": "person", "n_tokens_new": "n_new", "n_tokens_true": "n_true"}
_PAIRS |= dict.fromkeys((*SIDES, "n_tokens_true"), floats)


def _pairs(columns: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    frame = read_columns(_PAIRS, columns).rename(columns=_NAMES)
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
        columns: dict[str, Sequence[object]] = {"case_id": self.case_id, "prompt": self.prompt}
        columns |= {"subject": self.subject, "groups": self.groups} | {side: getattr(self, side) for side in SIDES}
        tokens = {"n_tokens_new": self.n_tokens_new, "n_tokens_true": self.n_tokens_true}
        return _pairs(columns | {name: counts for name, counts in tokens.items() if counts is not None})


@dataclass(frozen=True, slots=True)
class AxisBias:
    """D on one axis.

    Attributes:
        overall: Of all people.
        groups: Label -> its effect.
        contrasts: Label -> its difference in differences with the reference, `p_adjusted` (Holm over the groups), the
            same in log-odds and share; of the crossed mode only.
        n_rows: Rows given.
        unscored: Reason -> rows left out for it.
        axis, score, mode, method: As they were asked for; how the intervals and tests were made.
    """

    overall: GroupEffect
    groups: Mapping[str, GroupEffect]
    contrasts: Mapping[str, Mapping[str, object]]
    n_rows: int
    unscored: Mapping[str, int]
    axis: str | None
    score: ScoreForm
    mode: BiasMode
    method: str

    def row(self) -> JsonObject:
        """Return the numbers under the names that `evaluate` gives them."""
        groups = {name: _without_name(effect) for name, effect in self.groups.items()}
        for name, contrast in self.contrasts.items():
            groups[name]["contrast"] = contrast
        out: JsonObject = {"overall": _without_name(self.overall), "groups": groups}
        out |= {"n_rows": self.n_rows, "n_unscored": sum(self.unscored.values()), "unscored": self.unscored}
        return out | {name: getattr(self, name) for name in ("axis", "score", "mode", "method")}


def _without_name(effect: GroupEffect) -> JsonObject:
    return {name: value for name, value in effect.row().items() if name != "group"}


def bias_of_columns(
    columns: BiasColumns,
    *,
    axis: str | None = None,
    reference: str | None = None,
    mode: BiasMode = "crossed",
    score: ScoreForm = "summed",
    draws: int = 2000,
    seed: int = 0,
) -> AxisBias:
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
        The effects; a number that cannot be estimated is NaN, and `note` gives the reason: below five effective edits
        or people neither interval nor p exists.

    Raises:
        RecordError: Unequal lengths, no rows, repeated rows, values above 0, missing token counts, a group called
            "all".
        UnknownNameError: Unknown `axis`, `score`, `mode` or `reference`.
    """
    check_form(score)
    one_of("mode", mode, get_args(BiasMode))
    check_axes([axis] if axis is not None else [])
    frame = add_differences(columns.frame(), score)
    tagged = members(frame["groups"])
    if ALL in tagged:
        raise RecordError(f"a group is called {ALL!r}, which stands for everybody. Rename it.")
    by_group = {ALL: np.arange(len(frame))} | tagged
    groups = {effect.group: effect for effect in summarise(frame, by_group, mode=mode, draws=draws, seed=seed)}
    reasons = frame.loc[frame["status"] != "ok", "status"].value_counts()
    how = {
        "crossed": "clustered by edit and person (CR2, Satterthwaite df), none below 5 effective edits or people; "
        "contrasts Holm-adjusted",
        "paper": f"percentile bootstrap over cases, {draws} draws, seed {seed}; p: t-test over case means",
    }
    contrasts = _contrasts(frame, axis, reference) if mode == "crossed" else {}
    unscored = {str(reason): int(n) for reason, n in sorted(reasons.items())}
    method = f"means of case means; 95 % intervals: {how[mode]}"
    return AxisBias(groups.pop(ALL), groups, contrasts, len(frame), unscored, axis, score, mode, method)


def _contrasts(frame: pd.DataFrame, axis: str | None, reference: str | None) -> dict[str, JsonObject]:
    """Return each group's contrast with the reference within the same edits."""
    usable = frame[frame["status"] == "ok"]
    if usable.empty:
        return {}
    names = sorted(set(members(usable["groups"])) - {UNKNOWN})
    if reference is not None:
        one_of(f"{axis} group" if axis else "group", reference, names)
    column = axis or "race"  # an axis of the caller is a column of the score table
    prompts = usable.assign(
        editor="", edit_relation="", holds="", prompt_id=usable["prompt"], **{column: usable["groups"]}
    )
    contrasts = group_contrasts(prompts, column, reference, holds="")
    if contrasts.empty:
        return {}
    tests = ("", *(f"{scale}_" for scale in SCALES))
    mirror = contrasts["mirror"]
    for test in tests:  # a mirror is no second test, and has the p of the row before it
        adjusted = pd.Series(adjust(contrasts[f"{test}p"].mask(mirror).to_numpy()), contrasts.index)
        contrasts[f"{test}p_adjusted"] = adjusted.mask(mirror, adjusted.shift())
    rows = contrasts.drop(columns=["editor", "relation", "axis", "method", "group", "mirror"]).to_dict("records")
    return {group: {str(name): value for name, value in row.items()} for group, row in zip(contrasts["group"], rows)}


_CASES = {"case_id": ids, "candidates": text_lists, "gold": text_lists, "pre": float_lists, "post": float_lists}
_CASES |= dict.fromkeys(("edit_relation", "effect_relation", "prompt", "post_prompts", "subject"), labels)


@dataclass(frozen=True, slots=True)
class AccuracyColumns:
    """One row per case.

    Attributes:
        case_id: The edit.
        edit_relation, effect_relation: The property edited and the property asked for.
        prompt: The prompt that was scored; the paper mode also needs it, for its substring match.
        candidates: The answers that were scored.
        gold: The true answers before the edit; none = the case is left out and counted.
        pre, post: Log-probabilities of the candidates before and after the edit, nats.
        post_prompts: The prompts of the post-edit scores where they differ from `prompt` (published runs do).
        n_tokens: Tokens per candidate; adds `normalised`, where candidates are ranked by log-probability per token.
        pre_prior, post_prior: Log-probabilities of the candidates after a prompt without the subject; adds `pmi`, where
            candidates are ranked by how much the subject raises them (pointwise mutual information).
        groups: Group tags of the case's subject; adds `groups` to each pair.
        subject: The person of each case, where one person is in several: errors are then clustered by person.
    """

    case_id: Sequence[int]
    edit_relation: Sequence[str]
    effect_relation: Sequence[str]
    prompt: Sequence[str]
    candidates: Sequence[Sequence[str]]
    gold: Sequence[Sequence[str]]
    pre: Sequence[Sequence[float]]
    post: Sequence[Sequence[float]]
    post_prompts: Sequence[str] | None = None
    n_tokens: Sequence[Sequence[int]] | None = None
    pre_prior: Sequence[Sequence[float]] | None = None
    post_prior: Sequence[Sequence[float]] | None = None
    groups: Sequence[Sequence[str]] | None = None
    subject: Sequence[str] | None = None

    def frame(self) -> pd.DataFrame:
        """Return the rows with the column names of `answers`.

        Raises:
            RecordError: Unequal lengths, no rows, or repeated cases.
        """
        after = self.prompt if self.post_prompts is None else self.post_prompts
        columns: dict[str, Sequence[object]] = {"case_id": self.case_id, "edit_relation": self.edit_relation}
        columns |= {"effect_relation": self.effect_relation, "prompt": self.prompt, "candidates": self.candidates}
        columns |= {"gold": self.gold, "pre": self.pre, "post": self.post, "post_prompts": after}
        frame = read_columns(_CASES, columns if self.subject is None else columns | {"subject": self.subject})
        frame = frame.rename(columns={"prompt": "prompt_pre", "post_prompts": "prompt_post", "subject": "person"})
        twice = frame.duplicated(["case_id", "edit_relation", "effect_relation"])
        if twice.any():
            first = frame.loc[twice, "case_id"].iloc[0]
            raise RecordError(f"{int(twice.sum())} cases occur more than once, first: case {first}. Drop the copies.")
        return frame


@dataclass(frozen=True, slots=True)
class PairAccuracies:
    """Accuracy of pairs of properties, each pair named as in "P21/P101".

    Attributes:
        pairs: Pair -> its accuracy.
        forms: "normalised" and "pmi", as far as they were asked for -> pair -> its accuracy in that form.
        groups: Pair -> group -> accuracy of its cases; None when no groups were given.
        average: Unweighted `pre`, `post` and `change` over the pairs that have cases; the paper mode counts a pair as 0
            when all its cases are unanswerable.
        mode: As it was asked for.
        method: How the intervals and tests were made.
    """

    pairs: Mapping[str, Accuracy]
    forms: Mapping[str, Mapping[str, Accuracy]]
    groups: Mapping[str, Mapping[str, Accuracy]] | None
    average: Mapping[str, float | None]
    mode: Mode
    method: str

    def row(self) -> JsonObject:
        """Return the numbers under the names that `evaluate` gives them."""
        rows = {name: accuracy.row() for name, accuracy in self.pairs.items()}
        for name, row in rows.items():
            row |= {form: table[name].row() for form, table in self.forms.items() if name in table}
            if self.groups is not None:
                row["groups"] = {group: accuracy.row() for group, accuracy in self.groups[name].items()}
        return {"pairs": rows, "average": self.average, "mode": self.mode, "method": self.method}


def accuracy_of_columns(
    columns: AccuracyColumns, *, mode: Mode = "exact", draws: int = 2000, seed: int = 0
) -> PairAccuracies:
    """Return accuracy per (edit relation, effect relation) from one row per case; see `cross_property` for the numbers.

    Args:
        columns: The rows.
        mode: "exact" or "paper", see `seesaw_cf.effects.cross_property`.
        draws, seed: Bootstrap over cases, for the paper mode.

    Returns:
        The accuracies and their average.

    Raises:
        RecordError: Unequal lengths, no rows, repeated cases or candidates, values above 0, token counts below 1.
        UnknownNameError: Unknown `mode`.
    """
    frame = columns.frame()
    summary = partial(summarise_accuracy, mode=mode, draws=draws, seed=seed)
    forms = {"raw": frame} | _adjusted(frame, columns)
    tables = {form: _by_pair(mark(cases, mode), summary) for form, cases in forms.items()}
    pairs = tables.pop("raw")
    groups: dict[str, dict[str, Accuracy]] | None = None
    if columns.groups is not None:
        check_lengths({"case_id": columns.case_id, "groups": columns.groups})
        marked = mark(frame, mode).assign(tags=pd.Series(list(columns.groups), dtype=object))
        groups = _by_pair(marked, partial(_by_tag, summary))
    change = {
        "exact": "Newcombe's paired interval, clustered by person, none below 5 effective; p: McNemar's exact test, "
        "where a person is in several cases the clustered one",
        "paper": f"bootstrap over cases, {draws} draws, seed {seed}; p: unpaired t-test",
    }
    method = f"95 %; shares: Wilson intervals; change: {change[mode]}"
    return PairAccuracies(pairs, tables, groups, _average(list(pairs.values()), mode), mode, method)


def _by_pair(marked: pd.DataFrame, summary: Callable[[pd.DataFrame], T]) -> dict[str, T]:
    pairs = marked.groupby(["edit_relation", "effect_relation"], sort=True)
    return {"/".join(map(str, key)): summary(rows) for key, rows in pairs}


def _by_tag(summary: Callable[[pd.DataFrame], T], rows: pd.DataFrame) -> dict[str, T]:
    return {group: summary(rows.iloc[at]) for group, at in members(rows["tags"]).items()}


def _average(pairs: Sequence[Accuracy], mode: Mode) -> dict[str, float | None]:
    counted = [(pair.pre.value, pair.post.value, pair.change.value) for pair in pairs if pair.n]
    if mode == "paper":  # as published: a pair none of whose cases can be answered counts as 0 in the average
        counted += [(0.0, 0.0, 0.0) for pair in pairs if not pair.n and pair.left_out["n_no_candidate"]]
    means = [float(np.mean(values)) for values in zip(*counted)] if counted else [None] * 3
    return dict(zip(("pre", "post", "change"), means))


def _adjusted(frame: pd.DataFrame, columns: AccuracyColumns) -> dict[str, pd.DataFrame]:
    """Return frames with scores per token, or relative to a prior, shifted per case so that none is above 0."""
    n_tokens, pre_prior, post_prior = columns.n_tokens, columns.pre_prior, columns.post_prior
    if (pre_prior is None) != (post_prior is None):
        raise RecordError("pmi needs pre_prior and post_prior: the same prompt without the subject before and after.")
    forms = {}
    if n_tokens is not None:
        checks.each("n_tokens", n_tokens, partial(checks.each, check=partial(checks.whole, low=1)))
        forms["normalised"] = {phase: _per_case(frame, phase, n_tokens, np.divide) for phase in ("pre", "post")}
    if pre_prior is not None and post_prior is not None:
        priors = {"pre": pre_prior, "post": post_prior}
        for phase, prior in priors.items():
            for case, values in zip(frame["case_id"], float_lists(f"{phase}_prior", prior)):
                check_logprobs(f"case {case}, {phase}_prior", values)
        forms["pmi"] = {phase: _per_case(frame, phase, prior, np.subtract) for phase, prior in priors.items()}
    return {form: frame.assign(**columns) for form, columns in forms.items()}


def _per_case(frame: pd.DataFrame, phase: str, by: Sequence[Sequence[float]], change: np.ufunc) -> list[Any]:
    check_lengths({"case_id": frame["case_id"].tolist(), "adjustment": by})
    out = []
    for case, scores, other in zip(frame["case_id"], frame[phase], by):
        check_lengths({f"case {case}, {phase}": scores, "adjustment": other})
        values = change(np.asarray(scores, dtype=np.float64), np.asarray(other, dtype=np.float64))
        out.append(values - np.nanmax(values))
    return out
