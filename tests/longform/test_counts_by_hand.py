"""Rates of judges, people and baselines on answers that are few enough to count."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.errors import RecordError
from seesaw_cf.generation import Completion
from seesaw_cf.texts.flaws.edits import edit_sentences
from seesaw_cf.texts.flaws.judge import parse_reply
from seesaw_cf.texts.flaws.people import REFLECTED, reflected_row, share_reflected
from seesaw_cf.texts.flaws.validity import position_bias, sign_check
from seesaw_cf.texts.job import LemeJob
from seesaw_cf.texts.report.collected import joined
from seesaw_cf.texts.report.edit_kinds import CONTRASTS, edit_kinds, kind_differences
from seesaw_cf.texts.report.values import short_values
from seesaw_cf.texts.tables import PASSAGES
from seesaw_cf.texts.train.recipe import Recipe
from seesaw_cf.texts.train.scores import rating_scores
from seesaw_cf.texts.wording import is_refusal
from seesaw_cf.texts.write.pairs import (
    FlawAnswer,
    flaw_row,
    flaw_table,
    passage_pairs,
    seeded_uniform,
    unblinded,
)  # fmt: skip
from seesaw_cf.texts.write.writing import EDITS

from .analysis_samples import scores
from .flaw_samples import pair, passages

Answer = tuple[int, str, int | None]  # case, text shown first, change


def answers(*rows: Answer, rater: str = "gpt") -> pa.Table:
    return flaw_table(
        [flaw_row(pair(case), "sexism", rater, first, FlawAnswer(change)) for case, first, change in rows]
    )


def test_a_position_is_named_as_often_as_it_is_counted() -> None:
    # Shown first: the text before in cases 0 to 3, that after in 4 to 6. "More before" (-1) names the first text in
    # cases 0 and 1, "more after" (1) in case 4; case 6 has no answer and case 3 is equal. So 3 of 5 name the first.
    rows: list[Answer] = [(0, "pre", -1), (1, "pre", -1), (2, "pre", 1), (3, "pre", 0),
                          (4, "post", 1), (5, "post", -1), (6, "post", None)]  # fmt: skip
    found = position_bias(answers(*rows))
    assert found["first"]["value"] == pytest.approx(3 / 5)
    assert (found["first"]["n"], found["first"]["n_cases"]) == (5, 5)
    assert found["shown_pre_first"] == pytest.approx(4 / 6)
    assert found["equal"] == pytest.approx(1 / 6)
    assert found["n"] == 6


def test_nobody_answered() -> None:
    found = position_bias(answers((0, "pre", None)))
    assert (found["n"], found["equal"], found["shown_pre_first"], found["first"]["value"]) == (0, None, None, None)
    assert found["first"]["note"] == "no rows"


def test_a_first_text_that_is_neither_is_refused() -> None:
    with pytest.raises(RecordError, match=r"flaws: `first` holds \['A'\], expected \('pre', 'post'\)"):
        position_bias(answers((0, "A", 1)))


def test_answers_that_turn_round_with_the_texts() -> None:
    # Un-blinded, case 0 says the same twice, case 1 names one position twice, case 2 is equal twice, case 3 changes
    # from equal to "after", case 4 is answered once.
    once = answers((0, "pre", 1), (1, "pre", -1), (2, "pre", 0), (3, "pre", 0), (4, "pre", 1))
    again = answers((0, "post", 1), (1, "post", 1), (2, "post", 0), (3, "post", 1), (4, "post", None))
    found = sign_check(once, again)
    assert found["same"]["value"] == pytest.approx(2 / 4)
    assert found["turned"]["value"] == pytest.approx(1 / 3)
    assert found["turned"]["n"] == 3
    assert found["stuck"]["value"] == pytest.approx(1 / 3)
    assert found["n_unanswered"] == 1
    with pytest.raises(RecordError, match=r"pair 'memit-1-free-0-0' was judged twice in the same order"):
        sign_check(once, answers((0, "post", 1), (1, "pre", 1)))


@given(st.lists(st.tuples(st.sampled_from(["pre", "post"]), st.sampled_from([-1, 0, 1])), min_size=1, max_size=12))
def test_turning_every_answer_round_names_the_other_position(rows: list[tuple[str, int]]) -> None:
    straight = position_bias(answers(*((case, first, change) for case, (first, change) in enumerate(rows))))
    turned = position_bias(answers(*((case, first, -change) for case, (first, change) in enumerate(rows))))
    assert straight["equal"] == turned["equal"]
    one, other = straight["first"]["value"], turned["first"]["value"]
    if straight["first"]["n"]:
        assert one is not None
        assert other is not None
        assert one + other == pytest.approx(1)


def reflected(*said: str | None, comments: int = 0) -> pa.Table:
    rows = [
        {**reflected_row(pair(number), "A1", word), "comment": "odd" if number < comments else ""}
        for number, word in enumerate(said)
    ]
    return pa.Table.from_pylist(rows, schema=REFLECTED)


def test_the_share_of_reflected_edits_is_of_yes_and_no_alone() -> None:
    found = share_reflected(reflected("yes", "yes", "no", "unsure", None, "yes", comments=2))
    # 3 or more of 4 have a chance of 4 x^3 - 3 x^4 = 5 % at the low end, 3 or fewer 1 - x^4 = 5 % at the high end.
    assert (found["value"], found["n"], found["unsure"], found["not_rated"], found["comments"]) == (0.75, 4, 1, 1, 2)
    assert 4 * found["low"] ** 3 - 3 * found["low"] ** 4 == pytest.approx(0.05)
    assert found["high"] == pytest.approx(0.95**0.25)
    assert math.isnan(share_reflected(reflected(None, "unsure"))["value"])


def test_what_raters_are_told_of_an_edit() -> None:
    names = ("editor", "case_id", "relation", "subject", "target_true", "target_new")
    edits = [("ft", 3, "P27", "Ada", "Chad", "Mali"), ("ft", 4, "P0", "Bo", "a", "b")]
    rows = [dict(zip(names, edit, strict=True)) for edit in edits]
    assert edit_sentences(pa.Table.from_pylist(rows, schema=EDITS)) == {
        ("ft", 3): "Ada: country of citizenship was changed from Chad to Mali.",
        ("ft", 4): "Bo: one fact was changed from a to b.",
    }


def test_ratings_of_several_files_are_joined_once() -> None:
    one, two = answers((0, "pre", 1), (1, "pre", 0)), answers((1, "post", 0), (2, "pre", None))
    assert joined("flaws", {"a": one, "b": two}).column("case_id").to_pylist() == [0, 1, 2]
    with pytest.raises(
        RecordError,
        match=r"b, row 1: change is -1 for pair_id 'memit-0-free-0-0', .*'gpt', but a, row 1 has 1\. Keep one",
    ):
        joined("flaws", {"a": one, "b": answers((0, "pre", -1))})


def test_pairs_need_a_whole_table() -> None:
    with pytest.raises(RecordError, match=r"passages: columns \['status'\] are missing.*seesaw-cf leme run"):
        passage_pairs(passages({}).drop_columns(["status"]))
    with pytest.raises(RecordError, match="two texts before the edit for case_id 1, relation 'P21', sample 0"):
        passage_pairs(passages({"phase": "pre"}, {"phase": "pre", "text": "Another."}))
    pairs, left_out = passage_pairs(passages({}, {"sample": 1, "text": " "}, {"sample": 2, "status": "time-out"}))
    assert pairs == []
    assert left_out == {"no text before the edit": 1, "empty text": 1, "time-out": 1}


@given(st.integers(-(10**9), 10**9), st.lists(st.text(max_size=5), max_size=3))
def test_a_draw_depends_on_its_words_alone(seed: int, words: list[str]) -> None:
    value = seeded_uniform(seed, *words)
    assert 0 <= value < 1
    assert value == seeded_uniform(seed, *words)
    assert value != seeded_uniform(seed + 1, *words)
    for first in ("pre", "post"):
        assert unblinded(unblinded(1, first), first) == 1


@pytest.mark.parametrize("quote", ["'", "\N{RIGHT SINGLE QUOTATION MARK}"])
def test_a_refusal_is_one_with_either_apostrophe(quote: str) -> None:
    assert is_refusal(f"I{quote}m sorry, but no.")
    assert is_refusal(f"No: I can{quote}t compare people.")
    assert parse_reply(Completion(f"I can{quote}t help with that."), ("a", "b")) == (None, "", "refusal")
    assert not is_refusal(f"She{quote}s sorry she cannot come.")


def test_agreement_of_a_rater_by_hand() -> None:
    # Differences 0, 1, -3, 0.4 (rounds to 0): mean of their sizes 1.1; exact 2 of 4; within one 3 of 4.
    found = rating_scores([1, 4, 7, 2], [1, 5, 4, 2.4], [0, 1, 2, 3], draws=0)
    assert found["mean_absolute_error"]["value"] == pytest.approx(1.1)
    assert (found["exact"]["value"], found["within_one"]["value"]) == (0.5, 0.75)
    assert found["spearman"]["value"] == pytest.approx(1 - 6 * (0 + 1 + 1 + 0) / (4 * 15))
    assert (found["n"], found["n_groups"], found["exact"]["low"]) == (4, 4, None)
    nothing = rating_scores([], [], [], draws=5)
    assert (nothing["n"], nothing["exact"]["value"], nothing["spearman"]["value"]) == (0, None, None)


def test_short_form_metrics_by_hand() -> None:
    rows = [
        ("ft", 1, "efficacy", "target_new", "post", True), ("ft", 1, "efficacy", "target_true", "post", False),
        ("ft", 1, "paraphrase", "target_new", "post", False), ("ft", 1, "neighborhood", "target_true", "pre", False),
        ("ft", 1, "neighborhood", "target_true", "post", False), ("ft", 2, "neighborhood", "target_true", "pre", True),
        ("ft", 2, "neighborhood", "target_true", "post", False), ("ft", 2, "efficacy", "target_new", "pre", True),
    ]  # fmt: skip
    found = short_values(scores(rows)).set_index(["case_id", "metric"])["value"].to_dict()
    assert found == {
        (1, "edit_success"): 1, (1, "generalization"): 0, (1, "ground_truth"): 0,
        (1, "locality"): 1,  # wrong before and after: as it was
        (2, "locality"): 0,
    }  # fmt: skip


def test_differences_between_kinds_need_both_kinds() -> None:
    rows = [("ft", case, "efficacy", "target_true", "pre", case < 3) for case in range(6)]
    kinds = edit_kinds(scores=scores(rows))
    values = pd.DataFrame({"method": "ft", "case_id": range(6), "metric": "edit", "value": [1.0, 2, 3, 4, 5, 6]})
    found = kind_differences(values, kinds).set_index("contrast")
    # The model knew the old answer in cases 0 to 2, means 2 and 5; with fewer than five cases there is no interval.
    assert set(found.index) < set(CONTRASTS)
    assert found.loc["updating", "value"] == pytest.approx(-3)
    assert (found.loc["updating", "n_first"], found.loc["updating", "n_second"]) == (3, 3)
    few = "too few cases: 3 in the first and 3 in the second, 5 needed (3.0 and 3.0 effective)"
    assert found.loc["updating", "note"] == few
    assert found["low"].isna().all()
    assert kind_differences(values, kinds[kinds["case_id"] < 3]).empty


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epochs": 0}, "Recipe: epochs is 0, expected a number above 0"),
        ({"learning_rate": -1e-4}, r"Recipe: learning_rate is -0\.0001, expected a number above 0"),
        ({"max_length": 12.5}, r"Recipe: max_length is 12\.5, expected a whole number"),
        ({"half": "yes"}, "Recipe: half is 'yes', expected True or False"),
    ],
)
def test_recipes_that_train_nothing(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        Recipe(**wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rows": 0}, "leme run: rows is 0, expected a whole number of at least 1"),
        ({"judge_tries": 1.5}, r"leme run: judge_tries is 1\.5, expected a whole number of at least 1"),
        ({"seed": -1}, "leme run: seed is -1, expected a whole number of at least 0"),
        ({"limit": "all"}, "leme run: limit is 'all'"),
    ],
)
def test_jobs_that_write_nothing(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        LemeJob("seesaw-tiny", **wrong)


def test_the_schema_of_passages_is_the_rows_that_are_typed() -> None:
    from seesaw_cf.texts.flaws.people import ReflectedRow
    from seesaw_cf.texts.tables import FLAWS, FlawRow, PassageRow
    from seesaw_cf.texts.write.writing import EditRow

    for schema, row in (
        (PASSAGES, PassageRow), (FLAWS, FlawRow), (EDITS, EditRow), (REFLECTED, ReflectedRow),
    ):  # fmt: skip
        assert set(schema.names) == set(row.__annotations__)
