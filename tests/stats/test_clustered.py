"""Clustered means and Hall's interval: against formulas by hand, statsmodels, and laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from benchmarks import bursts
from seesaw_cf.errors import RecordError
from seesaw_cf.stats.clustered import (
    case_weights,
    clustered_mean,
    clustered_means,
    half_clusters,
    hall,
    hall_inverse,
    outer_limits,
    outer_p,
)
from seesaw_cf.stats.crossing import Crossing, _ranks

RNG = np.random.default_rng(7)


def test_one_observation_per_cluster_is_the_t_test() -> None:
    # CR2 with n equal clusters of one: sum r^2 / (1 - 1/n) / n^2 = s^2 / n, and df = n - 1
    half = RNG.normal(0, 1, 12)
    values = 0.3 + np.concatenate([half, -half, [0]])  # no skew
    found = clustered_mean(values, [np.full(25, 1 / 25)], {"edit": np.arange(25)})
    t = stats.ttest_1samp(values, 0)
    assert (found.value, found.stderr, found.df) == pytest.approx((values.mean(), stats.sem(values), 24))
    assert found.p == pytest.approx(t.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(t.confidence_interval()))


def test_a_burst_lengthens_its_side_of_the_interval() -> None:
    # The skewness of a mean of n independent values is theirs, corrected for bias (G1), over the root of n.
    values = RNG.lognormal(size=25)
    edit = {"edit": np.arange(25)}
    skew = stats.skew(values, bias=False) / 5
    assert Crossing([np.full(25, 1 / 25)], edit).errors(values[:, None])[3] == pytest.approx(skew)
    found, t = clustered_mean(values, [np.full(25, 1 / 25)], edit), stats.ttest_1samp(values, 0)
    low, high = t.confidence_interval()
    hall = 3 / skew * (np.cbrt(1 + skew * (-stats.t.isf(0.025, 24) - skew / 6)) - 1)
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(values.mean() - found.stderr * hall)
    assert found.high > high
    assert found.p >= t.pvalue
    # The interval of a contrast is the outer one, too.
    parts = [np.r_[np.full(25, 1 / 25), np.zeros(25)], np.r_[np.zeros(25), np.full(25, 1 / 25)]]
    contrast = clustered_mean(np.r_[values, np.arange(25)], parts, {"edit": np.arange(50)})
    half = stats.t.isf(0.025, contrast.df) * contrast.stderr
    assert contrast.low <= contrast.value - half + 1e-12
    assert contrast.high >= contrast.value + half - 1e-12


@pytest.mark.parametrize("sums", [[3.0, -1, 1, 1], [1.0] * 8, [0.0] * 4, [5.0, 5]])
def test_half_of_a_mean(sums: list[float]) -> None:
    expected = {3.0: 1, 1.0: 4, 0.0: 0, 5.0: 1}[sums[0]]
    values = np.repeat(sums, 2)[:, None] / 2
    assert half_clusters(np.hstack([values, -values]), np.repeat(np.arange(len(sums)), 2)).tolist() == [expected] * 2


@pytest.mark.parametrize(("scenario", "least"), [("20 % of edits harm", 0.93), ("normal", 0.92)])
def test_intervals_hold_the_mean_where_few_of_32_edits_harm(scenario: str, least: float) -> None:
    """1,000 draws: a coverage of .95 has an error of .007. t alone holds the mean of bursts in .80."""
    rng = np.random.default_rng(5)
    edit, person = bursts.people(32, rng)
    y, truth = bursts.simulated(scenario, edit, person, 1000, rng)
    crossing = Crossing([np.full(edit.size, 1 / edit.size)], {"edit": edit, "person": person})
    row = bursts.coverage(crossing, y, truth)
    assert row["outer"] >= least
    assert row["t"] < 0.87 or scenario == "normal"


def test_two_way_variance_by_hand() -> None:
    # crossed 8 x 8 without replicates: V = V_row + V_column - V_cell
    y = RNG.normal(size=(8, 1)) + RNG.normal(size=(1, 8)) + 0.1 * RNG.normal(size=(8, 8))
    rows, columns = (code.ravel() for code in np.indices((8, 8)))
    found = clustered_mean(y.ravel(), [np.full(64, 1 / 64)], {"edit": rows, "person": columns})
    r = y - y.mean()
    v_row, v_column = (((r.sum(axis) / 64) ** 2).sum() / (1 - 1 / 8) for axis in (1, 0))
    v_cell = ((r / 64) ** 2).sum()
    assert found.stderr == pytest.approx(math.sqrt(v_row + v_column - v_cell))
    assert found.clusters == {"edit": 8, "person": 8}
    total = v_row + v_column - v_cell
    assert found.df == pytest.approx(total**2 / (v_row**2 / 7 + v_column**2 / 7))  # Satterthwaite, 7 for each dimension


def test_one_way_agrees_with_statsmodels() -> None:
    api = pytest.importorskip("statsmodels.api", reason="statsmodels.api is not installed")
    clusters = np.repeat(np.arange(10), 6)
    values = RNG.normal(size=10)[clusters] + RNG.normal(size=60)
    theirs = api.OLS(values, np.ones(60)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False}
    )
    ours = clustered_mean(values, [np.full(60, 1 / 60)], {"edit": clusters})
    assert ours.stderr**2 == pytest.approx(float(theirs.bse[0]) ** 2 / (1 - 1 / 10))


def effective(shares: list[float]) -> float:
    weights = np.array(shares) / np.sum(shares)
    return Crossing([weights], {"edit": np.arange(weights.size)}).effective["edit"]


def test_unequal_clusters_count_for_less() -> None:
    # df = tr(CV)^2 / tr(CVCV), V = S S', S = diag(a) - a a', C = diag(1 / (1 - a)); equal clusters give G - 1
    assert effective([1.0, 1, 1, 1]) == pytest.approx(4)
    a = np.array([5, 2, 1, 1, 1]) / 10
    s = np.diag(a) - np.outer(a, a)
    q = np.diag(1 / (1 - a)) @ s @ s.T
    assert effective([5.0, 2, 1, 1, 1]) == pytest.approx(1 + np.trace(q) ** 2 / np.trace(q @ q))
    assert effective([97.0, 1, 1, 1]) < 2.1


def sides(first: NDArray[np.float64], second: NDArray[np.float64]) -> Crossing:
    """A difference of two groups of people, with these weights."""
    person = np.arange(first.size + second.size)
    parts = [np.r_[first / first.sum(), np.zeros(second.size)], np.r_[np.zeros(first.size), second / second.sum()]]
    return Crossing(parts, {"person": person})


def test_two_groups_of_people_count_like_welch() -> None:
    # 4 and 10 people, equal weights, equal variances: df = (1/4 + 1/10)^2 / (1/4^2/3 + 1/10^2/9)
    found = sides(np.ones(4), np.ones(10))
    assert found.errors(RNG.normal(size=(14, 1)))[2] == pytest.approx(
        (1 / 4 + 1 / 10) ** 2 / (1 / 16 / 3 + 1 / 100 / 9)
    )
    assert found.sides["person"] == pytest.approx([4, 10])
    assert found.effective["person"] == pytest.approx(4)


def test_a_side_of_one_person_is_refused() -> None:
    """Its residual is 0, so the degrees of freedom are those of the other side alone; the floor is on each side."""
    edit, person = (code.ravel() for code in np.indices((20, 61)))
    parts = [case_weights(edit, person == 0), case_weights(edit, person > 0)]
    values = np.random.default_rng(0).normal(size=(edit.size, 1))  # df depend on them: 4 to 50
    codes = {"edit": edit, "person": person}
    assert Crossing(parts, codes).errors(values)[2] > 10
    (found,) = clustered_means(values, parts, codes, ("Maori", "others"))
    assert np.isnan([found.low, found.high, found.stderr, found.p, found.df]).all()
    assert found.note == "too few people: 1 in Maori, 5 needed (1.0 effective)"
    assert found.effective == pytest.approx({"edit": 20, "person": 1})


def test_the_test_of_one_dominant_cluster_is_careful() -> None:
    """One person has a third of the weight: t with Satterthwaite's df rejects less often than the level, at every
    level. Holm reads the far tail, so a test that errs on either side there may err on this side only."""
    shares = np.r_[1 / 3, np.full(30, 2 / 90)]
    crossing = Crossing([shares], {"person": np.arange(31)})
    estimate, stderr, df, _ = crossing.errors(np.random.default_rng(3).normal(size=(31, 4000)))
    assert df == pytest.approx(np.full(4000, crossing.effective["person"] - 1))
    p = 2 * stats.t.sf(np.abs(estimate) / stderr, df)
    for level in (0.05, 0.01, 0.001):
        assert np.sum(p < level) <= stats.binom.ppf(0.999, 4000, level)


def test_case_weights_make_means_of_case_means() -> None:
    case, values = np.array([0, 0, 0, 1]), np.array([1.0, 2, 3, 10])
    assert case_weights(case, np.ones(4, bool)) @ values == pytest.approx((2 + 10) / 2)
    assert case_weights(case, np.zeros(4, bool)).sum() == 0


def test_bad_input() -> None:
    one = np.full(3, 1 / 3)
    with pytest.raises(RecordError, match="values are not all finite"):
        clustered_mean(np.array([1, np.nan, 2]), [one], {"edit": np.arange(3)})
    with pytest.raises(RecordError, match="weights add up to 0, expected 1"):
        clustered_mean(np.ones(3), [np.zeros(3)], {"edit": np.arange(3)})
    with pytest.raises(RecordError, match="lengths"):
        clustered_mean(np.ones(3), [one], {"edit": np.arange(2)})


@given(st.lists(st.integers(-3, 40) | st.sampled_from([2**62, -(2**62)]), max_size=30))
def test_ranks_keep_the_order_of_any_codes(codes: list[int]) -> None:
    order = sorted(set(codes))
    assert _ranks(np.array(codes, np.intp)).tolist() == [order.index(code) for code in codes]


def test_the_variance_of_two_dimensions_is_no_less_than_that_of_either() -> None:
    # Of noise alone the sum of the two less what they share may be anything, and near 0 t would have no df.
    rng, weights = np.random.default_rng(5), [np.full(96, 1 / 96)]
    edit, person = (code.ravel() for code in np.indices((8, 12)))
    for _ in range(40):
        y = rng.normal(size=96)
        both = clustered_mean(y, weights, {"edit": edit, "person": person})
        ways = [clustered_mean(y, weights, {name: code}) for name, code in (("edit", edit), ("person", person))]
        assert both.stderr >= max(way.stderr for way in ways) * (1 - 1e-12)
        assert both.df >= 1 / sum(1 / way.df for way in ways)


T = st.floats(-8, 8)
SKEW = st.floats(-2, 2)


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
def test_interval_and_p_agree_and_turn_round(t: float, skew: float, df: float) -> None:
    # interval and p agree
    quantile = stats.t.isf(0.025, df)
    low, high = outer_limits(t, 1.0, quantile, skew)
    p = float(outer_p(t, df, skew))
    assert p >= 2 * stats.t.sf(abs(t), df) - 1e-12
    assert low <= t - quantile + 1e-12
    assert high >= t + quantile - 1e-12
    if min(abs(low), abs(high)) > 1e-3:  # where Hall's cubic is flat, less is a rounding of it
        assert (p < 0.05) == bool(low > 0 or high < 0)
    # turning all values round turns the interval round
    straight, turned = (np.ravel(outer_limits(sign * t, 1.0, 2.0, sign * skew)) for sign in (1, -1))
    assert -turned[::-1] == pytest.approx(straight)
    assert outer_p(-t, df, -skew) == pytest.approx(outer_p(t, df, skew))
