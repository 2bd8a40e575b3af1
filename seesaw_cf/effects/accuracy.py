"""Accuracy on another property before and after an edit, of one set of cases or of every pair of relations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats as scipy_stats
from scipy.special import expit

from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.effects.answers import Mode, answers, mark
from seesaw_cf.effects.groups import SCALES
from seesaw_cf.effects.scores import Scores
from seesaw_cf.stats import agreeing, clustered_mean, mcnemar, paired_change, proportion
from seesaw_cf.stats.bootstrap import Floats, mean_interval

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
    return Accuracy(estimates, ranks, _chance(rows), _majority(rows["gold"]), counts)


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
    estimate = _by_person(rows, change)
    if estimate.note.startswith("too few"):
        return replace(estimate, value=_change(pre, post))
    people = estimate.clusters["person"]
    alone = people == n
    independent = n if alone else people if estimate.note else min(n, float(change.var(ddof=1)) / estimate.stderr**2)
    low, high = paired_change(pre, post, independent)
    lost, gained = int((pre & ~post).sum()), int((post & ~pre).sum())
    p = estimate.p
    if alone or estimate.note:  # where all cases changed alike, a person counts once
        p = mcnemar(*(round(count * independent / n) for count in (lost, gained)))
    low, high, p = agreeing(low, high, p)
    return replace(estimate, value=_change(pre, post), low=low, high=high, p=p, note="")


def _by_person(rows: pd.DataFrame, values: Floats) -> Estimate:
    """Return the mean of one value per case, clustered by person."""
    if not len(rows):
        return Estimate(float("nan"), note="no case")
    person = pd.factorize(rows["person" if "person" in rows else "case_id"], sort=True)[0]
    return clustered_mean(values, [np.full(len(rows), 1 / len(rows))], {"person": person})


def _published(pre: NDArray[np.bool_], post: NDArray[np.bool_], draws: int, seed: int) -> Estimate:
    """Return the change with the papers' test, and a bootstrap over cases as interval."""
    low, high, stderr = (float("nan"),) * 3
    if pre.size > 1 and draws:
        low, high, stderr = mean_interval(post.astype(float) - pre, np.ones(pre.size), draws, seed)
    return Estimate(_change(pre, post), low, high, stderr, _unpaired(pre, post), n=pre.size)


def _unpaired(pre: NDArray[np.bool_], post: NDArray[np.bool_]) -> float:
    """Return p of the papers' test: a t-test that ignores that pre and post are the same cases."""
    if pre.size < 2 or (pre.std() == 0 and post.std() == 0):
        return float("nan")
    (m1, s1), (m2, s2) = ((float(side.mean()), float(side.std(ddof=1))) for side in (post, pre))
    return float(scipy_stats.ttest_ind_from_stats(m1, s1, post.size, m2, s2, pre.size).pvalue)


def _chance(rows: pd.DataFrame) -> float:
    shares = [len(set(g) & set(c)) / len(c) for g, c in zip(rows["gold"], rows["candidates"])]
    return float(np.mean(shares)) if shares else float("nan")


def _majority(gold: Iterable[Sequence[str]]) -> float:
    lists = [set(labels) for labels in gold]
    most = Counter(label for labels in lists for label in labels).most_common(1)
    return most[0][1] / len(lists) if most else float("nan")


def accuracy_table(marked: pd.DataFrame, *, mode: Mode = "exact", draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Return `summarise_accuracy` of every editor and pair of relations, as `cross_property` gives it."""
    keys = ["editor", "edit_relation", "effect_relation"]
    return pd.DataFrame(
        dict(zip(keys, key)) | summarise_accuracy(rows, mode=mode, draws=draws, seed=seed).row()
        for key, rows in marked.groupby(keys, sort=True)
    )


def cross_property(
    scores: Scores, *, mode: Mode = "exact", prompt: str = "property", draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Return accuracy on the effect property before and after the edit, per (editor, edit relation, effect relation).

    Args:
        scores: A score table with rows of kind "cross_property".
        mode: "exact": the named prompt, exact labels, ties fail. "paper": the first stored prompt of each phase,
            substring match, unanswerable cases left out, unpaired t-test, to reproduce the published tables.
        prompt: Which prompt the exact mode uses, see `answers`.
        draws, seed: Bootstrap over cases for the change in the paper mode.

    Returns:
        The columns of `Accuracy.row`.

    Raises:
        RecordError: As `answers`.
        UnknownNameError: Unknown `mode` or `prompt`.

    Source: SEESAW-CF section 4.2, Tables 4 and 5.
    Deviates: the exact mode; see `mark` for what the published rule counts as correct.
    """
    return accuracy_table(mark(answers(scores, mode=mode, prompt=prompt), mode), mode=mode, draws=draws, seed=seed)
