"""The committed level of whole reports, and what the two kinds of null tables keep."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.report_level import NULLS, RESULTS, shuffled
from tests.effects.test_estimands import crossed


@pytest.mark.parametrize("null", NULLS)
def test_reports_of_nothing_hold_a_false_rejection_at_their_level(null: str) -> None:
    """The committed figures; the bounds leave room for three standard errors of 300 tables."""
    found = json.loads((RESULTS / "report_level.json").read_text(encoding="utf-8"))[null]
    for family in ("one_editor", "all_editors_one_family"):
        share = found[family]
        assert share["n"] >= 300
        assert 0.015 <= share["value"] <= 0.08
    assert found["holm"]["value"] <= found["one_editor"]["value"]


def test_permutations_see_more_than_holm() -> None:
    found = json.loads((RESULTS / "report_level.json").read_text(encoding="utf-8"))["power"]
    assert all(found[where]["found"]["value"] > found[where]["holm"]["value"] for where in ("all", "P21"))


def test_shuffled_effects_leave_labels_edits_and_repeats() -> None:
    """Of two prompts for a person under an edit the difference stays; means of edits do where each asks everybody."""
    frame = pd.concat([crossed(0.2), crossed(0.2, seed=0).assign(D=lambda rows: rows["D"] + 0.01)], ignore_index=True)
    moved = shuffled(frame, np.random.default_rng(1))
    assert moved["race"].equals(frame["race"])
    half = len(frame) // 2
    assert moved["D"][half:].to_numpy() - moved["D"][:half].to_numpy() == pytest.approx(np.full(half, 0.01))
    means = [rows.groupby("case_id")["D"].mean().to_numpy() for rows in (frame, moved)]
    assert means[1] == pytest.approx(means[0])
    black = frame["race"].map(lambda tags: "Black" in tags)
    gaps = [rows["D"][black].mean() - rows["D"][~black].mean() for rows in (frame, moved)]
    assert gaps[0] < -0.15 < gaps[1]
