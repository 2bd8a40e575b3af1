"""Intervals and tests of a mean of values that come in bursts: the outer of t's and of Hall's.

Where few edits do most of the harm, a t interval ends too soon on the side of the harm. Hall's alone is too eager where
nothing happened. Each is right where the other errs, so an interval holds both and a p is the larger one.

Source: Hall (1992), "On the removal of skewness by transformation", JRSS B 54, 221-228: the monotone cubic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from seesaw_cf.stats.bootstrap import Floats


def hall(t: ArrayLike, skew: ArrayLike) -> Floats:
    """Return a studentised mean without its skew: t + a t^2 / 3 + a^2 t^3 / 27 + a / 6, which grows with t.

    Args:
        t: Mean over its standard error.
        skew: a, the skewness of the *mean*: its third cumulant over the third power of its standard error.
    """
    t, a = np.asarray(t, np.float64), np.asarray(skew, np.float64)
    return np.asarray(t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6)


def hall_inverse(quantile: ArrayLike, skew: ArrayLike) -> Floats:
    """Return the t that `hall` turns into this quantile."""
    quantile, a = np.asarray(quantile, np.float64), np.asarray(skew, np.float64)
    shifted = quantile - a / 6
    root = np.cbrt(1 + a * shifted)
    return np.asarray(3 * shifted / (1 + root + root**2))  # (3 / a) (root - 1), without its 0 / 0


def outer_limits(value: ArrayLike, stderr: ArrayLike, quantile: ArrayLike, skew: ArrayLike) -> tuple[Floats, Floats]:
    """Return low and high of the smallest interval that holds t's and Hall's.

    Args:
        value, stderr: The mean and its standard error.
        quantile: Of t, two-sided: `scipy.stats.t.isf(.025, df)` for 95 %.
        skew: See `hall`.
    """
    value, stderr, quantile = (np.asarray(numbers, np.float64) for numbers in (value, stderr, quantile))
    low = value - stderr * np.maximum(quantile, hall_inverse(quantile, skew))
    return low, np.asarray(value - stderr * np.minimum(-quantile, hall_inverse(-quantile, skew)))


def outer_p(t: ArrayLike, df: ArrayLike, skew: ArrayLike) -> Floats:
    """Return the larger of both two-sided p: below .05 exactly where the interval of `outer_limits` excludes 0."""
    t = np.asarray(t, np.float64)
    least = np.minimum(np.abs(t), np.maximum(np.sign(t) * hall(t, skew), 0))
    return np.asarray(2 * special.stdtr(np.asarray(df, np.float64), -least))
