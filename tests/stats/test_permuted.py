"""p of permuted labels and of exchanged signs: as the slow way and by hand, and at their level."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from seesaw_cf.stats import permuted
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import case_weights, clustered_mean, clustered_means
from seesaw_cf.stats.crossing import Codes
from seesaw_cf.stats.multiple import ClusterFlips
from seesaw_cf.stats.permuted import LabelledPeople
from seesaw_cf.types import Estimate


def one_by_one(edit: Codes, person: Codes, values: Floats, member: Floats, other: Floats) -> Floats:
    """p of each measure and labelling, by the estimator of reports."""
    found = np.full((values.shape[1], member.shape[1]), np.nan)
    for column, sides in enumerate(zip(member.T, other.T, strict=True)):
        rows = [side[person] > 0 for side in sides]
        both = np.logical_and(*(np.bincount(edit[own], minlength=edit.max() + 1) > 0 for own in rows))
        if not both.any():
            continue
        parts = [case_weights(edit, own & both[edit]) for own in rows]
        found[:, column] = [two_sided(one) for one in clustered_means(values, parts, {"edit": edit, "person": person})]
    return found


def two_sided(found: Estimate) -> float:
    return float(2 * stats.t.sf(abs(found.value) / found.stderr, found.df))


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("most", [3, 1])
@pytest.mark.parametrize(("edits", "people", "asked"), [(12, 30, 0.9), (20, 26, 0.9), (25, 40, 0.5), (70, 110, 0.1)])
def test_p_is_that_of_the_estimator_of_reports(
    edits: int, people: int, asked: float, most: int, single: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uneven crossings, up to three prompts of a person under an edit, people on neither side, groups of any size.

    Many cells are added up in single precision, where p is taken a little smaller: rounding makes no chance rarer.
    """
    if single:
        monkeypatch.setattr(permuted, "_SINGLE_FROM", 0)
    rng = np.random.default_rng(edits)
    edit, person = (code.ravel() for code in np.indices((edits, people)))
    times = rng.integers(0, 1 + most, edit.size) * (rng.random(edit.size) < asked)
    times *= 1 + (most == 1) * (edit % 2)  # equally often for all people of an edit
    edit, person = np.repeat(edit, times), np.repeat(person, times)
    edit = np.unique(edit, return_inverse=True)[1]
    block = edit % 3
    values = rng.lognormal(0, 1, (edit.size, 2)) + rng.normal(0, 3, int(edit.max()) + 1)[edit][:, None]
    labels = rng.integers(0, 4, (people, 12))  # 0: no tag
    member, other = (labels == 1).astype(float), (labels > 1).astype(float)
    labelled = LabelledPeople(edit, person, block, values, people)
    found = labelled.p(np.arange(people)[None], member, other)[:, :, 0]
    expected = [one_by_one(edit, person, values, member, other)]
    for code in range(3):
        rows = block == code
        own = np.unique(edit[rows], return_inverse=True)[1]
        expected.append(one_by_one(own, person[rows], values[rows], member, other))
    assert found.shape == (4, 2, 12)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.isfinite(found[0]).any()
    there = np.isfinite(found)
    smaller, digits = (permuted._TIE_SLACK, 1e-4) if single else (1.0, 1e-7)
    assert found[there] == pytest.approx(smaller * np.array(expected)[there], rel=digits)
    assert not single or (found[there] < np.array(expected)[there]).all()


def test_blocks_of_few_people_have_the_p_of_the_slow_way() -> None:
    """Each block asks 25 of 65 people, so that its sums are about them alone."""
    rng = np.random.default_rng(3)
    edit, person = (code.ravel() for code in np.indices((24, 25)))
    block = edit % 3
    person = person + 20 * block
    values = rng.normal(size=(edit.size, 2))
    labels = rng.integers(0, 3, (65, 5))
    member, other = (labels == 1).astype(float), (labels == 2).astype(float)
    orders = rng.permuted(np.tile(np.arange(65), (3, 1)), axis=1)
    found = LabelledPeople(edit, person, block, values, 65).p(orders, member, other)
    assert np.isfinite(found).mean() > 0.9
    for at, kinds in enumerate(orders):
        for number, rows in enumerate([block >= 0, *(block == code for code in range(3))]):
            own = np.unique(edit[rows], return_inverse=True)[1]
            slow = one_by_one(own, person[rows], values[rows], member[kinds], other[kinds])
            assert np.allclose(found[number, :, at], slow, rtol=1e-7, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("effect", [0.0, 0.3, 1.0])
def test_single_precision_has_no_scale_and_is_right_to_a_slack(effect: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Log-odds of thousands of nats and probabilities of 1e-25 alike, with an effect that is not small."""
    rng = np.random.default_rng(3)
    edit, person = (code.ravel() for code in np.indices((30, 60)))
    values = effect * (person % 3 == 0)[:, None] + rng.normal(0, 0.5, (edit.size, 1))
    kinds = np.stack([np.arange(60), *(rng.permutation(60) for _ in range(20))]) % 3 // 2
    member = np.array([[0.0], [1.0]])
    with monkeypatch.context() as patch:
        patch.setattr(permuted, "_SINGLE_FROM", 1 << 20)
        plain = LabelledPeople(edit, person, edit % 3, values, 60).p(kinds, member, 1 - member)
    seen = plain > 1e-10
    assert np.isfinite(plain).all()
    for scale in (1.0, 1e-25, 1e4, 1e20):
        labelled = LabelledPeople(edit, person, edit % 3, values * scale, 60)
        assert labelled.dtype == np.float32  # 1,800 cells
        found = labelled.p(kinds, member, 1 - member)
        assert (found[seen] <= plain[seen]).all()
        assert found[seen] == pytest.approx(plain[seen], rel=2e-3)


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
        assert p == pytest.approx(two_sided(estimate), rel=1e-6, abs=1e-9)


def test_p_is_the_share_of_all_sign_patterns() -> None:
    """All 2^8 patterns of clusters, against 4,999 of them drawn."""
    values = _values(3, 0.8)
    flips = ClusterFlips(CLUSTERS)
    flips.add(values, MEAN, {"cluster": CODE})
    (estimate,), corrected = flips.corrected(4999, seed=0)
    sums = np.bincount(CODE, values)
    patterns = np.array(list(product((-1.0, 1.0), repeat=CLUSTERS))) * sums
    t = np.abs(patterns.sum(axis=1)) / patterns.std(axis=1)
    assert estimate.p == pytest.approx(float((t >= t[-1] * (1 - 1e-9)).mean()), abs=0.02)
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
