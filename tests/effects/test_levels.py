"""Levels: hand values, and the same numbers as the tables they are pooled from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.effects import group_effects, prompt_effects
from seesaw_cf.effects.levels import contradiction, levels
from seesaw_cf.stats import adjust, clustered_mean, paired_change
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
    rows = levels(_prompts(moves), None, PAIR)
    row = _of(rows, "probability")
    assert row["value"] == pytest.approx(0.25)
    assert row["control_value"] == pytest.approx(0.05)
    assert row["difference"] == pytest.approx(0.2)  # (.3 + .1) / 2
    assert (row["before"], row["after"]) == pytest.approx((-0.7, -0.45))
    assert (row["n"], row["n_edits"], row["n_people"]) == (4, 2, 3)
    assert math.isnan(row["low"])
    assert row["note"].startswith("too few ")
    log_odds = _of(rows, "log-odds")
    assert log_odds["value"] == pytest.approx((math.log(4 * 5 * 6) / 3 + math.log(2)) / 2)
    assert (row["decides"], log_odds["decides"]) == (True, False)
    assert _of(rows, "probability", "random(memit)")["control"] == ""


def test_of_one_relation_it_is_the_row_of_the_table_and_less_nothing_the_same() -> None:
    cases = range(8)
    moves = {("memit", "P27", case): [0.01 * (case + 1) + 0.02 * (person % 3) for person in range(7)] for case in cases}
    none = {("random(memit)", "P27", case): [0.0] * 7 for case in cases}
    prompts = _prompts(moves | none)
    row = _of(levels(prompts, None, PAIR), "probability")
    (own,) = group_effects(prompts[prompts["editor"] == "memit"], axes=(), holds="target_true").to_dict("records")
    for name, column in {"value": "D", "low": "low", "high": "high"}.items():
        assert row[name] == pytest.approx(own[column])
    assert (row["difference"], row["difference_low"]) == pytest.approx((row["value"], row["low"]))
    batch = _of(levels(prompts, None, PAIR, no_interval="one edit"), "probability")
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
    row = _of(levels(None, answers, PAIR), "share")
    assert (row["before"], row["after"], row["value"]) == pytest.approx((1.0, 0.2, -0.8))
    assert (row["control_value"], row["difference"]) == pytest.approx((-0.1, -0.7))
    assert (row["n"], row["n_edits"], row["n_people"]) == (10, 10, 10)
    # Each of ten edits of ten people weighs the same: the outer interval of their differences.
    change = np.repeat([-1.0, 0.0], [7, 3])
    wanted = clustered_mean(change, [np.full(10, 0.1)], {"edit": np.arange(10)})
    assert (row["difference_low"], row["difference_high"]) == pytest.approx((wanted.low, wanted.high))
    assert row["difference_high"] < 0
    assert row["half_edits"] == 4
    assert (row["verdict"], row["p_adjusted"]) == ("worse than its control", pytest.approx(wanted.p))
    nobody = answers.assign(post_correct=True)
    row = _of(levels(None, nobody, PAIR), "share")
    ends = paired_change(np.ones(10, bool), np.ones(10, bool), 10)  # Newcombe: where nothing changed there is a width
    assert (row["difference_low"], row["difference_high"], row["p"]) == pytest.approx((*ends, 1))
    assert row["verdict"] == "undetermined"


DIFFERENCES = {
    # level, moves of edits beside a control that moves nothing -> verdict, words of the rule
    "harm": ("target_true", [0.05, 0.07] * 6, "worse than its control", "worse, corrected p"),
    "good": ("target_true", [-0.05, -0.07] * 6, "better than its control", "better, corrected p"),
    "turned": ("target_new", [-0.05, -0.07] * 6, "worse than its control", "worse, corrected p"),
    "small": ("target_true", [0.005, 0.007] * 40, "no more than its control", "worse, corrected p"),
    "none": ("target_true", [0.002, -0.002] * 40, "no more than its control", "90 % interval inside the margin"),
    "few": ("target_true", [0.002, -0.002] * 6, "undetermined", "but 12 edits can miss rare harm (80 needed)"),
    "wide": ("target_true", [0.09, -0.09, 0.02] * 4, "undetermined", "90 % interval not inside the margin"),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_level_is_judged_beside_its_control(name: str) -> None:
    level, moves, verdict, words = DIFFERENCES[name]
    own = {("memit", "P27", case): [move + 0.001 * n for n in range(-3, 4)] for case, move in enumerate(moves)}
    none = {("random(memit)", "P27", case): [0.0] * 7 for case in range(len(moves))}
    prompts = _prompts(own | none, level)
    row = _of(levels(prompts, None, PAIR), "probability")
    assert row["verdict"] == verdict
    assert words in row["rule"]
    assert row["rule"].startswith(f"probability {row['difference']:+.3g}, margin 0.02: ")
    alone = _of(levels(prompts[prompts["editor"] == "memit"], None, PAIR), "probability")
    assert alone["verdict"] == "no control"
    assert math.isnan(alone["p_adjusted"])
    above = _of(levels(prompts, None, PAIR, floors={"probability": 0.2}), "probability")
    assert above["verdict"] == "undetermined"
    batch = _of(levels(prompts, None, PAIR, no_interval="one edit"), "probability")
    assert (batch["verdict"], batch["rule"]) == ("not testable", "no interval: one edit")


# moves of edits, changes of the row that decides, noise floor of log-odds -> words
AGAINST: dict[str, tuple[list[float], dict[str, Any], float, str]] = {
    "rare answers": ([0.012, 0.014] * 40, {}, 0.0, "beyond its margin of 0.1"),
    "downwards": ([-0.012, -0.014] * 40, {}, 0.0, "beyond its margin of 0.1"),
    "undetermined": ([0.012, 0.014] * 40, {"verdict": "undetermined"}, 0.0, "beyond its margin of 0.1"),
    "not testable": ([0.012, 0.014] * 40, {"verdict": "not testable"}, 0.0, ""),
    "noise": ([0.012, 0.014] * 40, {}, 0.2, ""),
    "both small": ([0.005, 0.007] * 40, {}, 0.0, ""),
    "both large": ([0.05, 0.07] * 40, {}, 0.0, ""),
    "worse, other sign": ([0.05, 0.07] * 40, {"difference": -0.06}, 0.0, "the other way"),
    "better, other sign": ([-0.05, -0.07] * 40, {"difference": 0.06}, 0.0, "the other way"),
    "interval with 0": ([0.09, -0.09, 0.02] * 4, {"difference": -0.06}, 0.0, ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", AGAINST)
@pytest.mark.parametrize("holds", ["target_true", "target_new"])
def test_the_scale_that_does_not_decide_may_speak_against_a_verdict(name: str, holds: str) -> None:
    moves, changes, floor, words = AGAINST[name]
    own = {("memit", "P27", case): [move + 0.001 * n for n in range(-3, 4)] for case, move in enumerate(moves)}
    none = {("random(memit)", "P27", case): [0.0] * 7 for case in range(len(moves))}
    table = levels(_prompts(own | none, holds), None, PAIR, floors={"log-odds": floor})
    row, other = _of(table, "probability"), _of(table, "log-odds")
    assert contradiction(row | changes, other, floor) == words
    if not changes:
        assert (row["against"], other["against"]) == (words, "")
    alone = levels(_prompts(own, holds), None, PAIR)
    assert set(alone["against"]) == {""}


def test_levels_of_an_editor_are_one_family() -> None:
    old, new = (_prompts(_noisy(), holds) for holds in ("target_true", "target_new"))
    prompts = pd.concat([old, new.assign(case_id=new["case_id"] + 100)], ignore_index=True)
    table = levels(prompts, None, PAIR)
    decided = table[table["decides"] & (table["control"] != "")]
    p = decided["p"].to_numpy()
    assert decided["p_adjusted"].to_numpy() == pytest.approx(adjust(p))
    assert (decided["p_adjusted"] > p).any()
    others = table[~table["decides"]]
    assert others["p_adjusted"].isna().all()
    assert set(others["verdict"]) == {""}


def _noisy() -> dict[tuple[str, str, int], list[float]]:
    moves = [0.09, -0.02, 0.06, 0.01, 0.07, 0.0, 0.05, 0.03]
    own = {("memit", "P27", case): [move + 0.001 * n for n in range(7)] for case, move in enumerate(moves)}
    return own | {("random(memit)", "P27", case): [0.0] * 7 for case in range(8)}


def test_answers_too_unlikely_for_probability_are_read_in_log_odds() -> None:
    new, true = math.log(1e-6), math.log(1e-5)
    rows = [row for case in range(6) for row in four(new, true, true, true, case_id=case, holds="target_true")]
    found = levels(prompt_effects(table(rows)), None, [])
    assert _of(found, "log-odds")["decides"]
    assert not _of(found, "probability")["decides"]
    assert _of(found, "log-odds")["value"] == pytest.approx(math.log(10))
    alone = levels(prompt_effects(table(rows), score="log_odds"), None, [], score="log_odds")
    assert alone["scale"].tolist() == ["log-odds"]


def test_a_run_that_asked_nothing_has_no_rows() -> None:
    assert levels(None, None, []).empty


def test_answers_averaged_over_seeds_that_all_change_alike_have_no_interval() -> None:
    rows = [
        {"editor": editor, "case_id": n, "person": f"Q{n}", "edit_relation": "P27", "effect_relation": "P21"}
        | {"status": "ok", "gold": ["male"], "candidates": ["male", "female"], "pre_correct": True, "pre_rank": 1}
        | {"post_correct": False, "post_rank": 2, "pre_odds": 1.0, "post_odds": 0.5, "post_mean": after}
        for editor, after in (("memit", 0.0), ("random(memit)", 1 / 3))
        for n in range(10)
    ]
    row = _of(levels(None, pd.DataFrame(rows), PAIR), "share")
    assert row["difference"] == pytest.approx(-1 / 3)
    assert math.isnan(row["difference_low"])
    assert row["difference_note"].startswith("all values equal")
