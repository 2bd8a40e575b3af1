"""Levels: hand values, and the same numbers as the tables they are pooled from."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from seesaw_cf.effects import group_effects, prompt_effects
from seesaw_cf.effects.accuracy import accuracy_table, paired_shares
from seesaw_cf.effects.levels import levels
from tests.effects.rows import four, table

PAIR = [("memit", "random(memit)")]


def _prompts(moves: dict[tuple[str, str, int], list[float]], holds: str = "target_true") -> pd.DataFrame:
    """One prompt a person: (editor, relation, case) -> how far p(new) rises from .1 while p(true) stays at .8."""
    rows = []
    for (editor, relation, case), own in moves.items():
        for person, move in enumerate(own):
            keys: dict[str, Any] = {"editor": editor, "edit_relation": relation, "case_id": case, "holds": holds}
            keys |= {"prompt_id": person, "subject_id": f"Q{person}", "prompt": f"P{person} is"}
            rows += four(math.log(0.1), math.log(0.8), math.log(0.1 + move), math.log(0.8), **keys)
    return prompt_effects(table(rows))


def _of(rows: pd.DataFrame, scale: str, editor: str = "memit") -> dict[Any, Any]:
    (row,) = rows[(rows["scale"] == scale) & (rows["editor"] == editor)].to_dict("records")
    return dict(row)


def test_edits_weigh_equally_over_relations_and_the_control_is_subtracted() -> None:
    # Case 1, of P27: mean .4 of three prompts; case 2, of P19: .1 of one. Mean of edits .25, not .325.
    moves = {("memit", "P27", 1): [0.3, 0.4, 0.5], ("memit", "P19", 2): [0.1]}
    moves |= {("random(memit)", "P27", 1): [0.1, 0.1, 0.1], ("random(memit)", "P19", 2): [0.0]}
    rows = levels(_prompts(moves), None, pd.DataFrame(), PAIR)
    row = _of(rows, "probability")
    assert row["value"] == pytest.approx(0.25)
    assert row["control_value"] == pytest.approx(0.05)
    assert row["difference"] == pytest.approx(0.2)  # (.3 + .1) / 2
    assert (row["before"], row["after"]) == pytest.approx((-0.7, -0.45))
    assert (row["n"], row["n_edits"], row["n_people"]) == (4, 2, 3)
    assert math.isnan(row["low"])
    assert row["note"].startswith("too few clusters")
    log_odds = _of(rows, "log-odds")
    assert log_odds["value"] == pytest.approx((math.log(4 * 5 * 6) / 3 + math.log(2)) / 2)
    assert (row["decides"], log_odds["decides"]) == (True, False)
    assert _of(rows, "probability", "random(memit)")["control"] == ""


def test_of_one_relation_it_is_the_row_of_the_table_and_less_nothing_the_same() -> None:
    cases = range(8)
    moves = {("memit", "P27", case): [0.01 * (case + 1) + 0.02 * (person % 3) for person in range(7)] for case in cases}
    none = {("random(memit)", "P27", case): [0.0] * 7 for case in cases}
    prompts = _prompts(moves | none)
    row = _of(levels(prompts, None, pd.DataFrame(), PAIR), "probability")
    (own,) = group_effects(prompts[prompts["editor"] == "memit"], axes=(), holds="target_true").to_dict("records")
    for name, column in {"value": "D", "low": "low", "high": "high"}.items():
        assert row[name] == pytest.approx(own[column])
    assert (row["difference"], row["difference_low"]) == pytest.approx((row["value"], row["low"]))
    batch = _of(levels(prompts, None, pd.DataFrame(), PAIR, no_interval="one edit"), "probability")
    assert (batch["value"], batch["note"], batch["difference_note"]) == (row["value"], "one edit", "one edit")
    assert all(math.isnan(batch[name]) for name in ("low", "high", "difference_low", "control_high"))


def test_other_facts_lost_beyond_a_control() -> None:
    # Ten people, all right before. The edit loses eight, the control one of them: 7 to 0, McNemar's p is .016.
    def rows(editor: str, wrong: int) -> list[dict[str, Any]]:
        return [
            {"editor": editor, "case_id": n, "person": f"Q{n}", "edit_relation": "P27", "effect_relation": "P21"}
            | {"status": "ok", "gold": ["male"], "candidates": ["male", "female"], "pre_correct": True, "pre_rank": 1}
            | {"post_correct": n >= wrong, "post_rank": 1 + (n < wrong), "pre_odds": 1.0, "post_odds": 0.5 + n}
            for n in range(10)
        ]

    answers = pd.DataFrame(rows("memit", 8) + rows("random(memit)", 1))
    accuracy = accuracy_table(answers.assign(edit_relation="all", effect_relation="all"))
    row = _of(levels(None, answers, accuracy, PAIR), "share")
    assert (row["before"], row["after"], row["value"]) == pytest.approx((1.0, 0.2, -0.8))
    assert (row["control_value"], row["difference"]) == pytest.approx((-0.1, -0.7))
    assert (row["n"], row["n_edits"], row["n_people"]) == (10, 10, 10)
    edited = answers[answers["editor"] == "memit"]
    after, control = ((answers["post_correct"][answers["editor"] == name]).to_numpy(bool) for name in PAIR[0])
    pair = paired_shares(edited, control, after)
    assert (row["difference_low"], row["difference_high"]) == pytest.approx((pair.low, pair.high))
    assert row["difference_high"] < 0


def test_answers_too_unlikely_for_probability_are_read_in_log_odds() -> None:
    new, true = math.log(1e-6), math.log(1e-5)
    rows = [row for case in range(6) for row in four(new, true, true, true, case_id=case, holds="target_true")]
    found = levels(prompt_effects(table(rows)), None, pd.DataFrame(), [])
    assert _of(found, "log-odds")["decides"]
    assert not _of(found, "probability")["decides"]
    assert _of(found, "log-odds")["value"] == pytest.approx(math.log(10))
    alone = levels(prompt_effects(table(rows), score="log_odds"), None, pd.DataFrame(), [], score="log_odds")
    assert alone["scale"].tolist() == ["log-odds"]


def test_a_run_that_asked_nothing_has_no_rows() -> None:
    assert levels(None, None, pd.DataFrame(), []).empty
