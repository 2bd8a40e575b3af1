"""Corrections, permutation, equivalence, verdicts, and what would decide more."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from seesaw_cf.errors import RecordError
from seesaw_cf.stats.clustered import case_weights
from seesaw_cf.stats.crossing import Crossing
from seesaw_cf.stats.multiple import adjust, permutation_level, permutation_p, step_down
from seesaw_cf.stats.simple import mcnemar, proportion, t_test
from seesaw_cf.stats.verdicts import Precision, contrast_precision, equivalence_p, minimum_detectable_effect, verdict
from seesaw_cf.types import Estimate

NAN = float("nan")


def closed_holm(p: list[float]) -> list[float]:
    """Holm by the closure principle: the largest Bonferroni p of any set of hypotheses with this one in it."""
    order = np.argsort(p)
    adjusted = [0.0] * len(p)
    for place, index in enumerate(order):
        adjusted[index] = max(min(1.0, p[order[j]] * (len(p) - j)) for j in range(place + 1))
    return adjusted


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_the_correction_agrees_with_its_definition(p: list[float]) -> None:
    assert adjust(p) == pytest.approx(closed_holm(p), abs=1e-12)


def test_step_down_by_hand() -> None:
    """Four permutations of two tests. The smaller p, .01: one of four has a p as small anywhere, (1 + 1) / 5. The
    other, .2, is only compared with its own permutations: two of four, 3 / 5."""
    drawn = np.array([[0.5, 0.01], [0.3, 0.1], [0.9, 0.6], [NAN, 0.7]])
    assert step_down(np.array([0.01, 0.2]), drawn).tolist() == [0.4, 0.6]
    assert step_down(np.array([0.2, NAN]), drawn).tolist() == pytest.approx([0.2, NAN], nan_ok=True)


def test_a_permutation_that_changes_nothing_counts_despite_rounding() -> None:
    drawn = np.full((19, 1), 0.01 * (1 + 1e-12))
    assert step_down(np.array([0.01]), drawn)[0] == permutation_p(np.array([0.01]), drawn)[0] == 1


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 8), st.integers(0, 2**31))
def test_step_down_is_never_below_the_single_p_nor_above_the_single_step(tests: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, drawn = rng.random(tests) ** 3, rng.random((99, tests))
    adjusted = step_down(p, drawn)
    alone, smallest = permutation_p(p, drawn), drawn.min(axis=1)
    assert (adjusted >= alone - 1e-12).all()
    assert (adjusted <= (1 + (smallest[:, None] <= p * (1 + 1e-6)).sum(axis=0)) / 100 + 1e-12).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()


def test_a_permuted_level_is_where_the_single_p_reaches_it() -> None:
    drawn = np.random.default_rng(0).random((199, 1))
    point = permutation_level(drawn, 0.05)
    assert permutation_p(point * 0.999, drawn)[0] <= 0.05 < permutation_p(point, drawn)[0]
    assert permutation_level(np.full((9, 1), NAN), 0.05)[0] == 0.05


def test_a_family_of_nothing_is_significant_as_often_as_it_says() -> None:
    """Correlated tests, each row of a null table against the others: uniform up to Monte Carlo."""
    rng = np.random.default_rng(1)
    common = rng.normal(size=(2_000, 1))
    p = stats.norm.sf(np.abs(common + rng.normal(size=(2_000, 12)))) * 2
    smallest = [step_down(row, p[1_000:])[np.argmin(row)] for row in p[:1_000]]
    assert stats.kstest(smallest, "uniform").pvalue > 0.001


def test_equivalence_and_detectable_effect_by_hand() -> None:
    # value 0, stderr 1, margin 2, df inf: p = P(Z > 2)
    assert equivalence_p(0, 1, math.inf, 2) == pytest.approx(stats.norm.sf(2))
    assert minimum_detectable_effect(1, math.inf) == pytest.approx(1.959964 + 0.841621, abs=1e-5)
    with pytest.raises(RecordError, match="margin is 0, expected a finite number above 0"):
        equivalence_p(0, 1, 9, 0)


# value, corrected p, edits -> verdict, and what its rule says; margin .1, noise floor .05, level .05
VERDICTS = [
    (-0.3, 0.001, None, "hit_harder", ""),
    (-0.3, 0.001, 20, "hit_harder", "20 edits can miss rare harm, 80 needed"),
    (0.3, 0.001, None, "hit_less", ""),
    (-0.1001, 0.001, 80, "hit_harder", ""),
    (-0.0999, 0.001, 80, "slightly_harder", "inside the margin"),
    (-0.06, 0.001, 20, "slightly_harder", "inside the margin"),
    (0.0999, 0.001, 80, "undecided", ""),
    (-0.04, 0.001, None, "undecided", "within the noise floor"),
    (0.001, 0.9, 80, "equal", ""),
    (0.001, 0.9, 79, "undecided", "79 edits can miss rare harm"),
    (0.09, 0.2, None, "undecided", ""),
    (NAN, NAN, None, "too_few", "too few"),
]


@pytest.mark.parametrize(("value", "p", "edits", "expected", "rule"), VERDICTS)
def test_verdicts(value: float, p: float, edits: int | None, expected: str, rule: str) -> None:
    estimate = Estimate(value, stderr=0.02 if p > 0.5 else 0.06, p=p, df=30, note="too few")
    found = verdict(estimate, margin=0.1, noise_floor=0.05, edits=edits)
    assert found.label == expected
    assert rule in found.rule
    real = p < 0.05 and abs(value) > 0.05
    assert found.direction == (("below 0" if value < 0 else "above 0") if real else "")


@pytest.mark.parametrize("floor", [0.09, 0.1, 0.2, None])
def test_nothing_is_equal_where_noise_alone_reaches_the_margin(floor: float | None) -> None:
    estimate = Estimate(0.001, stderr=0.02, p=0.9, df=30)
    assert verdict(estimate, margin=0.1, noise_floor=floor).label == ("equal" if floor == 0.09 else "undecided")


def test_simple_tests() -> None:
    assert mcnemar(0, 0) == 1
    assert mcnemar(5, 0) == pytest.approx(2 * 0.5**5)
    assert math.isnan(proportion(0, 0).value)
    assert t_test(np.array([1.0]))[2] == "fewer than two cases"
    assert t_test(np.zeros(5))[2] == "all case values equal"


def crossed(edits: int, people: int, per_edit: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Edit and person codes: each edit asks `per_edit` people."""
    rng = np.random.default_rng(seed)
    person = np.concatenate([rng.choice(people, per_edit, replace=False) for _ in range(edits)])
    return np.repeat(np.arange(edits), per_edit), person, rng


@pytest.mark.parametrize(
    ("more", "spread"), [("edits", (0.06, 0.02)), ("people", (0.02, 0.08)), ("edits", (0.02, 0.08))]
)
def test_the_error_of_a_run_four_times_as_large_is_that_of_its_quarter(more: str, spread: tuple[float, float]) -> None:
    factor = {more: 4.0}
    squares = np.zeros(2)
    for seed in range(12):
        for at, size in enumerate((1, 4)):
            edits, people = (40 * size, 80) if more == "edits" else (40, 80 * size)
            edit, person, rng = crossed(edits, people, 30 if more == "edits" else 30 * size, 100 + seed)
            member = person % 3 == 0
            y = member * rng.normal(0, spread[0], edits)[edit] + rng.normal(0, spread[1], people)[person]
            y = y + rng.normal(0, 0.1, y.size)
            crossing = Crossing(
                [case_weights(edit, side) for side in (member, ~member)], {"edit": edit, "person": person}
            )
            stderr = float(crossing.errors(y[:, None])[1][0])
            precision = contrast_precision(y, edit, person, member, stderr, (edits, people / 3))
            assert precision.variance() == pytest.approx(stderr**2, rel=1e-9)
            squares[at] += precision.variance(**factor if at == 0 else {})
    assert np.sqrt(squares[0] / squares[1]) == pytest.approx(1, abs=0.15)


def test_factors_are_the_least_that_find_the_effect() -> None:
    precision = Precision(edits=1e-4, people=2e-4, both=4e-4, effective_edits=30, effective_people=60)
    now = float(precision.detectable(1.0, 1.0, 0.05, 0.8))
    assert precision.factors(now * 1.001, 0.05, 0.8) == (1, 1, (1, 1))
    edits, people, (few_edits, few_people) = precision.factors(now * 0.75, 0.05, 0.8)
    assert few_edits * few_people <= min(edits, people)
    for more_edits, more_people in ((edits, 1.0), (1.0, people), (few_edits, few_people)):
        assert precision.detectable(more_edits, more_people, 0.05, 0.8) <= now * 0.75
    assert precision.detectable(edits / 1.1, 1.0, 0.05, 0.8) > now * 0.75
    assert precision.factors(0.01, 0.05, 0.8)[:2] == (np.inf, np.inf)
