"""Tests of changes within pairs, corrected as one family by exchanging before and after in whole clusters.

Where a change did nothing, before and after of a cluster could as well be exchanged, which changes the sign of all its
differences: in every task, metric and group alike. So the flips know how tests depend on each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special, stats

from seesaw_cf.base.types import Estimate
from seesaw_cf.stats.bootstrap import LEVEL, Floats
from seesaw_cf.stats.clustered import clustered_mean
from seesaw_cf.stats.crossing import ClusterSums, Codes, Crossing
from seesaw_cf.stats.multiple import adjust, permutation_p, step_down

_CELLS = 20_000_000  # signs that are held at a time
_TIE = 1 + 1e-6  # as `step_down` takes equal p
_ROUNDING = 1e-12  # of a squared statistic


@dataclass(slots=True)
class ClusterFlips:
    """Tests that share clusters.

    Attributes:
        n_clusters: Of all tests together.
        estimates: One per test, with the interval and p of `clustered_mean`.
        tests: Of each its clusters and their sums; None where it cannot be flipped.
    """

    n_clusters: int
    estimates: list[Estimate] = field(default_factory=list)
    tests: list[tuple[Codes, ClusterSums] | None] = field(default_factory=list)

    def add(
        self, values: Floats, parts: list[Floats], clusters: Mapping[str, Codes], centre: Floats | float = 0.0
    ) -> Estimate:
        """Add a test that a mean is 0, or that two are equal, and return its estimate.

        Args:
            values: (n,) differences, after minus before.
            parts: As for `clustered_mean`.
            clusters: Dimension -> (n,) codes below `n_clusters`. Only one dimension can be flipped.
            centre: What the values would be where the null hypothesis holds: 0 for a mean. For a difference the mean
                of both sides, so that only their difference is flipped (the wild bootstrap, null imposed).

        Source: Cameron, Gelbach and Miller (2008), Rademacher weights by cluster.
        """
        estimate = clustered_mean(values, parts, clusters)
        # All values equal is no reason against a flip: the clusters that moved alike are what it counts.
        testable = np.isfinite(estimate.p) or (estimate.value != 0 and "no error" in estimate.note)
        if testable and len(clusters) == 1:
            crossing, code = Crossing(parts, clusters), next(iter(clusters.values()))
            self.tests.append((np.unique(code[crossing.used]), crossing.cluster_sums(np.asarray(values - centre))))
        else:
            self.tests.append(None)
        self.estimates.append(estimate)
        return estimate

    def skip(self, note: str) -> None:
        """Add a test that cannot be made, and why."""
        self.estimates.append(Estimate(float("nan"), note=note))
        self.tests.append(None)

    def corrected(self, draws: int, seed: int) -> tuple[list[Estimate], Floats]:
        """Return estimates with interval and p by flips, and p corrected over all tests by step-down min-p.

        Args:
            draws: Flips of all clusters; 0 = Holm over p of `clustered_mean`, as for two dimensions.
            seed: Of the flips.

        Source: Westfall and Young (1993); Phipson and Smyth (2010).
        """
        at = [number for number, test in enumerate(self.tests) if test is not None]
        plain = np.array([estimate.p for estimate in self.estimates], dtype=np.float64)
        if not draws or not at:
            return list(self.estimates), adjust(plain)
        tests = [test for test in self.tests if test is not None]
        observed, drawn = self.flipped_p(tests, draws, seed)
        alone, together = permutation_p(observed, drawn), step_down(observed, drawn)
        limit = np.sort(drawn, axis=0)[max(0, int((1 - LEVEL) * (draws + 1)) - 2)]
        estimates, corrected = list(self.estimates), np.full(len(self.estimates), np.nan)
        corrected[at] = together
        for number, (_, sums), p, most in zip(at, tests, alone, limit):
            estimates[number] = _calibrated(estimates[number], float(p), float(most), sums.df)
        return estimates, corrected

    def flipped_p(self, tests: Sequence[tuple[Codes, ClusterSums]], draws: int, seed: int) -> tuple[Floats, Floats]:
        """Return p of t as observed, (tests,), and after each flip, (draws, tests)."""
        matrix = np.zeros((self.n_clusters, 4, len(tests)))
        for number, (names, test) in enumerate(tests):
            first, second = test.sums[0], test.sums[1] if len(test.sums) > 1 else 0 * test.sums[0]
            shares = np.vstack([test.shares, 0 * test.shares])[:2]
            net = test.scale * (first - second)
            matrix[names, :, number] = np.stack([first, second, net * shares[0], net * shares[1]], axis=1)
        constants = np.array([_constants(test) for _, test in tests]).T
        df, generator = np.array([test.df for _, test in tests]), np.random.default_rng(seed)
        observed = _p(np.ones((1, self.n_clusters)), matrix, constants, df)[0]
        block = max(1, _CELLS // self.n_clusters)
        drawn = [
            _p(_signs(generator, min(block, draws - start), self.n_clusters), matrix, constants, df)
            for start in range(0, draws, block)
        ]
        return observed, np.concatenate(drawn)


def _signs(generator: np.random.Generator, draws: int, clusters: int) -> Floats:
    return np.asarray(2.0 * generator.integers(0, 2, (draws, clusters), dtype=np.int8) - 1.0, np.float64)


def _constants(test: ClusterSums) -> list[float]:
    """Return what no flip changes: sums of squares of the cluster sums, of both shares, and their product."""
    net = test.sums[0] - (test.sums[1] if len(test.sums) > 1 else 0)
    first, second = np.vstack([test.shares, 0 * test.shares])[:2]
    return [float(test.scale @ (a * b)) for a, b in ((net, net), (first, first), (second, second), (first, second))]


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
    if not np.isfinite(estimate.stderr) or not np.isfinite(quantile):
        return replace(estimate, p=p)
    half = quantile * estimate.stderr
    return replace(
        estimate, p=p, low=estimate.value - half, high=estimate.value + half, method="flips of clusters", skew=0.0
    )
