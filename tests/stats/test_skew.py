"""Hall's transformation and the outer rule: laws that hold for every t and every skew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from seesaw_cf.stats.clustered import hall, hall_inverse, outer_limits, outer_p

T = st.floats(-8, 8)
SKEW = st.floats(-2, 2)


def test_hall_by_hand() -> None:
    # t = 2, a = 0.6: 2 + .6 * 4 / 3 + .36 * 8 / 27 + .1 = 3.0067
    assert hall(2.0, 0.6) == pytest.approx(2 + 0.8 + 0.32 / 3 + 0.1)


@given(T, SKEW)
def test_the_inverse_undoes_hall(t: float, skew: float) -> None:
    # Flat where 1 + a t / 3 = 0: there a rounding of 1e-15 moves the root by its cube root.
    assert hall_inverse(hall(t, skew), skew) == pytest.approx(t, abs=1e-4 if abs(1 + skew * t / 3) < 0.01 else 1e-8)


@given(T, st.sampled_from([0.0, 1e-300, 1e-12, -1e-9]))
def test_without_skew_it_is_t(t: float, skew: float) -> None:
    assert hall(t, skew) == pytest.approx(t, abs=1e-7)
    assert hall_inverse(t, skew) == pytest.approx(t, abs=1e-7)
    low, high = outer_limits(1.0, 2.0, abs(t), skew)
    assert np.ravel([low, high]) == pytest.approx([1 - 2 * abs(t), 1 + 2 * abs(t)], abs=1e-6)


@given(T, SKEW, st.floats(3, 300))
def test_interval_and_p_agree(t: float, skew: float, df: float) -> None:
    quantile = stats.t.isf(0.025, df)
    low, high = outer_limits(t, 1.0, quantile, skew)
    p = float(outer_p(t, df, skew))
    assert p >= 2 * stats.t.sf(abs(t), df) - 1e-12
    assert low <= t - quantile + 1e-12
    assert high >= t + quantile - 1e-12
    if min(abs(low), abs(high)) > 1e-3:  # where Hall's cubic is flat, less is a rounding of it
        assert (p < 0.05) == bool(low > 0 or high < 0)


@given(T, SKEW, st.floats(3, 300))
def test_turning_all_values_round_turns_the_interval_round(t: float, skew: float, df: float) -> None:
    straight, turned = (np.ravel(outer_limits(sign * t, 1.0, 2.0, sign * skew)) for sign in (1, -1))
    assert -turned[::-1] == pytest.approx(straight)
    assert outer_p(-t, df, -skew) == pytest.approx(outer_p(t, df, skew))
