"""The audit's verdicts and the crossed mode of the columns."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.effects import audit, audit_record, bias_of_columns, group_contrasts, group_effects
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.stats import equivalence_p
from tests.effects.test_estimands import crossed


def test_a_planted_loss_is_amplified_and_none_is_equivalent() -> None:
    table = audit(crossed(0.2), axes=["race"], reference={"race": "white"}, margin=0.05, noise_floor=0.001)
    row = table.iloc[0]
    assert (row["group"], row["verdict"], row["family_size"]) == ("Black", "amplified", 1)
    assert row["family"] == "memit/P27/race"
    calm = audit(crossed(0.0), axes=["race"], reference={"race": "white"}, margin=0.05).iloc[0]
    assert calm["verdict"] == "equivalent"
    assert "TOST" in calm["rule"]


def test_equivalence_is_corrected_over_the_family() -> None:
    """Without a reference each of two groups is compared with the other: the same TOST p twice, doubled by Holm. At a
    level between the two, a single test would claim equivalence and the family does not."""
    frame = crossed(0.0)
    table = audit(frame, axes=["race"], margin=0.05)
    assert set(table["family_size"]) == {2}
    single = [
        equivalence_p(value, stderr, df, 0.05)
        for value, stderr, df in zip(table["value"], table["stderr"], table["df"], strict=True)
    ]
    assert table["p_equivalence"].tolist() == pytest.approx([2 * p for p in single])
    strict = audit(frame, axes=["race"], margin=0.05, alpha=1.5 * max(single))
    assert set(strict["verdict"]) == {"undetermined"}


def test_too_few_people_are_undetermined_with_the_reason() -> None:
    row = audit(crossed(0.2, people=4), axes=["race"], margin=0.05).iloc[0]
    assert row["verdict"] == "undetermined"
    assert "too few clusters (person: 3.0 effective)" in row["rule"]


def test_noise_floor_and_margin_are_obeyed() -> None:
    frame = crossed(0.2)
    assert set(audit(frame, axes=["race"], margin=0.05, noise_floor=0.5)["verdict"]) == {"undetermined"}
    with pytest.raises(RecordError, match="margin is 0, expected above 0"):
        audit(frame, margin=0)


def test_audit_record_is_plain_json() -> None:
    record = audit_record(audit(crossed(0.2), axes=["race"], margin=0.05), margin=0.05, seed=0)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["counts"] == {"amplified": 1, "reduced": 1}  # the same contrast from both sides
    assert record["settings"] == {"margin": 0.05, "seed": 0}


def columns(frame: pd.DataFrame) -> dict[str, Any]:
    sides = ("pre_new", "pre_true", "post_new", "post_true")
    given = {"case_id": frame["case_id"], "prompt": frame["prompt_id"].astype(str), "subject": frame["person"]}
    given |= {"groups": frame["race"].map(list)} | {side: frame[side] for side in sides}
    return {name: column.tolist() for name, column in given.items()}


def test_crossed_mode_agrees_with_the_estimators_and_paper_mode_with_the_published_arithmetic() -> None:
    frame = crossed(0.1)
    result = bias_of_columns(**columns(frame), axis="race", reference="white", draws=100)
    contrast = group_contrasts(frame, "race", "white").iloc[0]
    found = result["groups"]["Black"]["contrast"]
    for name in ("value", "low", "high", "p"):
        assert found[name] == pytest.approx(contrast[name])
    assert "contrast" not in result["groups"]["white"]
    paper = bias_of_columns(**columns(frame), axis="race", mode="paper", draws=100)
    table = group_effects(frame, axes=["race"], draws=100).set_index("group")
    for group, row in paper["groups"].items():
        for name in ("D", "low", "high", "t", "p", "pooled_D"):
            assert row[name] == pytest.approx(table.loc[group, name])
        assert result["groups"][group]["p_paper"] == row["p"]


def test_crossed_mode_is_blind_to_row_order() -> None:
    frame = crossed(0.1)
    shuffled = frame.iloc[np.random.default_rng(1).permutation(len(frame))]
    assert bias_of_columns(**columns(frame), draws=50) == bias_of_columns(**columns(shuffled), draws=50)


def test_unknown_mode_and_reference() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown mode 'papr'\. Did you mean 'paper'"):
        bias_of_columns(**columns(crossed()), mode="papr")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="unknown race group 'Whit'"):
        bias_of_columns(**columns(crossed()), axis="race", reference="Whit")
