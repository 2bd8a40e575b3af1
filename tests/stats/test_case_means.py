"""Means over cases and their differences, by hand and as laws."""

from __future__ import annotations

from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.stats.simple import case_estimate, proportion, share_estimate

ROWS = st.lists(st.tuples(st.integers(0, 9), st.floats(-100, 100)), min_size=1, max_size=30)


def columns(rows: list[tuple[int, float]]) -> tuple[pd.Series, pd.Series]:
    case, value = zip(*rows, strict=True)
    return pd.Series(value, dtype=float), pd.Series(case)


def test_the_interval_of_a_mean_ends_where_the_scale_does() -> None:
    values = columns(list(enumerate([1.0, 1, 1, 7, 1, 1, 1, 1])))
    whole, cut = case_estimate(*values), case_estimate(*values, within=(1, 7))
    assert whole.low < 1 == cut.low
    assert (cut.value, cut.high, cut.p) == (whole.value, whole.high, whole.p)


@given(ROWS, st.floats(-50, 50), st.randoms(use_true_random=False))
def test_the_mean_is_that_of_the_case_means_in_any_order(
    rows: list[tuple[int, float]], shift: float, random: Random
) -> None:
    values, case = columns(rows)
    expected = values.groupby(case).mean().mean()
    found = case_estimate(values, case)
    assert found.value == pytest.approx(expected, abs=1e-9)
    assert (found.n, found.clusters["case"]) == (len(rows), case.nunique())
    assert case_estimate(values + shift, case).value == pytest.approx(expected + shift, abs=1e-9)
    mixed = list(rows)
    random.shuffle(mixed)
    assert case_estimate(*columns(mixed)).value == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.floats(-9, 9)), min_size=2, max_size=20))
def test_exchanging_the_sides_turns_the_sign(rows: list[tuple[int, bool, float]]) -> None:
    values, case = columns([(case, value) for case, _, value in rows])
    first = np.array([side for _, side, _ in rows])
    one, two = case_estimate(values, case, first, ~first), case_estimate(values, case, ~first, first)
    assert one.value == pytest.approx(-two.value, abs=1e-9, nan_ok=True)
    assert one.p == pytest.approx(two.p, abs=1e-9, nan_ok=True)


def test_the_interval_of_a_share_ends_at_one() -> None:
    found, case = columns([(number, float(number > 0)) for number in range(12)])
    plain, share, one = case_estimate(found, case), share_estimate(found > 0, case), proportion(11, 12)
    assert plain.high > 1
    assert (share.value, share.low, share.high) == pytest.approx((one.value, one.low, one.high))
    assert np.isnan(share.p)
    assert np.isnan(share_estimate(found[:1] > 0, case[:1]).high)
    assert share_estimate(found[1:] > 0, case[1:]).low == pytest.approx(11 / (11 + 1.959964**2))


@pytest.mark.parametrize("yes", range(13))
def test_p_of_a_share_agrees_with_its_interval(yes: int) -> None:
    found, case = columns([(number, float(number < yes)) for number in range(12)])
    share = share_estimate(found > 0, case, against=0.5)
    assert (share.p < 0.05) is not (share.low <= 0.5 <= share.high)
