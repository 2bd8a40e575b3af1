"""How far a classifier or a rater is from people: figures with intervals over whole samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.base.errors import need
from seesaw_cf.base.types import Estimate
from seesaw_cf.stats import clustered_mean, interval
from seesaw_cf.stats.agreement import krippendorff_alpha
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.plain import plain
from seesaw_cf.stats.simple import share_estimate


def label_scores(
    truth: Sequence[float], answers: Sequence[float], groups: Sequence[int], classes: Sequence[str]
) -> dict[str, Any]:
    """Return how often a classifier is right.

    Args:
        truth, answers: Class numbers, of rows that the classifier was not fitted on.
        groups: The independent sample of each row; the interval resamples whole ones, none below five.
        classes: Their names.

    Returns:
        `accuracy` (value, low, high), each class and "macro avg" as scikit-learn's `classification_report`,
        `krippendorff_alpha`, `confusion` (truth in rows), `n`, `n_groups`; plain JSON types.

    Raises:
        MissingExtraError: scikit-learn is missing; install `seesaw_cf[longform]`.
    """
    with need("scikit-learn", extra="longform", what_for="training"):
        from sklearn.metrics import classification_report, confusion_matrix
    people, own, numbers = np.asarray(truth), np.asarray(answers), list(range(len(classes)))
    by_class: dict[str, Any] = classification_report(
        people, own, labels=numbers, target_names=list(classes), output_dict=True, zero_division=0.0
    )
    scores: dict[str, Any] = plain({
        **{name: by_class[name] for name in (*classes, "macro avg")},
        "accuracy": share_of_rows(people == own, np.asarray(groups)),
        "krippendorff_alpha": krippendorff_alpha(np.stack([people, own], axis=1).astype(np.float64)),
        "confusion": confusion_matrix(people, own, labels=numbers).tolist(),
        "n": len(people),
        "n_groups": len(set(groups)),
    })  # fmt: skip
    return scores


def share_of_rows(hits: NDArray[np.bool_], groups: NDArray[np.intp]) -> dict[str, float]:
    """Return the share of rows that are hits, with its interval over groups; NaN without rows."""
    if not hits.size:
        return dict.fromkeys(("value", "low", "high"), float("nan"))
    share = share_estimate(pd.Series(hits), pd.Series(groups), np.full(hits.size, 1 / hits.size))
    return {"value": float(hits.mean()), "low": share.low, "high": share.high}


def rating_scores(
    truth: Sequence[float], ratings: Sequence[float], groups: Sequence[int], *, draws: int = 1000
) -> dict[str, Any]:
    """Return how far a rater's ratings are from people's.

    Args:
        truth: People's ratings.
        ratings: The rater's, any real numbers.
        groups: The independent sample of each row; intervals resample whole ones.
        draws: Bootstrap samples.

    Returns:
        `spearman`, `mean_absolute_error`, `exact` (share equal after rounding), `within_one` (share at most 1 away, on
        either side, after rounding), each value, low, high; `krippendorff_interval`, `n`, `n_groups`; plain JSON types.
        Shares have the interval of `share_of_rows`, the mean error that of a clustered mean, none below five groups.
        That of rho is the percentile interval of a bootstrap over groups, which covers .92 and .95 at 10 and 20
        groups of five rows (nominal .95; 400 invented raters).

    Source: LEME, Appendix F, Table 9.
    Deviates: `within_one` is two-sided; the released code counts every rating that is too low as a hit.
    """
    people, rater = np.asarray(truth, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    members = [np.flatnonzero(codes == code) for code in range(int(codes.max(initial=-1)) + 1)]
    rng = np.random.default_rng(0)
    picks = [
        np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))])
        for _ in range(draws if members else 0)
    ]
    low, high, _ = interval(np.array([_spearman(people[rows], rater[rows]) for rows in picks]))
    away, error = np.abs(np.round(rater) - people), np.abs(people - rater)
    weights = np.full(len(error), 1 / max(len(error), 1))
    mean = clustered_mean(error, [weights], {"group": codes}) if len(error) else Estimate(float("nan"))
    value = float(error.mean()) if len(error) else None
    alpha = krippendorff_alpha(np.stack([people, np.round(rater)], axis=1), "interval")
    scores: dict[str, Any] = plain({
        "spearman": {"value": _spearman(people, rater), "low": low, "high": high},
        "mean_absolute_error": {"value": value, "low": max(0.0, mean.low), "high": mean.high},
        "exact": share_of_rows(away == 0, codes),
        "within_one": share_of_rows(away <= 1, codes),
        "krippendorff_interval": alpha,
        "n": len(people),
        "n_groups": len(members),
    })  # fmt: skip
    return scores


def _spearman(people: Floats, rater: Floats) -> float:
    if len(people) < 3 or np.ptp(people) == 0 or np.ptp(rater) == 0:
        return float("nan")
    return float(stats.spearmanr(people, rater).statistic)
