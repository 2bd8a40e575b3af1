"""Corrections, permutation, equivalence, planning and verdicts."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.stats import (
    adjust,
    adjust_families,
    equivalence_p,
    label_permutation,
    mcnemar,
    minimum_detectable_effect,
    proportion,
    t_test,
    verdict,
)
from seesaw_cf.types import Estimate

NAN = float("nan")


def test_holm_by_hand() -> None:
    # sorted .01 .03 .04: 3 x .01, 2 x .03, 1 x .04 -> .03, .06, max(.06, .04)
    assert adjust([0.04, 0.01, NAN, 0.03]) == pytest.approx([0.06, 0.03, NAN, 0.06], nan_ok=True)


def closed_holm(p: list[float]) -> list[float]:
    """Holm by the closure principle: the largest Bonferroni p of any set of hypotheses with this one in it."""
    order = np.argsort(p)
    adjusted = [0.0] * len(p)
    for place, index in enumerate(order):
        adjusted[index] = max(min(1.0, p[order[j]] * (len(p) - j)) for j in range(place + 1))
    return adjusted


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrections_agree_with_their_definitions(p: list[float]) -> None:
    assert adjust(p, "holm") == pytest.approx(closed_holm(p), abs=1e-12)
    for ours in ("bh", "by"):
        expected = stats.false_discovery_control(p, method=ours)
        assert adjust(p, ours) == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow(60)
@pytest.mark.exhaustive  # the first import of statsmodels is slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrections_agree_with_statsmodels(p: list[float]) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    for ours, theirs in (("holm", "holm"), ("bh", "fdr_bh"), ("by", "fdr_by")):
        expected = multitest.multipletests(p, method=theirs)[1]
        assert adjust(p, ours) == pytest.approx(expected, abs=1e-12)  # type: ignore[arg-type]


def test_families_are_declared_columns() -> None:
    table = pd.DataFrame({"editor": ["a", "a", "b", "b"], "p": [0.01, 0.02, 0.01, NAN]})
    found = adjust_families(table, ["editor"])
    assert found["p_adjusted"].tolist() == pytest.approx([0.02, 0.02, 0.01, NAN], nan_ok=True)
    assert found["family_size"].tolist() == [2, 2, 1, 1]
    assert adjust_families(table, [])["p_adjusted"].max() == pytest.approx(0.03)


def test_bad_p_values() -> None:
    with pytest.raises(UnknownNameError, match="unknown correction 'hol'"):
        adjust([0.1], "hol")  # type: ignore[arg-type]
    with pytest.raises(RecordError, match=r"range 0.1..5, expected 0..1"):
        adjust([0.1, 5])


def test_permutation_finds_a_planted_group_and_is_uniform_under_the_null() -> None:
    rng = np.random.default_rng(0)
    strata = np.repeat(np.arange(4), 25)
    member = rng.random((100, 3)) < 0.3
    values = rng.normal(size=100) + 5 * strata  # strata alone must not matter
    _, p, p_max = label_permutation(values, member, strata, permutations=500)
    assert (p_max >= p - 1e-12).all()
    planted = values + 2.0 * member[:, 1]
    _, p, p_max = label_permutation(planted, member, strata, permutations=500)
    assert p_max[1] < 0.01
    null = [
        label_permutation(rng.normal(size=100), member, strata, permutations=99, seed=i)[2].min() for i in range(200)
    ]
    assert 0.01 <= np.mean(np.array(null) <= 0.05) <= 0.10  # family-wise error 5 %, 200 tables


def test_p_of_a_permutation_counts_the_labels_as_they_are() -> None:
    """No shuffle of 40 people puts the 20 largest values into one group again: (0 + 1) / (99 + 1)."""
    member = np.arange(40)[:, None] < 20
    _, p, p_max = label_permutation(member[:, 0].astype(np.float64), member, np.zeros(40, np.intp), permutations=99)
    assert (p[0], p_max[0]) == (0.01, 0.01)


def test_permutation_cannot_test_a_label_that_fills_its_stratum() -> None:
    member = np.array([[1], [1], [0], [0]], dtype=bool)
    statistic, p, p_max = label_permutation(np.arange(4.0), member, np.array([0, 0, 1, 1]), permutations=20)
    assert np.isnan([statistic[0], p[0], p_max[0]]).all()


def test_equivalence_and_detectable_effect_by_hand() -> None:
    # value 0, stderr 1, margin 2, df inf: p = P(Z > 2)
    assert equivalence_p(0, 1, math.inf, 2) == pytest.approx(stats.norm.sf(2))
    assert minimum_detectable_effect(1, math.inf) == pytest.approx(1.959964 + 0.841621, abs=1e-5)
    with pytest.raises(RecordError, match="margin is 0, expected a finite number above 0"):
        equivalence_p(0, 1, 9, 0)


@pytest.mark.parametrize(
    ("value", "p", "expected", "rule"),
    [
        (-0.3, 0.001, "worse off", "corrected p 0.001 < 0.05"),
        (0.3, 0.001, "better off", "noise floor 0.05"),
        (-0.04, 0.001, "undetermined", "within the noise floor"),
        (0.001, 0.9, "equivalent", "TOST p"),
        (0.09, 0.2, "undetermined", "not detectable"),
        (NAN, NAN, "not testable", "no interval: too few"),
    ],
)
def test_verdicts(value: float, p: float, expected: str, rule: str) -> None:
    stderr = 0.02 if p > 0.5 else 0.06
    found = verdict(Estimate(value, stderr=stderr, p=p, df=30, note="too few"), margin=0.1, noise_floor=0.05)
    assert found.label == expected
    assert rule in found.rule


@pytest.mark.parametrize(("floor", "expected"), [(0.09, "equivalent"), (0.1, "undetermined"), (0.2, "undetermined")])
def test_nothing_is_equivalent_where_noise_alone_reaches_the_margin(floor: float, expected: str) -> None:
    estimate = Estimate(0.001, stderr=0.02, p=0.9, df=30)
    assert verdict(estimate, margin=0.1, noise_floor=floor).label == expected


def test_simple_tests() -> None:
    assert mcnemar(0, 0) == 1
    assert mcnemar(5, 0) == pytest.approx(2 * 0.5**5)
    assert proportion(0, 0).method == "no case"
    assert t_test(np.array([1.0]))[2] == "fewer than two cases"
    assert t_test(np.zeros(5))[2] == "all case values equal"
