"""Tests that need no cluster: the papers' t-test, McNemar's test, a share with its interval."""

from __future__ import annotations

import numpy as np
from scipy import stats

from seesaw_cf.stats.bootstrap import LEVEL, Floats
from seesaw_cf.types import Estimate

__all__ = ["mcnemar", "share", "t_test"]


def t_test(values: Floats) -> tuple[float, float, str]:
    """Two-sided one-sample t-test against 0.

    Source: SEESAW-CF appendix D, "a t-test, conducted with scipy", over case-level differences.
    Deviates: with fewer than two values, or all values equal, there is no test (scipy gives p = 0 for the latter,
    which is what identical batch edits of one gender produce).

    Args:
        values: One finite value per case.

    Returns:
        t, p and a note; NaN, NaN and the reason when there is no test.
    """
    if values.size < 2:
        return float("nan"), float("nan"), "fewer than two cases"
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        return float("nan"), float("nan"), "all case values equal"
    result = stats.ttest_1samp(values, 0.0)
    return float(result.statistic), float(result.pvalue), ""


def mcnemar(lost: int, gained: int) -> float:
    """Exact two-sided p-value for "as many answers lost as gained" among paired answers; 1 when none changed.

    Source: McNemar (1947), exact form: binomial with probability 1/2 over the discordant pairs.
    """
    return float(stats.binomtest(gained, lost + gained, 0.5).pvalue) if lost + gained else 1.0


def share(successes: int, n: int, level: float = LEVEL) -> Estimate:
    """A share of independent cases with its Wilson score interval; NaN when n is 0."""
    if n == 0:
        nan = float("nan")
        return Estimate(nan, nan, nan, nan, 0, 0, "no case")
    value = successes / n
    ci = stats.binomtest(successes, n).proportion_ci(level, method="wilson")
    return Estimate(
        value, ci.low, ci.high, (value * (1 - value) / n) ** 0.5, n, n, f"Wilson score interval, {level:.0%}"
    )
