"""Shares, paired changes and means over cases: coverage, by hand and as laws."""

from functools import cache
from itertools import product
from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchmarks.simulation import share_rows
from seesaw_cf.errors import RecordError
from seesaw_cf.stats.bootstrap import interval
from seesaw_cf.stats.simple import (
    agreeing,
    case_estimate,
    clustered_share,
    mcnemar,
    paired_change,
    proportion,
    share_estimate,
    share_interval,
)

few = settings(derandomize=True, deadline=None, max_examples=50)


@pytest.mark.slow(8)
def test_nineteen_of_twenty_intervals_hold_the_true_share() -> None:
    rows = list(share_rows(400, 0))
    assert {(row["edits"], row["prompts"], row["share"]) for row in rows} == {
        (edits, prompts, share) for edits in (18, 36, 160) for prompts in (1, 2, 10) for share in (0.97, 0.99)
    }
    for row in rows:
        # Below this count of 400 a coverage of .93 has a chance of 1 in 100,000.
        assert round(400 * row["coverage"]) >= stats.binom.ppf(1e-5, 400, 0.93), row
        assert row["narrowest"] > 0


@few
@given(st.integers(1, 60), st.data())
def test_one_value_an_edit_is_a_proportion(n: int, data: st.DataObject) -> None:
    yes = data.draw(st.integers(0, n))
    found = clustered_share(np.repeat([1.0, 0.0], [yes, n - yes]), np.full(n, 1 / n), np.arange(n))
    share = proportion(yes, n)
    assert (found.value, found.low, found.high) == pytest.approx((share.value, share.low, share.high), abs=1e-9)
    assert found.effective["case"] == pytest.approx(n)


@few
@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from((0.0, 0.5, 1.0))), min_size=1, max_size=30))
def test_a_share_has_a_width_and_counts_at_least_as_edits_of_the_largest_and_at_most_as_its_values(
    rows: list[tuple[int, float]],
) -> None:
    case, values = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    found = clustered_share(values, np.full(len(rows), 1 / len(rows)), case)
    shares = np.bincount(case) / len(rows)
    assert 0 <= found.low < found.high <= 1
    assert found.low <= found.value <= found.high
    # As edits that are all as large as the largest: where large ones differ most they count for less than 1 / Σ s².
    assert 1 / shares.max() - 1e-9 <= found.effective["case"] <= len(rows) + 1e-9


@pytest.mark.parametrize("n", [1, 5, 18, 160])
def test_ends_of_all_and_of_none(n: int) -> None:
    z = stats.norm.ppf(0.975)
    low = min(n / (n + z * z), 0.05 ** (1 / n))  # Wilson; where all n are right with a chance of 5 %
    assert share_interval(1.0, n) == pytest.approx((low, 1))
    assert share_interval(0.0, n) == pytest.approx((0, 1 - low))
    for value in (-0.1, 3.0):
        with pytest.raises(RecordError, match=rf"value is {value}, expected a share, 0 to 1"):
            share_interval(value, n)


@pytest.mark.slow(8)
def test_interval_and_test_of_a_change_agree_on_every_table_of_25_cases() -> None:
    extended, tested = 0, cache(mcnemar)
    for n in range(1, 26):
        for both, lost in product(range(n + 1), repeat=2):
            for gained in range(min(lost, n - both - lost) + 1):  # the other half is its mirror image
                counts = (both, lost, gained, n - both - lost - gained)
                pre, post = (
                    np.repeat(side, counts) for side in ([True, True, False, False], [True, False, True, False])
                )
                ends, exact = paired_change(pre, post, n), tested(lost, gained)
                low, high, p = agreeing(*ends, exact)
                assert (p < 0.05) is not (low <= 0 <= high)
                assert p == exact, "the exact test decides"
                assert low <= ends[0] <= (gained - lost) / n <= ends[1] <= high
                extended += (low, high) != ends
    assert extended > 500, "such as 5 of 20 lost, p .0625"


PUBLISHED = {
    # Airway responsiveness of 21 children (Bentur et al. 2009): A = 1 * 12 - 1 * 7 = 5, at most 21 / 2, so phi is 0.
    (1, 1, 7, 12): (-0.507, -0.026),
    # Response of 161 patients (Cavo et al. 2012): A = 59 * 80 - 6 * 16 = 4624, and phi takes A - 161 / 2.
    (59, 6, 16, 80): (-0.1186, -0.0046),
}
"""Cases with (both, the first alone, the second alone, neither) -> 95 % limits of the first share minus the second.

Source: Fagerland, Lydersen, Laake (2017), Statistical Analysis of Contingency Tables, chapter 8, Newcombe's
square-and-add interval with his continuity correction of phi. Without it they are (-0.502, -0.036) and
(-0.1174, -0.0059).
"""


@pytest.mark.parametrize("counts", PUBLISHED)
def test_paired_change_is_the_published_interval(counts: tuple[int, int, int, int]) -> None:
    first, second = (np.repeat(side, counts) for side in ([True, True, False, False], [True, False, True, False]))
    digits = 3 if sum(counts) < 100 else 4
    found = paired_change(second, first, sum(counts))
    assert tuple(round(limit, digits) for limit in found) == PUBLISHED[counts]


def test_interval_of_draws_by_hand() -> None:
    """0, 1, ..., 100 and a draw without a value: 2.5 % below and above; the sum of squares is 101 * 850."""
    low, high, stderr = interval(np.append(np.arange(101.0), np.nan))
    assert (low, high) == pytest.approx((2.5, 97.5))
    assert stderr == pytest.approx((101 * 850 / 100) ** 0.5)
    assert interval(np.array([1.0, np.nan])) == pytest.approx((np.nan,) * 3, nan_ok=True)


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
