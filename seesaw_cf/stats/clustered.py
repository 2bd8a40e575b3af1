"""Means of clustered values, with intervals and tests clustered by edit, person or target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.stats.bootstrap import LEVEL, Floats, check_rows
from seesaw_cf.stats.crossing import Codes, Crossing, by_cluster

# Below this effective number of clusters, in a dimension or on a side of it, there is no interval, no p and no star.
# Satterthwaite's approximation is trusted from four degrees of freedom on, which is five equal clusters (Pustejovsky
# and Tipton 2018, section 5); in benchmarks/simulation.py the error stays near its nominal level down to there.
MIN_EFFECTIVE = 5.0
# Below this many edits no size of a contrast and no equality is claimed, and the few edits that carry half of a mean
# stand with it: no interval can see harm that no edit of the sample had. With 10 % of edits harmed it holds .89 of
# means at 32 edits, .95 at 80.
FEW_EDITS = 80
_EXACT = 1e-6  # five equal clusters are five, whatever the last digits


def case_weights(case: Codes, member: NDArray[np.bool_]) -> Floats:
    """Return weights that make a weighted sum the mean of case means over the member rows; they add up to 1.

    Args:
        case: (n,) case code of every row.
        member: (n,) which rows count.

    Raises:
        RecordError: Lengths differ, or a code is below 0.
    """
    check_rows("case weights", ("case",), case=case, member=member)
    per_case = np.bincount(case[member], minlength=int(case.max(initial=-1)) + 1).astype(np.float64)
    weights = np.zeros(case.size)
    if member.any():
        weights[member] = 1 / (per_case[case[member]] * np.count_nonzero(per_case))
    return weights


def half_clusters(values: Floats, code: Codes) -> NDArray[np.intp]:
    """Return the least number of clusters that make half of all absolute sums: few where harm comes in bursts.

    Args:
        values: (n, columns) observations times their weights in a mean.
        code: (n,) cluster of every row, such as its edit.

    Returns:
        (columns,) counts; 0 where every sum is 0.
    """
    sums: Floats = np.abs(by_cluster(code, values.T))
    upto, total = np.cumsum(np.sort(sums)[:, ::-1], axis=1), sums.sum(axis=1)
    return np.asarray((total * (0.5 - _EXACT) > upto.T).sum(axis=0) + (total > 0), np.intp)


def clustered_mean(values: Floats, parts: list[Floats], clusters: Mapping[str, Codes]) -> Estimate:
    """Return a weighted mean, or a difference of two, with multi-way cluster-robust standard error.

    Args:
        values: (n,) finite observations.
        parts: One weight vector (n,) that adds up to 1 for a mean; two for a difference, first minus second.
        clusters: Dimension -> (n,) cluster codes, one to three dimensions.

    Returns:
        The `Estimate` with its 95 % interval. With fewer than `MIN_EFFECTIVE` effective clusters in a dimension, or in
        either part of it, interval, error and p are NaN, and `note` holds their number. Of a mean the interval is
        the outer of t's and Hall's, and p the larger one: values may come in bursts.

    Raises:
        RecordError: Lengths differ, values are not finite, or weights do not add up to 1.

    Source: Cameron, Gelbach and Miller (2011), inclusion-exclusion over dimensions; Bell and McCaffrey (2002),
        corrected residuals and Satterthwaite degrees of freedom, see `Crossing`; Hall (1992), see `outer_limits`.
    """
    return clustered_means(values[:, None], parts, clusters)[0]


def clustered_means(
    values: Floats,
    parts: list[Floats],
    clusters: Mapping[str, Codes],
    sides: Sequence[str] = ("the first", "the second"),
) -> list[Estimate]:
    """Return `clustered_mean` of several columns with the same weights and clusters, such as one effect on two scales.

    Args:
        values: (n, columns) finite observations.
        parts, clusters: See `clustered_mean`.
        sides: What to call the two parts of a difference in a note.

    Returns:
        One `Estimate` per column.

    Raises:
        RecordError: As `clustered_mean`.
    """
    crossing = Crossing(parts, clusters)
    if not np.isfinite(values).all():
        raise RecordError("clustered mean: values are not all finite. Leave unscored rows out and count them.")
    for part in parts:
        if abs(part.sum() - 1) > 1e-9:
            raise RecordError(f"clustered mean: weights add up to {part.sum():g}, expected 1 (is the group empty?).")
    nan = float("nan")
    n = int(crossing.used.sum())
    base = Estimate(nan, n=n, clusters=crossing.counts, effective=crossing.effective)
    if few := "; ".join(_few(crossing, sides)):
        weight = parts[0] - (parts[1] if len(parts) > 1 else 0.0)
        return [replace(base, value=float(value), note=few) for value in weight @ values]
    estimates = []
    value, stderr, df, skew = crossing.errors(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        limits = outer_limits(value, stderr, special.stdtrit(df, (1 + LEVEL) / 2), skew)
        numbers = (value, *limits, stderr, outer_p(value / stderr, df, skew), df, skew)
    names = ("value", "low", "high", "stderr", "p", "df", "skew")
    for row, column in zip(np.stack(numbers, axis=1).tolist(), values.T):
        fields = dict(zip(names, row))
        if fields["stderr"] <= 1e-12 * max(1e-300, np.abs(column[crossing.used]).max()):
            fields = {"value": fields["value"], "note": "all values equal: no error to estimate"}
        estimates.append(replace(base, **fields))
    return estimates


def _few(crossing: Crossing, sides: Sequence[str]) -> Iterator[str]:
    """Yield what is said of the dimensions below the floor, or of the sides of them that are."""
    least = MIN_EFFECTIVE - _EXACT
    for name, effective in crossing.effective.items():
        parts = list(zip(sides, crossing.side_counts[name], crossing.sides[name]))
        small = [part for part in parts if len(parts) > 1 and part[2] < least]
        if small or effective < least:
            yield too_few(name, *(small or [("", crossing.counts[name], effective)]))


def too_few(name: str, *sides: tuple[str, int, float]) -> str:
    """Return the reason for a missing interval, such as "too few people: 3 in women, 5 needed (2.6 effective)".

    Args:
        name: Of what there is too little, such as "edit".
        sides: Name of each side ("" for the whole), its clusters and effective clusters.
    """
    noun = {"person": "people"}.get(name, f"{name}s")
    counts = " and ".join(f"{n}{f' in {side}' * bool(side)}" for side, n, _ in sides)
    effective = " and ".join(f"{np.floor(10 * size + 10 * _EXACT) / 10:.1f}" for *_, size in sides)
    return f"too few {noun}: {counts}, {MIN_EFFECTIVE:.0f} needed ({effective} effective)"


# Values that come in bursts: where few edits do most of the harm, a t interval ends too soon on the side of the harm.
# Hall's alone is too eager where nothing happened. Each is right where the other errs, so an interval holds both and a
# p is the larger one. Source: Hall (1992), "On the removal of skewness by transformation", JRSS B 54, 221-228.


Numbers = NDArray[np.floating[Any]] | float


def hall(t: Numbers, skew: Numbers) -> Floats:
    """Return a studentised mean without its skew: t + a t^2 / 3 + a^2 t^3 / 27 + a / 6, which grows with t.

    Args:
        t: Mean over its standard error.
        skew: a, the skewness of the *mean*: its third cumulant over the third power of its standard error.
    """
    return np.asarray(t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6)


def hall_inverse(quantile: Numbers, skew: Numbers) -> Floats:
    """Return the t that `hall` turns into this quantile."""
    shifted = quantile - skew / 6
    root = np.cbrt(1 + skew * shifted)
    return np.asarray(3 * shifted / (1 + root + root**2))  # (3 / a) (root - 1), without its 0 / 0


def outer_limits(value: Numbers, stderr: Numbers, quantile: Numbers, skew: Numbers) -> tuple[Floats, Floats]:
    """Return low and high of the smallest interval that holds t's and Hall's.

    Args:
        value, stderr: The mean and its standard error.
        quantile: Of t, two-sided: `scipy.stats.t.isf(.025, df)` for 95 %.
        skew: See `hall`.
    """
    most = np.maximum(quantile, hall_inverse(quantile, skew))
    least = np.minimum(-quantile, hall_inverse(-quantile, skew))
    return np.asarray(value - stderr * most), np.asarray(value - stderr * least)


def outer_p(t: Numbers, df: Numbers, skew: Numbers) -> Floats:
    """Return the larger of both two-sided p: below .05 exactly where the interval of `outer_limits` excludes 0."""
    least = np.minimum(np.abs(t), np.maximum(np.sign(t) * hall(t, skew), 0))
    return np.asarray(2 * special.stdtr(df, -least))
