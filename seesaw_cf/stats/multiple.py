"""Many tests at once: corrections over declared families, by p alone, or by what permutations of labels make of them.

Or what flips make of changes within pairs: where a change did nothing, before and after of a cluster could as well be
exchanged, which changes the sign of all its differences: in every task, metric and group alike. So the flips know how
tests depend on each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special, stats

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.stats.bootstrap import LEVEL, Floats
from seesaw_cf.stats.clustered import clustered_mean
from seesaw_cf.stats.crossing import ClusterSums, Codes, Crossing

_CELLS = 20_000_000  # signs that are held at a time
_ROUNDING = 1e-12  # of a squared statistic


def adjust(p_values: ArrayLike) -> Floats:
    """Correct the p-values of one family by Holm's method; NaN (no test was done) stays NaN and is not counted.

    Args:
        p_values: p-values in 0..1 or NaN.

    Raises:
        RecordError: A value outside 0..1.

    Source: Holm (1979).
    """
    p = np.asarray(p_values, dtype=np.float64)
    if ((p < 0) | (p > 1)).any():
        raise RecordError(f"p-values: range {np.nanmin(p):g}..{np.nanmax(p):g}, expected 0..1.")
    out = np.full(p.shape, np.nan)
    order = np.argsort(p, kind="stable")[: np.count_nonzero(~np.isnan(p))]  # NaN is sorted last
    out[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(order.size, 0, -1)))
    return out


def holm(family: Mapping[str, Estimate]) -> dict[str, float]:
    """Return the p of every estimate of one family after Holm's correction."""
    return dict(zip(family, adjust([estimate.p for estimate in family.values()]).tolist()))


def adjust_families(table: pd.DataFrame, family: Sequence[str]) -> pd.DataFrame:
    """Add `p_adjusted`, `family` and `family_size` to a table of tests.

    Args:
        table: Has a column `p`.
        family: The columns that name a family, such as ["editor", "axis"]; [] = the whole table is one family.
            Declare it before looking at the results.
    """
    parts = [table[name].astype(str) for name in family] or [pd.Series("all", table.index)]
    names = pd.Series(["/".join(row) for row in zip(*parts)], table.index)
    by_family = table["p"].groupby(names)
    adjusted = by_family.transform(lambda p: adjust(p.to_numpy()))
    return table.assign(family=names, family_size=by_family.transform("count"), p_adjusted=adjusted)


_TIE = 1 + 1e-6  # a permutation that repeats the labels as they are gives the same p but for its last digits


def step_down(p_values: Floats, drawn: Floats) -> Floats:
    """Return adjusted p of one family: how often chance makes a smaller p anywhere among those not yet rejected.

    Args:
        p_values: (tests,) p of the statistic, of any calibration; NaN: not a test.
        drawn: (permutations, tests) the same after each permutation; NaN: it could not be tested there, which counts as
            p = 1.

    Returns:
        (tests,) at least 1 / (permutations + 1).

    Source: Westfall and Young (1993), step-down min-p; Phipson and Smyth (2010), (b + 1) / (m + 1).
    """
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested], kind="stable")]
    least = np.minimum.accumulate(np.where(np.isnan(drawn), 1, drawn)[:, order[::-1]], axis=1)[:, ::-1]
    out = np.full(p_values.shape, np.nan)
    out[order] = np.maximum.accumulate((1 + (least <= _TIE * p_values[order]).sum(axis=0)) / (1 + len(drawn)))
    return out


def permutation_p(p_values: Floats, drawn: Floats) -> Floats:
    """Return p of each test alone: the share of permutations, of those that could test it, with a p as small.

    Args:
        p_values, drawn: See `step_down`.
    """
    smaller, there = (drawn <= _TIE * p_values).sum(axis=0), (~np.isnan(drawn)).sum(axis=0)
    return np.where(np.isnan(p_values), np.nan, (1 + smaller) / (1 + there))


def permutation_level(drawn: Floats, level: float) -> Floats:
    """Return the p that a share `level` of the permutations stays below: where a test alone becomes significant.

    Args:
        drawn: See `step_down`.
        level: Of the test.

    Returns:
        (tests,) the floor(level (m + 1))-th smallest of m p, at least the smallest; `level` itself where m is 0.
    """
    ordered, there = np.sort(drawn, axis=0), (~np.isnan(drawn)).sum(axis=0)
    place = np.maximum(np.floor(level * (there + 1)).astype(np.intp), 1) - 1
    return np.where(there > 0, np.take_along_axis(ordered, place[None], axis=0)[0], level)


# Changes within pairs.


@dataclass(slots=True)
class ClusterFlips:
    """Tests that share clusters.

    Attributes:
        n_clusters: Of all tests together.
        tests: The estimate of each, with the interval and p of `clustered_mean`; its clusters and their sums, None
            where it cannot be flipped.
    """

    n_clusters: int
    tests: list[tuple[Estimate, tuple[Codes, ClusterSums] | None]] = field(default_factory=list)

    def add(
        self, values: Floats, parts: list[Floats], clusters: Mapping[str, Codes], centre: Floats | float = 0.0
    ) -> None:
        """Add a test that a mean is 0, or that two are equal.

        Args:
            values: (n,) differences, after minus before.
            parts: As for `clustered_mean`.
            clusters: Dimension -> (n,) codes below `n_clusters`. Only one dimension can be flipped.
            centre: What the values would be where the null hypothesis holds: 0 for a mean. For a difference the mean
                of both sides, so that only their difference is flipped (the wild bootstrap, null imposed).

        Source: Cameron, Gelbach and Miller (2008), Rademacher weights by cluster.
        """
        estimate, test = clustered_mean(values, parts, clusters), None
        # All values equal is no reason against a flip: the clusters that moved alike are what it counts.
        testable = np.isfinite(estimate.p) or (estimate.value != 0 and "no error" in estimate.note)
        if testable and len(clusters) == 1:
            crossing, code = Crossing(parts, clusters), next(iter(clusters.values()))
            test = np.unique(code[crossing.used]), crossing.cluster_sums(np.asarray(values - centre))
        self.tests.append((estimate, test))

    def skip(self, note: str) -> None:
        """Add a test that cannot be made, and why."""
        self.tests.append((Estimate(float("nan"), note=note), None))

    def corrected(self, draws: int, seed: int) -> tuple[list[Estimate], Floats]:
        """Return estimates with interval and p by flips, and p corrected over all tests by step-down min-p.

        Args:
            draws: Flips of all clusters; 0 = Holm over p of `clustered_mean`, as for two dimensions.
            seed: Of the flips.

        Source: Westfall and Young (1993); Phipson and Smyth (2010).
        """
        estimates = [estimate for estimate, _ in self.tests]
        tests = {number: test for number, (_, test) in enumerate(self.tests) if test is not None}
        if not draws or not tests:
            return estimates, adjust([estimate.p for estimate in estimates])
        observed, drawn = self.flipped_p([*tests.values()], draws, seed)
        limit = np.sort(drawn, axis=0)[max(0, int((1 - LEVEL) * (draws + 1)) - 2)]
        corrected = np.full(len(estimates), np.nan)
        corrected[[*tests]] = step_down(observed, drawn)
        for (number, (_, sums)), p, most in zip(tests.items(), permutation_p(observed, drawn), limit):
            estimates[number] = _calibrated(estimates[number], float(p), float(most), sums[-1])
        return estimates, corrected

    def flipped_p(self, tests: Sequence[tuple[Codes, ClusterSums]], draws: int, seed: int) -> tuple[Floats, Floats]:
        """Return p of t as observed, (tests,), and after each flip, (draws, tests)."""
        matrix = np.zeros((self.n_clusters, 4, len(tests)))
        constants = np.zeros((4, len(tests)))  # what no flip changes: sums of squares
        for number, (names, (sums, shares, scale, _)) in enumerate(tests):
            net, (one, other) = sums[0] - sums[1], shares
            matrix[names, :, number] = np.stack([*sums, scale * net * one, scale * net * other], axis=1)
            constants[:, number] = [scale @ (a * a) for a in (net, one, other)] + [scale @ (one * other)]
        df, generator = np.array([sums[-1] for _, sums in tests]), np.random.default_rng(seed)
        observed = _p(np.ones((1, self.n_clusters)), matrix, constants, df)[0]
        block = max(1, _CELLS // self.n_clusters)
        sizes = (min(block, draws - start) for start in range(0, draws, block))
        drawn = [_p(_signs(generator, size, self.n_clusters), matrix, constants, df) for size in sizes]
        return observed, np.concatenate(drawn)


def _signs(generator: np.random.Generator, draws: int, clusters: int) -> Floats:
    return np.asarray(2.0 * generator.integers(0, 2, (draws, clusters), dtype=np.int8) - 1.0, np.float64)


def _p(signs: Floats, matrix: Floats, constants: Floats, df: Floats) -> Floats:
    """Return two-sided p of t for rows of signs: the residual of a cluster is s u - a T1 + b T2."""
    flat = matrix.reshape(len(matrix), -1)
    first, second, with_first, with_second = (signs @ flat).reshape(len(signs), 4, -1).transpose(1, 0, 2)
    squares, own, other, both = constants
    variance = squares + first**2 * own + second**2 * other - 2 * first * with_first + 2 * second * with_second
    variance = variance - 2 * first * second * both
    value = first - second
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(variance > _ROUNDING * squares, value**2 / variance, np.inf) ** 0.5
    return np.asarray(np.where(value**2 <= _ROUNDING * squares, 1.0, 2 * special.stdtr(df, -t)))


def _calibrated(estimate: Estimate, p: float, most: float, df: float) -> Estimate:
    """Return an estimate with p by flips, and the interval that excludes 0 exactly where p is below 1 - LEVEL."""
    quantile = float(stats.t.isf(most / _TIE / 2, df)) if most > 0 else float("inf")
    half = quantile * estimate.stderr
    if not np.isfinite(half):
        return replace(estimate, p=p)
    low, high = estimate.value - half, estimate.value + half
    return replace(estimate, p=p, low=low, high=high, skew=0.0)
