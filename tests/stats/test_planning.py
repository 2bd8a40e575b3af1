"""Planner and variance components: against planted values, and against the power that a simulated study really has."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from scipy import stats

from seesaw_cf.errors import RecordError
from seesaw_cf.stats import (
    Components,
    Crossing,
    Design,
    case_weights,
    plan,
    variance_components,
)
from seesaw_cf.stats.planning import Precision, contrast_precision

PLANTED = Components(edit=0.05, person=0.08, rest=0.1)


def crossed(edits: int, people: int, per_edit: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Edit and person codes: each edit asks `per_edit` people."""
    rng = np.random.default_rng(seed)
    person = np.concatenate([rng.choice(people, per_edit, replace=False) for _ in range(edits)])
    return np.repeat(np.arange(edits), per_edit), person, rng


def test_components_are_found_again() -> None:
    edit, person, rng = crossed(300, 300, 40, 0)
    y = rng.normal(0, PLANTED.edit, 300)[edit] + rng.normal(0, PLANTED.person, 300)[person]
    found = variance_components(y + rng.normal(0, PLANTED.rest, y.size), edit, person)
    assert found.edit == pytest.approx(0.05, rel=0.15)
    assert found.person == pytest.approx(0.08, rel=0.15)
    assert found.rest == pytest.approx(0.10, rel=0.05)
    with pytest.raises(RecordError, match="1 edits and 40 people, expected at least two of each"):
        variance_components(y[:40], np.zeros(40, int), person[:40])
    y[3] = np.nan
    with pytest.raises(RecordError, match="values are not all finite"):
        variance_components(y, edit, person)


def test_a_planned_study_has_the_planned_power() -> None:
    delta, draws = 0.03, 400
    design = plan(delta, PLANTED, Design(people_per_edit=20, edits_per_person=5))
    edit, person, rng = crossed(design.edits, design.people, 20, 2)
    n_people = int(person.max()) + 1
    y = rng.normal(0, PLANTED.person, (n_people, draws))[person] + rng.normal(0, PLANTED.rest, (edit.size, draws))
    y += rng.normal(0, PLANTED.edit, (design.edits, draws))[edit] + delta
    weights = case_weights(edit, np.ones(edit.size, bool))
    estimate, stderr, df, _ = Crossing([weights], {"edit": edit, "person": person}).errors(y)
    power = float(np.mean(2 * stats.t.sf(np.abs(estimate) / stderr, df) < 0.05))
    assert 0.72 <= power <= 0.90


def test_plan_finds_the_smallest_design_and_says_when_there_is_none() -> None:
    found = plan(0.05, PLANTED, Design(people_per_edit=20))
    assert found.reachable
    assert (
        found.detectable <= 0.05 < plan(0.05, PLANTED, Design(people_per_edit=20), max_edits=found.edits - 1).detectable
    )
    assert plan(0.1, PLANTED, Design(people_per_edit=20)).edits < found.edits
    assert plan(0.05, PLANTED, Design(people_per_edit=20), tests=10).edits > found.edits
    assert not plan(1e-9, PLANTED, Design(people_per_edit=20), max_edits=100).reachable
    with pytest.raises(RecordError, match="delta is 0"):
        plan(0, PLANTED, Design(people_per_edit=20))


def test_people_their_pairs_with_edits_and_rest_are_told_apart() -> None:
    edit, person, rng = crossed(200, 200, 30, 3)
    edit, person = np.repeat(edit, 4), np.repeat(person, 4)
    pair = np.arange(edit.size) // 4
    y = rng.normal(0, 0.05, 200)[edit] + rng.normal(0, 0.08, 200)[person]
    y += rng.normal(0, 0.06, pair.max() + 1)[pair] + rng.normal(0, 0.1, y.size)
    found = variance_components(y, edit, person)
    assert np.allclose(astuple(found), [0.05, 0.08, 0.06, 0.1], rtol=0.2)
    alone = variance_components(y[::4], edit[::4], person[::4])
    assert alone.pair == 0
    assert alone.rest == pytest.approx(np.sqrt(0.06**2 + 0.1**2), rel=0.15)


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
            assert precision.stderr() == pytest.approx(stderr, rel=1e-9)
            squares[at] += precision.stderr(**factor if at == 0 else {}) ** 2
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
