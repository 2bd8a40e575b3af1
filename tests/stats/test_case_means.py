"""Means over cases and their differences, by hand and as laws."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.stats import proportion
from seesaw_cf.stats.simple import case_estimate, share_estimate

ROWS = st.lists(st.tuples(st.integers(0, 9), st.floats(-100, 100)), min_size=1, max_size=30)


def columns(rows: list[tuple[int, float]]) -> tuple[pd.Series, pd.Series]:
    case, value = zip(*rows, strict=True)
    return pd.Series(value, dtype=float), pd.Series(case)


def test_a_case_weighs_one_however_many_rows_it_has() -> None:
    # Case means 2 and 6; with as many cases as this there is no interval.
    found = case_estimate(*columns([(1, 1.0), (1, 3.0), (2, 6.0)]))
    assert (found.value, found.n, found.clusters["case"]) == (4, 3, 2)
    assert math.isnan(found.low)
    assert found.note.startswith("too few cases")


def test_the_interval_of_one_row_a_case_is_students() -> None:
    # One row per case and equal weights: mean 3.5, standard error s / sqrt(6), 5 degrees of freedom.
    values = [1.0, 2, 3, 4, 5, 6]
    found = case_estimate(*columns(list(enumerate(values))))
    half = 2.570581835636314 * math.sqrt(3.5 / 6)  # t(0.975, 5); the variance of 1 to 6 is 3.5
    assert (found.value, found.low, found.high) == pytest.approx((3.5, 3.5 - half, 3.5 + half))
    assert found.note == ""


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


def test_a_difference_of_two_sides_of_the_same_cases() -> None:
    # Six cases, each with one row on both sides and 2 more on the first: the difference is 2 without any spread.
    rows = [(case, float(case + 2 * side)) for side in (1, 0) for case in range(6)]
    values, case = columns(rows)
    first = np.arange(12) < 6
    found = case_estimate(values, case, first, ~first)
    assert found.value == pytest.approx(2)
    assert (found.n, found.clusters["case"]) == (12, 6)
    other = case_estimate(values, case, ~first, first)
    assert other.value == pytest.approx(-2)


def test_few_cases_on_one_side_have_a_difference_and_no_interval() -> None:
    rows = [(case, float(case)) for case in range(10)]
    values, case = columns(rows)
    first = np.arange(10) < 4
    found = case_estimate(values, case, first, ~first)
    assert found.value == pytest.approx(1.5 - 6.5)
    assert found.note == "too few cases: 4 in the first, 5 needed (4.0 effective)"
    assert all(math.isnan(getattr(found, name)) for name in ("low", "high", "p"))
    none = case_estimate(values, case, np.zeros(10, dtype=bool), ~first)
    assert (none.n, none.note) == (0, "no rows")


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
