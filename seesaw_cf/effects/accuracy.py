"""Accuracy on another property before and after an edit, of one set of cases or of every pair of relations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats as scipy_stats
from scipy.special import expit

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.effects.answers import Mode, answers, mark
from seesaw_cf.effects.means import SCALES, members, plain_mean
from seesaw_cf.effects.prompts import check_logprobs
from seesaw_cf.effects.tables import (
    Columns,
    Kind,
    Scores,
    check_lengths,
    float_lists,
    ids,
    labels,
    read_columns,
    refuse_rows,
    text_lists,
)
from seesaw_cf.stats.bootstrap import Floats, mean_interval
from seesaw_cf.stats.simple import agreeing, mcnemar, paired_change, proportion

_LEFT = {"n_no_candidate": "unanswerable", "n_no_gold": "no gold", "n_unscored": "unscored"}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Accuracy on an effect property before and after the edit, of one set of cases.

    Attributes:
        estimates: "pre", "post": shares of right answers (Wilson, 95 %). "change": after minus before. Exact mode:
            Newcombe's paired interval, with as many cases as the errors clustered by person allow, and McNemar's exact
            test, the clustered one where a person is in several cases. They agree, see `seesaw_cf.stats.agreeing`; NaN
            below five effective people, with a `note`. Paper mode: bootstrap over cases, unpaired t-test. "share":
            change of the gold answers' share of the candidates' probability, in -1..1, clustered by person, no interval
            below five effective, of the cases in which some candidates are right and some are not; "log_odds": the
            change of that share's log-odds, nats.
        ranks: "pre_mrr", "post_mrr" (mean reciprocal rank of the best gold candidate), "pre_top5", "post_top5" (gold
            among the five most likely; ties count against it).
        chance: Accuracy of a uniform guess.
        majority: Accuracy of the best constant answer.
        counts: "n" cases; "lost" and "gained" answers that were right only before, and only after; "n_no_candidate"
            (unanswerable; among the `n` in the exact mode only), "n_no_gold" and "n_unscored" cases.
    """

    estimates: Mapping[str, Estimate]
    ranks: Mapping[str, float]
    chance: float
    majority: float
    counts: Mapping[str, int]

    def row(self) -> JsonObject:
        """Return the columns of a table row."""
        change, out = self.estimates["change"], dict[str, object]()
        for name, estimate in self.estimates.items():
            out |= {"change": change.value} if name == "change" else estimate.limits(name)
        for name in SCALES:
            out |= self.estimates[name].columns("p", prefix=f"{name}_")
        out |= change.columns("low", "high", "stderr", "p", "note") | {"n_odds": self.estimates["share"].n}
        if "person" in change.effective:
            out["effective"] = change.effective["person"]
        return out | dict(self.ranks) | {"chance": self.chance, "majority": self.majority} | dict(self.counts)


def summarise_accuracy(marked: pd.DataFrame, *, mode: Mode = "exact", draws: int = 2000, seed: int = 0) -> Accuracy:
    """Return accuracy before and after, and its change, of one set of cases; see `cross_property` for the arguments."""
    counted = ("ok",) if mode == "paper" else ("ok", "unanswerable")
    rows = marked[marked["status"].isin(counted)].sort_values("case_id", kind="stable")
    n = len(rows)
    pre, post = (rows[f"{phase}_correct"].to_numpy(bool) for phase in ("pre", "post"))
    ranks = {}
    for phase in ("pre", "post"):
        rank = rows[f"{phase}_rank"].to_numpy(np.float64)
        rank[rank == 0] = np.inf  # no gold label is a candidate
        ranks[f"{phase}_mrr"] = float((1 / rank).mean()) if n else float("nan")
        ranks[f"{phase}_top5"] = float((rank <= 5).mean()) if n else float("nan")
    odds = rows.loc[np.isfinite(rows[["pre_odds", "post_odds"]].to_numpy(np.float64)).all(axis=1)]
    before, after = (odds[f"{phase}_odds"].to_numpy(np.float64) for phase in ("pre", "post"))
    estimates = {
        "pre": proportion(int(pre.sum()), n),
        "post": proportion(int(post.sum()), n),
        "change": _published(pre, post, draws, seed) if mode == "paper" else paired_shares(rows, pre, post),
        "share": _by_person(odds, expit(after) - expit(before)),
        "log_odds": _by_person(odds, after - before),
    }
    counts = {"n": n, "lost": int((pre & ~post).sum()), "gained": int((post & ~pre).sum())}
    counts |= {name: int((marked["status"] == status).sum()) for name, status in _LEFT.items()}
    chance = [len(set(g) & set(c)) / len(c) for g, c in zip(rows["gold"], rows["candidates"])]
    most = Counter(label for labels in rows["gold"] for label in set(labels)).most_common(1)
    shares = (float(np.mean(chance)), most[0][1] / n if most else float("nan")) if n else (float("nan"),) * 2
    return Accuracy(estimates, ranks, *shares, counts)


def _change(pre: NDArray[np.bool_], post: NDArray[np.bool_]) -> float:
    """Return the share of answers gained minus the share lost."""
    lost, gained = int((pre & ~post).sum()), int((post & ~pre).sum())
    return (gained - lost) / pre.size if pre.size else float("nan")


def paired_shares(rows: pd.DataFrame, pre: NDArray[np.bool_], post: NDArray[np.bool_]) -> Estimate:
    """Return the share `post` minus the share `pre` of the same cases; people who are in several cases lower the
    effective number of cases.

    Args:
        rows: One row per case, with `person` (or each case counts as one person: `case_id`).
        pre, post: (cases,) what is true of each case on either side.

    Returns:
        Newcombe's paired interval and McNemar's test, none below five effective people, with a `note`. They
        agree, see `agreeing`.
    """
    if not len(rows):
        return Estimate(float("nan"), effective={"person": 0.0}, note="no case")
    n, change = len(rows), post.astype(float) - pre
    estimate = replace(_by_person(rows, change), value=_change(pre, post))
    if estimate.note.startswith("too few"):
        return estimate
    people = estimate.clusters["person"]
    alone = people == n
    independent = n if alone else people if estimate.note else min(n, float(change.var(ddof=1)) / estimate.stderr**2)
    p = estimate.p
    if alone or estimate.note:  # where all cases changed alike, a person counts once
        lost, gained = int((pre & ~post).sum()), int((post & ~pre).sum())
        p = mcnemar(*(round(count * independent / n) for count in (lost, gained)))
    low, high, p = agreeing(*paired_change(pre, post, independent), p)
    return replace(estimate, low=low, high=high, p=p, note="")


def _by_person(rows: pd.DataFrame, values: Floats) -> Estimate:
    """Return the mean of one value per case, clustered by person."""
    if not len(rows):
        return Estimate(float("nan"), note="no case")
    return plain_mean(values, {"person": pd.factorize(rows["person" if "person" in rows else "case_id"], sort=True)[0]})


def _published(pre: NDArray[np.bool_], post: NDArray[np.bool_], draws: int, seed: int) -> Estimate:
    """Return the change with a bootstrap over cases as interval, and p of the papers' test: a t-test that ignores that
    pre and post are the same cases."""
    low, high, stderr, p = (float("nan"),) * 4
    if pre.size > 1 and draws:
        low, high, stderr = mean_interval(post.astype(float) - pre, np.ones(pre.size), draws, seed)
    if pre.size > 1 and (pre.std() or post.std()):
        (m1, s1), (m2, s2) = ((float(side.mean()), float(side.std(ddof=1))) for side in (post, pre))
        p = float(scipy_stats.ttest_ind_from_stats(m1, s1, post.size, m2, s2, pre.size).pvalue)
    return Estimate(_change(pre, post), low, high, stderr, p, n=pre.size)


def accuracy_table(marked: pd.DataFrame, *, mode: Mode = "exact", draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Return `summarise_accuracy` of every editor and pair of relations, as `cross_property` gives it."""
    keys = ["editor", "edit_relation", "effect_relation"]
    return pd.DataFrame(
        dict(zip(keys, key)) | summarise_accuracy(rows, mode=mode, draws=draws, seed=seed).row()
        for key, rows in marked.groupby(keys, sort=True)
    )


def cross_property(scores: Scores, *, mode: Mode = "exact", draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Return accuracy on the effect property before and after the edit, per (editor, edit relation, effect relation).

    Args:
        scores: A score table with rows of kind "cross_property".
        mode: "exact": the prompt that names the property, exact labels, ties fail. "paper": the first stored prompt of
            each phase, substring match, unanswerable cases left out, unpaired t-test: the published tables.
        draws, seed: Bootstrap over cases for the change in the paper mode.

    Returns:
        The columns of `Accuracy.row`.

    Raises:
        RecordError: As `answers`.
        UnknownNameError: Unknown `mode`.

    Source: SEESAW-CF section 4.2, Tables 4 and 5.
    Deviates: the exact mode; see `mark` for what the published rule counts as correct.
    """
    return accuracy_table(mark(answers(scores, mode=mode), mode), mode=mode, draws=draws, seed=seed)


# The same from plain columns: what the `evaluate` module computes.

COLUMNS: dict[str, Kind] = {"case_id": ids, "edit_relation": labels, "effect_relation": labels, "prompt": labels}
COLUMNS |= {"candidates": text_lists, "gold": text_lists, "pre": float_lists, "post": float_lists}
_OPTIONAL: dict[str, Kind] = {"post_prompts": labels, "subject": labels, "groups": text_lists}
_OPTIONAL |= {"pre_prior": float_lists, "post_prior": float_lists}
_OPTIONAL["n_tokens"] = partial(checks.each, check=partial(checks.whole, low=1))
COLUMNS |= _OPTIONAL


def _read(columns: Columns) -> pd.DataFrame:
    """Return rows with the column names of `answers`."""
    frame = read_columns(COLUMNS, columns, _OPTIONAL)
    after = frame["post_prompts" if "post_prompts" in frame else "prompt"]
    frame = frame.assign(prompt_post=after).rename(columns={"prompt": "prompt_pre", "subject": "person"})
    keys = ["case_id", "edit_relation", "effect_relation"]
    refuse_rows(frame, frame.duplicated(keys), keys, "every case once: drop the copies")
    return frame


def accuracy_of_columns(columns: Columns, *, mode: Mode = "exact", draws: int = 2000, seed: int = 0) -> JsonObject:
    """Return accuracy per (edit relation, effect relation) from one row per case; see `cross_property` for the numbers.

    Args:
        columns: `case_id`, the edit; `edit_relation` and `effect_relation`, the property edited and the one asked for;
            `prompt`, which the paper mode also needs for its substring match; `candidates`, the answers that were
            scored; `gold`, the true answers before the edit (none = the case is left out and counted); `pre` and
            `post`, log-probabilities of the candidates before and after the edit, nats. Where there are any:
            `post_prompts` of the post-edit scores that differ from `prompt` (published runs do); `n_tokens` per
            candidate, which adds `normalised`, where candidates are ranked by log-probability per token; `pre_prior`
            and `post_prior` of the candidates after a prompt without the subject, which add `pmi`, where candidates
            are ranked by how much the subject raises them (pointwise mutual information); `groups`, tags of the case's
            subject, which add `groups` to each pair; `subject`, where one is in several cases: errors are then
            clustered by person.
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
    frame = _read(columns)
    summary = partial(summarise_accuracy, mode=mode, draws=draws, seed=seed)
    forms = {form: mark(cases, mode) for form, cases in _adjusted(frame).items()}
    pairs: JsonObject = {}
    accuracies = []
    for key, rows in mark(frame, mode).groupby(["edit_relation", "effect_relation"], sort=True):
        accuracies.append(summary(rows))
        row = accuracies[-1].row() | {form: summary(own.loc[rows.index]).row() for form, own in forms.items()}
        if "groups" in rows:
            row["groups"] = {group: summary(rows.iloc[at]).row() for group, at in members(rows["groups"]).items()}
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
    return {name: float(np.mean([own[at] for own in counted])) if counted else None for at, name in enumerate(names)}


def _adjusted(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return frames with scores per token, or relative to a prior, shifted per case so that none is above 0."""
    if ("pre_prior" in frame) != ("post_prior" in frame):
        raise RecordError("pmi needs pre_prior and post_prior: the same prompt without the subject before and after.")
    by = {"normalised": ("n_tokens", "n_tokens", np.divide), "pmi": ("pre_prior", "post_prior", np.subtract)}
    return {
        form: frame.assign(pre=_per_case(frame, "pre", pre, change), post=_per_case(frame, "post", post, change))
        for form, (pre, post, change) in by.items()
        if pre in frame
    }


def _per_case(frame: pd.DataFrame, phase: str, by: str, change: np.ufunc) -> list[Any]:
    out = []
    for case, scores, other in zip(frame["case_id"], frame[phase], frame[by]):
        check_lengths({f"case {case}, {phase}": scores, "adjustment": other})
        if change is np.subtract:
            check_logprobs(f"case {case}, {by}", other)
        values = change(scores, np.asarray(other, dtype=np.float64))
        out.append(values - np.nanmax(values))
    return out
