"""Levels of two edits that do the same: the committed figures, and a null and a planted harm made here."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.control_level import RESULTS, invented, judged_levels, measured


@pytest.mark.slow(10)
def test_a_control_is_rarely_said_to_do_more_than_another() -> None:
    """New values in each of 75 draws: 6 of them are three standard errors above a level of 2.6 %."""
    assert measured(invented, 75)["any"]["value"] <= 0.08


def test_harm_to_holders_of_the_old_answer_is_named_and_no_other() -> None:
    for seed in range(3):
        table = judged_levels(*invented(np.random.default_rng(seed), harm=0.08)).set_index("level")
        assert table.loc["target_true", "verdict"] == "worse"
        assert table.loc["target_true", "difference"] == pytest.approx(0.08, abs=0.03)
        assert (table["p_adjusted"].drop("target_true") > 0.05).all()


def test_committed_controls_differ_from_each_other_at_most_at_the_level() -> None:
    made = json.loads((RESULTS / "control_level.json").read_text(encoding="utf-8"))
    pairs = [own for name, own in made.items() if " and " in name]
    assert len(pairs) == 3
    for found in (made["invented"], *(own for pair in pairs for own in pair.values())):
        assert found["any"]["low"] <= 0.05
        assert found["any"]["n"] >= 25
