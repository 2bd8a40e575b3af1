"""Tests by exchanging before and after of clusters: as by hand, and at their level."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.stats.clustered import clustered_mean
from seesaw_cf.stats.multiple import ClusterFlips

N, CLUSTERS = 24, 8
CODE = np.arange(N) // 3
MEAN = [np.full(N, 1 / N)]
SIDES = [(np.arange(N) % 3 == 0) / CLUSTERS, (np.arange(N) % 3 > 0) / (2 * CLUSTERS)]


def _values(seed: int, shift: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(shift, 1, N) + rng.normal(0, 1, CLUSTERS)[CODE])


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_statistic_after_a_flip_is_that_of_flipped_values(seed: int, contrast: bool) -> None:
    """The expanded square is `clustered_mean` of the values with their signs changed, for every one of them."""
    parts, values = SIDES if contrast else MEAN, _values(seed)
    flips = ClusterFlips(CLUSTERS)
    flips.add(values, parts, {"cluster": CODE})
    _, drawn = flips.flipped_p([test for _, test in flips.tests if test], 30, seed)
    signs = 2.0 * np.random.default_rng(seed).integers(0, 2, (30, CLUSTERS), dtype=np.int8) - 1
    for sign, p in zip(signs, drawn[:, 0]):
        estimate = clustered_mean(values * sign[CODE], parts, {"cluster": CODE})
        t = estimate.value / estimate.stderr
        assert p == pytest.approx(_two_sided(t, estimate.df), rel=1e-6, abs=1e-9)


def _two_sided(t: float, df: float) -> float:
    from scipy import stats

    return float(2 * stats.t.sf(abs(t), df))


def test_p_is_the_share_of_all_sign_patterns() -> None:
    """All 2^8 patterns of clusters, against 4,999 of them drawn."""
    values = _values(3, 0.8)
    flips = ClusterFlips(CLUSTERS)
    flips.add(values, MEAN, {"cluster": CODE})
    (estimate,), corrected = flips.corrected(4999, seed=0)
    sums = np.bincount(CODE, values)
    patterns = np.array(list(product((-1.0, 1.0), repeat=CLUSTERS))) * sums
    t = np.abs(patterns.sum(axis=1)) / patterns.std(axis=1)
    exact = float((t >= t[-1] * (1 - 1e-9)).mean())
    assert estimate.p == pytest.approx(exact, abs=0.02)
    assert corrected[0] == pytest.approx(estimate.p)


@given(st.integers(0, 2**32 - 1), st.floats(-1, 1))
@settings(max_examples=40, deadline=None)
def test_the_interval_excludes_zero_exactly_where_p_is_below_the_level(seed: int, shift: float) -> None:
    flips = ClusterFlips(CLUSTERS)
    flips.add(_values(seed, shift), MEAN, {"cluster": CODE})
    (estimate,), _ = flips.corrected(199, seed)
    assert (estimate.p < 0.05) == (not estimate.low <= 0 <= estimate.high)


@pytest.mark.slow
def test_a_family_without_a_difference_is_rejected_at_its_level() -> None:
    """Eight tests in 200 draws: no more than chance makes of 5 %."""
    rejected = 0
    for seed in range(200):
        flips = ClusterFlips(CLUSTERS)
        for test in range(8):
            flips.add(_values(1000 * seed + test), MEAN, {"cluster": CODE})
        rejected += bool((flips.corrected(99, seed)[1] < 0.05).any())
    assert rejected <= 20
