"""Contrasts of many labellings at once are those of `clustered_means`, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from seesaw_cf.stats import permuted
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import case_weights, clustered_means
from seesaw_cf.stats.crossing import Codes
from seesaw_cf.stats.permuted import LabelledPeople


def one_by_one(edit: Codes, person: Codes, values: Floats, member: Floats, other: Floats) -> Floats:
    """p of each measure and labelling, by the estimator of reports."""
    found = np.full((values.shape[1], member.shape[1]), np.nan)
    for column, sides in enumerate(zip(member.T, other.T, strict=True)):
        rows = [side[person] > 0 for side in sides]
        both = np.logical_and(*(np.bincount(edit[own], minlength=edit.max() + 1) > 0 for own in rows))
        if not both.any():
            continue
        parts = [case_weights(edit, own & both[edit]) for own in rows]
        found[:, column] = [2 * t_p(one) for one in clustered_means(values, parts, {"edit": edit, "person": person})]
    return found


def t_p(one: object) -> float:
    from scipy import stats

    value, stderr, df = (getattr(one, name) for name in ("value", "stderr", "df"))
    return float(stats.t.sf(abs(value) / stderr, df))


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
def test_single_precision_has_no_scale_and_is_right_to_its_slack(
    effect: float, monkeypatch: pytest.MonkeyPatch
) -> None:
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
