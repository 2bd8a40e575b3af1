"""Accuracy on another property from plain columns instead of a score table: what the `evaluate` module computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.accuracy import Accuracy, summarise_accuracy
from seesaw_cf.effects.answers import Mode, mark
from seesaw_cf.effects.groups import members
from seesaw_cf.effects.prompts import check_logprobs
from seesaw_cf.effects.reader import check_lengths, float_lists, ids, labels, read_columns, text_lists

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


def accuracy_of_columns(
    columns: AccuracyColumns, *, mode: Mode = "exact", draws: int = 2000, seed: int = 0
) -> JsonObject:
    """Return accuracy per (edit relation, effect relation) from one row per case; see `cross_property` for the numbers.

    Args:
        columns: The rows.
        mode: "exact" or "paper", see `seesaw_cf.effects.cross_property`.
        draws, seed: Bootstrap over cases, for the paper mode.

    Returns:
        `pairs`: "P21/P101" -> the columns of `Accuracy.row`, the same by log-probability per token (`normalised`) and
        relative to a prior (`pmi`) as far as they were asked for, and by group; `average`: unweighted `pre`, `post` and
        `change` over the pairs that have cases; the paper mode counts a pair as 0 when all its cases are unanswerable.

    Raises:
        RecordError: Unequal lengths, no rows, repeated cases or candidates, values above 0, token counts below 1.
        UnknownNameError: Unknown `mode`.
    """
    frame = columns.frame()
    if columns.groups is not None:
        check_lengths({"case_id": columns.case_id, "groups": columns.groups})
        frame["tags"] = pd.Series(list(columns.groups), dtype=object)
    summary = partial(summarise_accuracy, mode=mode, draws=draws, seed=seed)
    adjusted, marked = _adjusted(frame, columns), mark(frame, mode)
    forms = {form: mark(cases, mode) for form, cases in adjusted.items()}
    pairs: JsonObject = {}
    accuracies = []
    for key, rows in marked.groupby(["edit_relation", "effect_relation"], sort=True):
        accuracies.append(summary(rows))
        row = accuracies[-1].row() | {form: summary(own.loc[rows.index]).row() for form, own in forms.items()}
        if columns.groups is not None:
            row["groups"] = {group: summary(rows.iloc[at]).row() for group, at in members(rows["tags"]).items()}
        pairs["/".join(map(str, key))] = row
    change = {
        "exact": "Newcombe's paired interval, clustered by person, none below 5 effective; p: McNemar's exact test, "
        "where a person is in several cases the clustered one",
        "paper": f"bootstrap over cases, {draws} draws, seed {seed}; p: unpaired t-test",
    }
    method = f"95 %; shares: Wilson intervals; change: {change[mode]}"
    return {"pairs": pairs, "average": _average(accuracies, mode), "mode": mode, "method": method}


def _average(pairs: Sequence[Accuracy], mode: Mode) -> dict[str, float | None]:
    names = ("pre", "post", "change")
    counted = [[pair.estimates[name].value for name in names] for pair in pairs if pair.counts["n"]]
    if mode == "paper":  # as published: a pair none of whose cases can be answered counts as 0 in the average
        counted += [[0.0] * 3 for pair in pairs if not pair.counts["n"] and pair.counts["n_no_candidate"]]
    means = [float(np.mean(values)) for values in zip(*counted)] if counted else [None] * 3
    return dict(zip(names, means))


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
