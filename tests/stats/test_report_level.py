"""The committed level of whole reports, and what the two kinds of null tables keep."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.report_level import EFFECTS, NULLS, RESULTS, permuted, shuffled, sparse, variances
from tests.effects.test_estimands import crossed


def made() -> list[tuple[str, str, dict[str, Any]]]:
    """Committed figures: design of the run, part, and what was found on each scale."""
    whole = json.loads((RESULTS / "report_level.json").read_text(encoding="utf-8"))
    return [(design, part, own) for design, parts in whole.items() for part, own in parts.items()]


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("scale", EFFECTS)
def test_reports_of_nothing_hold_a_false_rejection_at_their_level(null: str, scale: str) -> None:
    """The committed figures of either design: 5 % is not below what their intervals hold."""
    tables = [own[scale] for _, part, own in made() if part == null]
    assert tables
    for found in tables:
        for family in ("one_editor", "all_editors_one_family"):
            assert found[family]["low"] <= 0.05
            assert found[family]["value"] <= 0.08
        assert found["holm"]["value"] <= found["one_editor"]["value"]
        assert 0.02 <= found["single_tests"]["0.05"] <= 0.06
    assert null != "labels permuted" or max(found["one_editor"]["n"] for found in tables) >= 1000


def test_permutations_find_what_is_planted_and_more_than_holm() -> None:
    """Of -.05 under exchangeable people the table of the specification has 1.00, .24 and .86."""
    found = {design: own["labels permuted"] for design, part, own in made() if part == "power"}
    least = {"all": 0.9, "P101": 0.1, "P21": 0.6}
    for where, power in least.items():
        assert found["paper"][where]["probability"]["found"]["value"] >= power
    for own in found.values():
        assert all(one[scale]["found"]["value"] >= one[scale]["holm"]["value"] for one in own.values() for scale in one)


@pytest.mark.slow
def test_shuffled_people_differ_no_more_than_people_do() -> None:
    """Half of the people are asked once, so that the mean of each is mostly chance. It must not become their effect."""
    rng = np.random.default_rng(0)
    edit, person = (code.ravel() for code in np.indices((40, 80)))
    asked = (person < 40) | (person - 40 == edit)
    edit, person = edit[asked], person[asked]
    values = rng.normal(0, 0.03, 80)[person] + rng.normal(0, 0.1, edit.size)
    keys = {"editor": "memit", "holds": "target_new", "edit_relation": "P27", "case_id": edit, "person": person}
    frame = pd.DataFrame(keys | dict.fromkeys(("D", "log_odds", "share"), values))
    before = variances(values, edit, person)
    after = [
        variances(shuffled(frame, np.random.default_rng(seed))["D"].to_numpy(), edit, person) for seed in range(20)
    ]
    assert before == pytest.approx((0.03**2, 0.1**2), rel=0.3)
    for was, became in zip(before, zip(*after, strict=True), strict=True):
        assert np.mean(became) == pytest.approx(was, rel=0.35)


def test_permuted_people_keep_their_vectors_and_their_kind_of_holder() -> None:
    frame = sparse(np.random.default_rng(0))
    frame = frame.assign(holds=np.where(frame["person"] < "p30", "target_new", "target_true"))
    moved = permuted(frame, np.random.default_rng(1))
    assert not moved["race"].equals(frame["race"])
    for own in (moved, frame):
        own["vector"] = own["gender"].map("".join) + own["race"].map("".join)
    people = [own.groupby("person").agg({"holds": "first", "vector": "first"}) for own in (moved, frame)]
    assert moved.groupby("person")["vector"].nunique().max() == 1
    assert people[0].value_counts().to_dict() == people[1].value_counts().to_dict()


def test_shuffled_effects_leave_labels_edits_and_repeats() -> None:
    """Of two prompts for a person under an edit the difference stays; means of edits do where each asks everybody."""
    frame = pd.concat([crossed(0.2), crossed(0.2, seed=0).assign(D=lambda rows: rows["D"] + 0.01)], ignore_index=True)
    moved = shuffled(frame, np.random.default_rng(1))
    assert moved["race"].equals(frame["race"])
    half = len(frame) // 2
    assert moved["D"][half:].to_numpy() - moved["D"][:half].to_numpy() == pytest.approx(np.full(half, 0.01))
    means = [rows.groupby("case_id")["D"].mean().to_numpy() for rows in (frame, moved)]
    assert means[1] == pytest.approx(means[0])
    black = frame["race"].map(lambda tags: "Black" in tags).astype(bool)
    gaps = [rows["D"][black].mean() - rows["D"][~black].mean() for rows in (frame, moved)]
    assert gaps[0] < -0.15 < gaps[1]
