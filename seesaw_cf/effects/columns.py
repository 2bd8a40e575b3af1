"""The same effects from plain columns instead of a score table: what the `evaluate` modules compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pandas as pd

from seesaw_cf.effects.estimands import group_contrasts
from seesaw_cf.effects.groups import ALL, UNKNOWN, BiasMode, check_axes, members, summarise
from seesaw_cf.effects.pairs import SIDES, check_logprobs
from seesaw_cf.effects.prompts import ScoreForm, add_differences, check_form
from seesaw_cf.effects.properties import Mode, mark, summarise_accuracy
from seesaw_cf.errors import RecordError, unknown_name
from seesaw_cf.stats import adjust
from seesaw_cf.stats.plain import plain

__all__ = ["accuracy_of_columns", "bias_of_columns", "check_lengths"]


def check_lengths(columns: Mapping[str, Sequence[Any]]) -> int:
    """The common number of rows.

    Raises:
        RecordError: Columns are empty or of unequal length; all lengths are shown.
    """
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise RecordError(f"columns have unequal lengths {lengths}; give one value per row in every column.")
    if not any(lengths.values()):
        raise RecordError(f"no rows in {list(lengths)}; there is nothing to compute.")
    return next(iter(lengths.values()))


def _pairs(columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    check_lengths(columns)
    frame = pd.DataFrame({name: list(column) for name, column in columns.items()})
    for side in SIDES:
        frame[side] = frame[side].astype(np.float64)
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
    case_id: Sequence[int],
    prompt: Sequence[str],
    subject: Sequence[str],
    groups: Sequence[Sequence[str]],
    pre_new: Sequence[float],
    pre_true: Sequence[float],
    post_new: Sequence[float],
    post_true: Sequence[float],
    *,
    axis: str | None = None,
    reference: str | None = None,
    mode: BiasMode = "crossed",
    score: ScoreForm = "summed",
    n_tokens_new: Sequence[int] | None = None,
    n_tokens_true: Sequence[int] | None = None,
    draws: int = 2000,
    seed: int = 0,
) -> dict[str, Any]:
    """D per group of one axis from one row per (case, prompt); see `group_effects` for the numbers.

    Args:
        case_id: The edit each row was scored under.
        prompt, subject: The cloze prompt and the person it is about (an id is best).
        groups: Group tags of the person on one axis; several allowed, none = unknown.
        pre_new, pre_true, post_new, post_true: Log-probabilities of the new and the true target before and after the
            edit, nats, summed over target tokens.
        axis: "gender", "race", "region", or None for an axis of your own.
        reference: The group the others are contrasted with; None = everybody else who is tagged.
        mode: "crossed" clusters errors by edit and person and adds contrasts; "paper" gives the published t-test, with
            the bootstrap over cases as interval.
        score: See `seesaw_cf.effects.difference`.
        n_tokens_new, n_tokens_true: Target tokens per row; needed for score="normalised".
        draws, seed: Bootstrap over cases, for the paper mode.

    Returns:
        Plain JSON types: `overall` and `groups` (label -> numbers of `group_effects`), `n_rows`, `n_unscored`,
        `unscored` (reason -> rows), `axis`, `score`, `mode`, `method`. In the crossed mode each group also has
        `contrast` (difference in differences with p_adjusted, Holm over the groups; also in log-odds). A number that
        cannot be had is None, and `note` says why: below five effective edits or people there is no interval and no p.

    Raises:
        RecordError: Unequal lengths, no rows, repeated rows, values above 0, missing token counts.
        UnknownNameError: Unknown `axis`, `score`, `mode` or `reference`.
    """
    check_form(score)
    if mode not in get_args(BiasMode):
        raise unknown_name("mode", mode, get_args(BiasMode))
    check_axes([axis] if axis is not None else [])
    given: dict[str, Sequence[Any]] = {"case_id": case_id, "prompt": prompt, "person": subject, "groups": groups}
    given |= dict(zip(SIDES, (pre_new, pre_true, post_new, post_true)))
    tokens = {"n_new": n_tokens_new, "n_true": n_tokens_true}
    frame = _pairs(given | {name: counts for name, counts in tokens.items() if counts is not None})
    frame = add_differences(frame, score)
    by_group = {ALL: np.arange(len(frame))} | members(frame["groups"].tolist())
    rows = {row.pop("group"): row for row in summarise(frame, by_group, mode=mode, draws=draws, seed=seed)}
    if mode == "crossed":
        _contrast(frame, rows, axis, reference)
    reasons = frame.loc[frame["status"] != "ok", "status"].value_counts()
    result = {"overall": rows.pop(ALL), "groups": rows, "n_rows": len(frame), "n_unscored": int(reasons.sum())}
    unscored = {str(reason): int(n) for reason, n in sorted(reasons.items())}
    result |= {"unscored": unscored, "axis": axis, "score": score, "mode": mode}
    how = {
        "crossed": "clustered by edit and person (CR2, Satterthwaite df), none below 5 effective edits or people; "
        "contrasts Holm-adjusted",
        "paper": f"percentile bootstrap over cases, {draws} draws, seed {seed}; p: t-test over case means",
    }
    result["method"] = f"means of case means; 95 % intervals: {how[mode]}"
    return dict(plain(result))


def _contrast(frame: pd.DataFrame, rows: dict[str, dict[str, Any]], axis: str | None, reference: str | None) -> None:
    """Adds each group's contrast with the reference within the same edits."""
    usable = frame[frame["status"] == "ok"]
    if usable.empty:
        return
    known = sorted(set(members(usable["groups"].tolist())) - {UNKNOWN})
    if reference is not None and reference not in known:
        raise unknown_name(f"{axis} group" if axis else "group", reference, known)
    column = axis or "race"  # an axis of one's own stands in a column of the score table
    one = usable.assign(editor="", edit_relation="", holds="", prompt_id=usable["prompt"], **{column: usable["groups"]})
    contrasts = group_contrasts(one, column, reference, holds="")
    if contrasts.empty:
        return
    contrasts["p_adjusted"] = adjust(contrasts["p"].to_numpy())
    contrasts["log_odds_p_adjusted"] = adjust(contrasts["log_odds_p"].to_numpy())
    for found in contrasts.drop(columns=["editor", "relation", "axis", "method"]).to_dict("records"):
        rows[found.pop("group")]["contrast"] = found


def accuracy_of_columns(
    case_id: Sequence[int],
    edit_relation: Sequence[str],
    effect_relation: Sequence[str],
    prompt: Sequence[str],
    candidates: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str]],
    pre: Sequence[Sequence[float]],
    post: Sequence[Sequence[float]],
    *,
    mode: Mode = "exact",
    post_prompts: Sequence[str] | None = None,
    n_tokens: Sequence[Sequence[int]] | None = None,
    pre_prior: Sequence[Sequence[float]] | None = None,
    post_prior: Sequence[Sequence[float]] | None = None,
    groups: Sequence[Sequence[str]] | None = None,
    subject: Sequence[str] | None = None,
    draws: int = 2000,
    seed: int = 0,
) -> dict[str, Any]:
    """Accuracy per (edit relation, effect relation) from one row per case; see `cross_property` for the numbers.

    Args:
        case_id: The edit.
        edit_relation, effect_relation: The property edited and the property asked for.
        prompt: The prompt that was scored; the paper mode also needs it, for its substring match.
        candidates: The answers that were scored.
        gold: The true answers before the edit; none = the case is left out and counted.
        pre, post: Log-probabilities of the candidates before and after the edit, nats.
        mode: "exact" or "paper", see `seesaw_cf.effects.cross_property`.
        post_prompts: The prompts of the post-edit scores where they differ from `prompt` (published runs do).
        n_tokens: Tokens per candidate; adds `normalised`, where candidates are ranked by log-probability per token.
        pre_prior, post_prior: Log-probabilities of the candidates after a prompt without the subject; adds `pmi`, where
            candidates are ranked by how much the subject raises them (pointwise mutual information).
        groups: Group tags of the case's subject; adds `groups` to each pair.
        subject: The person of each case, where one person stands in several: errors are then clustered by person.
        draws, seed: Bootstrap over cases, for the paper mode.

    Returns:
        Plain JSON types: `pairs` ("P21/P101" -> numbers), `average` (unweighted `pre`, `post`, `change` over the pairs
        that have cases; the paper mode counts pairs whose cases are all unanswerable as 0), `mode`, `method`.

    Raises:
        RecordError: Unequal lengths, no rows, repeated cases or candidates, values above 0.
        UnknownNameError: Unknown `mode`.
    """
    given: dict[str, Sequence[Any]] = {"case_id": case_id, "edit_relation": edit_relation}
    given |= {"effect_relation": effect_relation, "prompt_pre": prompt, "candidates": candidates, "gold": gold}
    given |= {"pre": pre, "post": post, "prompt_post": prompt if post_prompts is None else post_prompts}
    if subject is not None:
        given["person"] = subject
    check_lengths(given)
    frame = pd.DataFrame({name: list(column) for name, column in given.items()})
    twice = frame.duplicated(["case_id", "edit_relation", "effect_relation"])
    if twice.any():
        first = frame.loc[twice, "case_id"].iloc[0]
        raise RecordError(f"{int(twice.sum())} cases occur more than once, first: case {first}. Drop the copies.")
    keys = ["edit_relation", "effect_relation"]
    forms = {"raw": frame} | _adjusted(frame, n_tokens, pre_prior, post_prior)
    tables = {
        form: {
            "/".join(map(str, key)): summarise_accuracy(rows, mode=mode, draws=draws, seed=seed)
            for key, rows in mark(one, mode).groupby(keys, sort=True)
        }
        for form, one in forms.items()
    }
    pairs = tables.pop("raw")
    for form, table in tables.items():
        for name, row in table.items():
            pairs[name][form] = row
    if groups is not None:
        check_lengths({"case_id": case_id, "groups": groups})
        marked = mark(frame, mode).assign(tags=pd.Series(list(groups), dtype=object))
        for key, rows in marked.groupby(keys, sort=True):
            pairs["/".join(map(str, key))]["groups"] = {
                group: summarise_accuracy(rows.iloc[at], mode=mode, draws=draws, seed=seed)
                for group, at in members(rows["tags"].tolist()).items()
            }
    counted = [pair for pair in pairs.values() if pair["n"]]
    if mode == "paper":  # as published: a pair none of whose cases can be answered counts as 0 in the average
        nothing = dict.fromkeys(("pre", "post", "change"), 0.0)
        counted += [nothing for pair in pairs.values() if not pair["n"] and pair["n_no_candidate"]]
    average = {k: float(np.mean([pair[k] for pair in counted])) if counted else None for k in ("pre", "post", "change")}
    change = {
        "exact": "Newcombe's paired interval, clustered by person, none below 5 effective; p: McNemar's exact test, "
        "where a person stands in several cases the clustered one",
        "paper": f"bootstrap over cases, {draws} draws, seed {seed}; p: unpaired t-test",
    }
    method = f"95 %; shares: Wilson intervals; change: {change[mode]}"
    return dict(plain({"pairs": pairs, "average": average, "mode": mode, "method": method}))


def _adjusted(
    frame: pd.DataFrame,
    n_tokens: Sequence[Sequence[int]] | None,
    pre_prior: Sequence[Sequence[float]] | None,
    post_prior: Sequence[Sequence[float]] | None,
) -> dict[str, pd.DataFrame]:
    """Frames whose scores are per token, or relative to a prior; shifted per case so that none is above 0."""
    priors = {"pre": pre_prior, "post": post_prior}
    if (pre_prior is None) != (post_prior is None):
        raise RecordError("pmi needs pre_prior and post_prior: the same prompt without the subject before and after.")
    found = {}
    if n_tokens is not None:
        found["normalised"] = {phase: _per_case(frame, phase, n_tokens, np.divide) for phase in priors}
    if pre_prior is not None and post_prior is not None:
        found["pmi"] = {phase: _per_case(frame, phase, prior or [], np.subtract) for phase, prior in priors.items()}
    return {form: frame.assign(**columns) for form, columns in found.items()}


def _per_case(frame: pd.DataFrame, phase: str, by: Sequence[Sequence[float]], change: Any) -> list[Any]:
    check_lengths({"case_id": frame["case_id"].tolist(), "adjustment": by})
    out = []
    for case, scores, other in zip(frame["case_id"], frame[phase], by):
        check_lengths({f"case {case}, {phase}": scores, "adjustment": other})
        values = change(np.asarray(scores, dtype=np.float64), np.asarray(other, dtype=np.float64))
        out.append(values - np.nanmax(values))
    return out
