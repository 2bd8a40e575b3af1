"""What would decide more: against the error that a simulated study really has."""

from __future__ import annotations

import numpy as np
import pytest

from seesaw_cf.stats.clustered import case_weights
from seesaw_cf.stats.crossing import Crossing
from seesaw_cf.stats.verdicts import Precision, contrast_precision


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
