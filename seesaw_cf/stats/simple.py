"""Shares and paired answers: the papers' t-test, McNemar's test, intervals of a share and of a change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from seesaw_cf.base.checks import number, whole
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.stats.bootstrap import LEVEL, Floats, check_rows
from seesaw_cf.stats.clustered import MIN_EFFECTIVE, case_weights, clustered_mean, too_few


def t_test(values: Floats) -> tuple[float, float, str]:
    """Run a two-sided one-sample t-test against 0.

    Source: SEESAW-CF appendix D, "a t-test, conducted with scipy", over case-level differences.
    Deviates: with fewer than two values, or all values equal, no test is made (scipy gives p = 0 for the latter,
    which is what identical batch edits of one gender produce).

    Args:
        values: One finite value per case.

    Returns:
        t, p and a note; NaN, NaN and the reason when no test is made.
    """
    if values.size < 2:
        return float("nan"), float("nan"), "fewer than two cases"
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        return float("nan"), float("nan"), "all case values equal"
    result = stats.ttest_1samp(values, 0.0)
    return float(result.statistic), float(result.pvalue), ""


def mcnemar(lost: int, gained: int) -> float:
    """Return the exact two-sided p for "as many answers lost as gained" among paired answers; 1 when none changed.

    Source: McNemar (1947), exact form: binomial with probability 1/2 over the discordant pairs.
    """
    whole("mcnemar: lost", lost)
    whole("mcnemar: gained", gained)
    return float(stats.binomtest(gained, lost + gained, 0.5).pvalue) if lost + gained else 1.0


def paired_change(pre: NDArray[np.bool_], post: NDArray[np.bool_], n: float) -> tuple[float, float]:
    """Return an interval of a share's change, after minus before, in the same cases; it exists where nothing changed.

    Args:
        pre, post: (cases,) whether the answer was right.
        n: Effective number of independent cases; the number of cases where all are independent.

    Source: Newcombe (1998), Statistics in Medicine 17, 2635-2650, method 10 (square-and-add Wilson intervals with the
        correlation of the two answers).
    """
    check_rows("paired change", pre=pre, post=post)
    number("paired change: n", n, 0, ends=False)
    always, lost, gained, neither = (float((a & b).sum()) for a in (pre, ~pre) for b in (post, ~post))
    table = (always + lost) * (gained + neither) * (always + gained) * (lost + neither)
    product = always * neither - lost * gained
    corrected = product if product < 0 else max(0.0, product - pre.size / 2)
    phi = corrected / table**0.5 if table else 0.0
    (after, down, up), (before, low, high) = (_wilson(float(side.mean()), n) for side in (post, pre))
    change = after - before
    below = (after - down) ** 2 - 2 * phi * (after - down) * (high - before) + (high - before) ** 2
    above = (before - low) ** 2 - 2 * phi * (before - low) * (up - after) + (up - after) ** 2
    return change - max(0.0, below) ** 0.5, change + max(0.0, above) ** 0.5


def agreeing(low: float, high: float, p: float) -> tuple[float, float, float]:
    """Return an interval and the p of another test of 0 so that the interval excludes 0 exactly where p < 0.05.

    Both must reject: the interval reaches 0 where the test does not, and p is at least 0.05 where it holds 0.
    """
    if p >= 1 - LEVEL:
        low, high = min(low, 0.0), max(high, 0.0)
    return low, high, max(p, 1 - LEVEL) if low <= 0 <= high else p


def _wilson(value: float, n: float) -> tuple[float, float, float]:
    z = float(stats.norm.ppf((1 + LEVEL) / 2))
    centre, half = (value + z * z / (2 * n)), z * (value * (1 - value) / n + z * z / (4 * n * n)) ** 0.5
    return value, (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)


def share_interval(value: float, n: float) -> tuple[float, float]:
    """Return the interval of a share of `n` independent cases; it always has a width.

    Args:
        value: The share, 0..1.
        n: Effective number of cases, which need not be whole.

    Raises:
        RecordError: A share outside 0..1.

    Source: Wilson (1927); no end is nearer than the exact one-sided 95 % bound (Clopper and Pearson 1934).
    Deviates: the bound mends coverage near 0 and 1 (.90 for 18 cases at .97), as Brown, Cai and DasGupta (2001) do.
    """
    if not -1e-9 < value < 1 + 1e-9 and not math.isnan(value):
        raise RecordError(f"share interval: value is {value}, expected a share, 0 to 1.")
    _, low, high = _wilson(value, n)
    yes, no = n * value, n * (1 - value)
    exact_low = stats.beta.ppf(1 - LEVEL, yes, no + 1) if yes > 0 else 0.0
    exact_high = stats.beta.ppf(LEVEL, yes + 1, no) if no > 0 else 1.0
    return max(0.0, min(low, float(exact_low))), min(1.0, max(high, float(exact_high)))


def proportion(successes: int, n: int) -> Estimate:
    """Return the proportion of independent cases with `share_interval`; NaN when n is 0."""
    whole("proportion: n", n)
    whole("proportion: successes", successes, 0, n)
    if n == 0:
        return Estimate(float("nan"))
    value = successes / n
    error = (value * (1 - value) / n) ** 0.5
    return Estimate(value, *share_interval(value, n), error, n=n)


def clustered_share(values: Floats, weights: Floats, cluster: NDArray[np.intp], *, fewest: float = 0) -> Estimate:
    """Return a share of clustered cases with `share_interval`, worth as many cases as their clusters allow.

    Each cluster counts as one case until its own values show more: the variance is that of the cluster means and of
    z^2 / 2 clusters of ones and as many of zeros. With one value a cluster the result is that of `proportion`.

    Args:
        values: (n,) shares, 0..1.
        weights: (n,) weights that add up to 1; all 0 without values.
        cluster: (n,) cluster codes.
        fewest: Refuse an interval of fewer effective clusters than this.

    Source: Korn and Graubard (1998), effective sample size; Agresti and Coull (1998), the clusters added.
    """
    check_rows("clustered share", ("cluster",), values=values, weights=weights, cluster=cluster)
    used = weights > 0
    if not used.any():
        return Estimate(float("nan"), clusters={"case": 0}, note="no rows")
    least, most = values[used].min(), values[used].max()
    if least < 0 or most > 1:
        raise RecordError(f"clustered share: got {least if least < 0 else most:g}, expected shares from 0 to 1.")
    code = np.unique(cluster[used], return_inverse=True)[1]
    mass = np.bincount(code, weights[used])
    means = np.clip(np.bincount(code, weights[used] * values[used]) / mass, 0, 1)
    value = float(np.clip(weights[used] @ values[used], least, most))
    clusters, added = float(1 / (mass @ mass)), float(stats.norm.ppf((1 + LEVEL) / 2)) ** 2
    centre = (clusters * value + added / 2) / (clusters + added)
    spread = clusters**2 * (mass**2 @ (means - centre) ** 2) + added * (centre**2 + (1 - centre) ** 2) / 2
    n = min(float(used.sum()), float(clusters * (clusters + added) * centre * (1 - centre) / spread))
    error = float(mass**2 @ (means - value) ** 2) ** 0.5
    ends, note = share_interval(value, n), ""
    if clusters < fewest - 1e-6:
        ends, note = (float("nan"), float("nan")), too_few("case", ("", mass.size, clusters))
    counts = {"n": int(used.sum()), "clusters": {"case": mass.size}, "effective": {"case": n}}
    return Estimate(value, *ends, error, **counts, note=note)  # type: ignore[arg-type]


# Of cases with several rows each.


def case_estimate(
    values: pd.Series, case: pd.Series, *sides: NDArray[np.bool_], within: tuple[float, float] = (-np.inf, np.inf)
) -> Estimate:
    """Return the mean of case means, or of one side minus another, with a 95 % interval clustered by case.

    Args:
        values: One finite number per row.
        case: Which case each row belongs to.
        sides: Which rows; none = all rows, two = the first minus the second. A case may have rows in both.
        within: Ends of the values' scale; an interval is cut there, as a mean cannot lie outside.
    """
    codes = pd.factorize(case)[0]
    parts = [case_weights(codes, side) for side in sides or (codes >= 0,)]
    if not all(part.any() for part in parts):
        return Estimate(float("nan"), clusters={"case": 0}, note="no rows")
    estimate = clustered_mean(values.to_numpy(np.float64), parts, {"case": codes})
    low, high = np.clip([estimate.low, estimate.high], *within).tolist()
    return replace(estimate, low=low, high=high)


def share_estimate(flags: pd.Series, case: pd.Series, weights: Floats | None = None, against: float = 0.0) -> Estimate:
    """Return the mean of case means of what is so or not so, with the interval of a share; none below five cases.

    Args:
        flags: True, or 1, where it is so; nothing is missing.
        case: Which case each row belongs to.
        weights: Of the rows; None = those of a mean of case means.
        against: What the p-value tests the share against, inside 0..1; the test is the interval's own (score test).
    """
    codes = pd.factorize(case)[0]
    weights = case_weights(codes, codes >= 0) if weights is None else weights
    share = clustered_share(flags.to_numpy(np.float64), weights, codes, fewest=MIN_EFFECTIVE)
    if not (0 < against < 1 and share.low == share.low):
        return replace(share, p=float("nan"))
    error = (against * (1 - against) / share.effective["case"]) ** 0.5
    return replace(share, p=float(2 * stats.norm.sf(abs(share.value - against) / error)))


# Which differences of scores are rounding: one limit per run, in nats, for every "more likely than".

BOUNDS: dict[str, float] = {"float64": 1e-9, "float32": 1e-4, "float16": 0.05, "bfloat16": 0.2}
"""Nats by which two scores of a text may differ where nothing was measured: the engine's own bound in float32
(docs/performance.md), and for the others that of their digits against float32's, rounded up for float64, down for the
short types, whose noise every run measures."""


def tolerance(manifest: Mapping[str, Any]) -> tuple[float, str]:
    """Return the largest difference that is a tie in a run, and where that limit comes from.

    Args:
        manifest: The run's `manifest.json`: twice the largest spread in `machine["noise"]` (a difference has two
            scores), or else the bound for the dtype of its weights.

    Returns:
        Nats, and "measured" or "bound for float32" (or another dtype; float32's when none is named).
    """
    largest = ((manifest.get("machine") or {}).get("noise") or {}).get("max")
    if isinstance(largest, (int, float)) and math.isfinite(largest):
        return 2 * float(largest), "measured"
    dtype = str((manifest.get("model") or {}).get("dtype", "")).removeprefix("torch.")
    dtype = dtype if dtype in BOUNDS else "float32"
    return BOUNDS[dtype], f"bound for {dtype}"


def above(first: ArrayLike, second: ArrayLike, nats: float) -> NDArray[np.bool_]:
    """Return whether log-probabilities are higher by more than rounding; NaN is not.

    Args:
        first, second: Log-probabilities, nats, of shapes that broadcast.
        nats: The limit, see `tolerance`; a difference of exactly 0 is never above.
    """
    return np.asarray(np.subtract(first, second, dtype=np.float64) > max(nats, 0.0))
