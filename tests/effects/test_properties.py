"""Cross-property accuracy: exact and published rules."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.effects import accuracy_of_columns, cross_property
from seesaw_cf.effects.accuracy import paired_shares
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.stats.plain import as_json
from tests.effects.rows import table

Scores = dict[str, float]


def case(case_id: int, gold: str, pre: Scores, post: Scores, **rest: Any) -> list[dict[str, Any]]:
    """The rows of one case: "X's gender is" against each candidate."""
    return [
        {
            "case_id": case_id,
            "subject_id": f"Q{case_id}",
            "kind": "cross_property",
            "effect_relation": "P21",
            "template_id": "P21-cloze-01",
            "prompt": "Ann's gender is",
            "target": name,
            "role": "candidate",
            "gold": name == gold,
            "phase": phase,
            "logprob": value,
        }
        | rest
        for phase, scores in (("pre", pre), ("post", post))
        for name, value in scores.items()
    ]


MALE, FEMALE = {"male": -1.0, "female": -2.0}, {"male": -2.0, "female": -1.0}


def test_exact_mode_against_hand_counts() -> None:
    rows = case(1, "male", MALE, FEMALE) + case(2, "male", MALE, MALE) + case(3, "female", MALE, FEMALE)
    rows += case(4, "other", MALE, MALE) + case(5, "male", MALE, {"male": math.nan, "female": -1.0})
    row = cross_property(table(rows)).iloc[0]
    assert (row["pre"], row["post"]) == pytest.approx((2 / 3, 2 / 3))
    assert (row["lost"], row["gained"], row["n"]) == (1, 1, 3)
    assert row[["low", "high", "p"]].isna().all()  # three people
    assert row["note"].startswith("too few people: 3, 5 needed")
    assert (row["n_no_gold"], row["n_unscored"]) == (1, 1)
    assert (row["chance"], row["majority"]) == pytest.approx((1 / 2, 2 / 3))


def test_prompt_is_named_in_exact_mode_and_first_in_paper_mode() -> None:
    free = {"template_id": "", "prompt": "Ann is", "prompt_id": 0}
    rows = case(1, "female", MALE, MALE, **free) + case(1, "female", FEMALE, FEMALE, prompt_id=1)
    scores = table(rows)
    assert cross_property(scores).iloc[0]["pre"] == 1
    assert cross_property(scores, mode="paper").iloc[0]["pre"] == 0


def test_ties_fail_whatever_the_order() -> None:
    tie = {"male": -1.0, "female": -1.0}
    for rows in (case(1, "male", tie, MALE), case(1, "male", tie, MALE)[::-1]):
        assert cross_property(table(rows)).iloc[0]["pre"] == 0


def test_mcnemar_and_interval_of_the_change() -> None:
    # 8 of 20 answers lost, none gained: p = 2 * 0.5^8
    rows = [row for i in range(20) for row in case(i, "male", MALE, FEMALE if i < 8 else MALE)]
    row = cross_property(table(rows)).iloc[0]
    assert row["p"] == pytest.approx(2 * 0.5**8)
    assert row["change"] == pytest.approx(-0.4)
    assert row["low"] < -0.4 < row["high"] < 0
    assert row["stderr"] == pytest.approx(math.sqrt(0.4 * 0.6 / 19), rel=0.03)
    # Newcombe, method 10, by hand: after 12/20 with Wilson (0.38658, 0.78120), before 20/20 with (0.83887, 1), phi 0
    assert row["low"] == pytest.approx(-0.4 - math.sqrt((0.6 - 0.38658) ** 2 + (1 - 1) ** 2), abs=1e-4)
    assert row["high"] == pytest.approx(-0.4 + math.sqrt((1 - 0.83887) ** 2 + (0.78120 - 0.6) ** 2), abs=1e-4)


def test_published_rule_leaves_out_unanswerable_cases() -> None:
    known = case(1, "male", MALE, MALE)
    extra = [row | {"gold": False} for row in case(2, "male", MALE, MALE)]
    assert cross_property(table(known + extra)).iloc[0][["n", "n_no_gold"]].tolist() == [1, 1]
    given = {name: value * 2 for name, value in columns().items()}
    given |= {"case_id": [1, 2], "gold": [["male"], ["neither"]]}
    exact, paper = (as_json(accuracy_of_columns)(given, mode=mode)["pairs"]["P27/P21"] for mode in ("exact", "paper"))
    assert (exact["n"], exact["n_no_candidate"], exact["pre"]) == (2, 1, 0.5)
    assert (paper["n"], paper["n_no_candidate"], paper["pre"]) == (1, 1, 1.0)


def columns(**changes: Any) -> dict[str, Any]:
    return {
        "case_id": [1],
        "edit_relation": ["P27"],
        "effect_relation": ["P21"],
        "prompt": ["Ann's gender is"],
        "candidates": [["male", "female"]],
        "gold": [["male"]],
        "pre": [[-1.0, -2.0]],
        "post": [[-2.0, -1.0]],
    } | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pre": [[-1.0]]}, "case 1: 2 candidates but 1 pre values"),
        ({"pre": [[0.3, 0.7]]}, "case 1, pre: 2 of 2 values are above 0"),
        ({"candidates": [["male", "male"]]}, "case 1: a candidate occurs more than once"),
        ({"gold": []}, "columns have unequal lengths"),
        ({name: value * 2 for name, value in columns().items()}, "every case once"),
        ({name: [] for name in columns()}, "no rows in"),
    ],
)
def test_bad_columns_are_refused_with_a_reason(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        accuracy_of_columns(columns(**changes))


def test_bad_tables_and_modes() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown mode 'papers'\. Did you mean 'paper'"):
        cross_property(table(case(1, "male", MALE, MALE)), mode="papers")  # type: ignore[arg-type]
    with pytest.raises(RecordError, match="every candidate once"):
        cross_property(table(case(1, "male", MALE, MALE) * 2))
    with pytest.raises(RecordError, match="no rows of kind 'cross_property'"):
        cross_property(table([{}]))


def test_score_table_and_columns_agree() -> None:
    rng = np.random.default_rng(0)
    names = ["a", "b", "c"]
    rows: list[dict[str, Any]] = []
    given: dict[str, Any] = {name: [] for name in columns()}
    for number in range(30):
        pre, post = -rng.exponential(size=(2, 3))
        rows += case(number, names[number % 3], dict(zip(names, pre)), dict(zip(names, post)))
        one = columns(case_id=[number], candidates=[names], gold=[[names[number % 3]]], pre=[pre], post=[post])
        for name, value in one.items():
            given[name] += value
    from_table = cross_property(table(rows)).iloc[0]
    from_columns = as_json(accuracy_of_columns)(given)["pairs"]["P27/P21"]
    for name in ("pre", "post", "change", "low", "high", "p", "n"):
        assert from_table[name] == pytest.approx(from_columns[name])


def test_ranks_by_hand() -> None:
    names = ["a", "b", "c"]
    rows = columns(candidates=[names], gold=[["c"]], pre=[[-1.0, -2.0, -3.0]], post=[[-3.0, -2.0, -1.0]])
    pair = as_json(accuracy_of_columns)(rows)["pairs"]["P27/P21"]
    assert (pair["pre_mrr"], pair["post_mrr"], pair["pre_top5"]) == (pytest.approx(1 / 3), 1, 1)
    unreachable = as_json(accuracy_of_columns)(columns(gold=[["neither"]]))["pairs"]["P27/P21"]
    assert (unreachable["pre_mrr"], unreachable["pre_top5"]) == (0, 0)
    # every right answer counts for chance, and the fifth is among five
    scores = [[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]]
    given = columns(candidates=[[*"abcdef"]], gold=[["e", "f"]], pre=scores, post=scores)
    row = as_json(accuracy_of_columns)(given)["pairs"]["P27/P21"]
    assert (row["chance"], row["pre_top5"], row["pre_mrr"]) == pytest.approx((2 / 6, 1, 1 / 5))


def test_normalised_and_pmi_stand_beside_raw() -> None:
    # raw: -3 < -2.5; per token: -1 > -2.5; over the prior: -3 + 9 > -2.5 + 1
    rows = columns(pre=[[-3.0, -2.5]], post=[[-3.0, -2.5]])
    prior = [[-9.0, -1.0]]
    result = as_json(accuracy_of_columns)(rows | {"n_tokens": [[3, 1]], "pre_prior": prior, "post_prior": prior})
    pair = result["pairs"]["P27/P21"]
    assert (pair["pre"], pair["normalised"]["pre"], pair["pmi"]["pre"]) == (0, 1, 1)
    with pytest.raises(RecordError, match="pmi needs pre_prior and post_prior"):
        accuracy_of_columns(rows | {"pre_prior": prior})
    with pytest.raises(RecordError, match=r"columns have unequal lengths \{'case 1, pre': 2, 'adjustment': 1\}"):
        accuracy_of_columns(rows | {"n_tokens": [[3]]})


@pytest.mark.parametrize(("after", "p"), [(0.0, 0.03125), (1.0, 1.0)])
def test_answers_that_all_change_alike_are_tested_once_for_each_person(after: float, p: float) -> None:
    rows = pd.DataFrame({"case_id": range(12), "person": [f"Q{n % 6}" for n in range(12)]})
    change = paired_shares(rows, np.ones(12, bool), np.full(12, bool(after)))
    assert change.value == after - 1
    assert change.p == pytest.approx(p)  # McNemar's of six people, one way
    assert (change.low <= 0 <= change.high) == (p > 0.05)


def test_published_rule_takes_male_in_female_for_right() -> None:
    rows = case(1, "male", MALE, FEMALE)
    assert cross_property(table(rows), mode="exact").iloc[0]["post"] == 0
    assert cross_property(table(rows), mode="paper").iloc[0]["post"] == 1
