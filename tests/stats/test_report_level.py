"""The committed level of whole reports, and what the two kinds of null tables keep."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.report_level import NULLS, RESULTS, permuted, shuffled
from tests.effects.test_estimands import crossed


@pytest.mark.parametrize("null", NULLS)
def test_few_reports_of_nothing_hold_a_claim(null: str) -> None:
    found = json.loads((RESULTS / "report_level.json").read_text(encoding="utf-8"))
    share = found[null]["any_false_claim"]
    assert share["n"] >= 300
    assert share["value"] <= 0.06
    assert found["family"] == ["editor"]


def test_permuted_labels_stay_vectors_of_people() -> None:
    frame = crossed(0.2)
    moved = permuted(frame, np.random.default_rng(1))
    pd.testing.assert_frame_equal(moved.drop(columns="race"), frame.drop(columns="race"))
    per_person = moved.assign(race=moved["race"].map(tuple)).groupby("person")["race"]
    assert (per_person.nunique() == 1).all()
    assert per_person.first().value_counts().to_dict() == {("Black",): 6, ("white",): 6}
    assert (moved["race"] != frame["race"]).any()


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
