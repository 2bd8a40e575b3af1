"""Score rows: every column of the schema under its own name."""

from typing import Any

import pytest
from hypothesis import given, settings

from seesaw_cf.base.tables import SCORES
from seesaw_cf.records.checks import spaced
from seesaw_cf.records.json_records import parse_record
from seesaw_cf.run.questions import case_rows, count_questions, count_spaced, questions, score_table
from seesaw_cf.types import AttributePrompt, Case, ClozeScore, EditRequest, Entity
from tests.records import samples

_GROUPS: Any = {"gender": ("female",), "race": ("white",), "region": ("Europe",)}
ADA = AttributePrompt("Ada lives in", Entity("Q7", "Ada"), "P27-01", "target_true", **_GROUPS, sitelinks=31)
CASE = Case(
    7,
    EditRequest("{} lives in", "Bob", "P27", Entity(None, "Rome"), Entity(None, "Oslo")),
    effect_relation_id="P21",
    attribute_prompts=(ADA,),
    effect_prompts=(AttributePrompt("Bob is", Entity("Q8", "Bob")),),
    candidates=("male", "female"),
    gold=("male",),
    paraphrase_prompts=("Where Bob lives:",),
    neighborhood_prompts=("Eve lives in",),
    extra={"portability": {"Reasoning": [{"prompt": "Bob's land is", "ground_truth": ["Italy", "IT"]}]}},
)


BEFORE = ClozeScore(-2.5, 3, False, n_greedy=0, first=(5, 6, 7))
LATER = ClozeScore(-1.5, 3, False, n_greedy=1, first=(5, 9, 7))


def test_a_row_has_what_its_question_its_person_and_its_score_say() -> None:
    asked = next(q for q in questions(CASE) if q.kind == "cross_subject" and q.role == "target_true")
    table = score_table("rome", [(case_rows(CASE, [asked], {asked.cloze: BEFORE}), {asked.cloze: LATER})])
    assert table.schema == SCORES
    of_edit = {"editor": "rome", "case_id": 7, "edit_relation": "P27", "effect_relation": "P27", "phase": "post"}
    of_question = {"kind": "cross_subject", "prompt_id": 0, "template_id": "P27-01", "prompt": "Ada lives in"}
    of_person = {"subject_id": "Q7", "subject": "Ada", "gender": ["female"], "race": ["white"], "region": ["Europe"]}
    of_answer = {"holds": "target_true", "target": "Oslo", "role": "target_true", "gold": False, "sitelinks": 31}
    of_score = {"logprob": -1.5, "n_tokens": 3, "greedy": False, "status": "ok", "n_greedy": 1, "n_kept": 2}
    assert table.to_pylist()[1:] == [of_edit | of_question | of_person | of_answer | of_score | {"form": "plain"}]


def test_what_was_first_is_compared_with_what_was_first_before() -> None:
    """Three tokens, first choices 5, 6, 7 before and 5, 9, 7 after: two are kept, though one of them only was right."""
    asked = next(questions(CASE))
    for later, kept in ((LATER, 2), (ClozeScore(-1.0, 3, False), None)):
        rows = case_rows(CASE, [asked], {asked.cloze: BEFORE})
        assert score_table("ft", [(rows, {asked.cloze: later})])["n_kept"].to_pylist() == [None, kept]


KNOWEDIT = {
    "subject": "Bob",
    "prompt": "Bob lives in",
    "target_new": "Rome",
    "locality": {"Relation_Specificity": [{"prompt": "Bob was born in", "ground_truth": [["Oslo"], ["Kristiania"]]}]},
    "portability": {
        "Reasoning": [{"prompt": "Bob's land is", "ground_truth": "Italy"}, {"prompt": "", "ground_truth": "Italy"}],
        "Subject_Aliasing": {"prompt": "Bobby lives in", "ground_truth": ["Rome"]},
    },
}
ZSRE = {"subject": "Bob", "src": "Where does Bob live?", "rephrase": "Bob's town?", "answers": ["Rome"]}
ZSRE |= {"loc": "nq question: capital of Norway", "loc_ans": "Oslo"}
FLAT = {"subject": "Bob", "prompt": "Bob lives in", "target_new": "Rome", "locality_prompt": "Eve lives in"}
FLAT |= {"locality_ground_truth": "Oslo", "portability_prompt": "Bob's land is", "portability_ground_truth": "Italy"}

# As `editor.edit` of EasyEdit takes them: a list of prompts beside a list of answers.
CALL: dict[str, Any] = {"subject": "Bob", "prompt": "Bob lives in", "target_new": "Rome"}
CALL |= {"locality": {"neighborhood": {"prompt": ["Eve lives in", "Eve eats"], "ground_truth": ["Oslo", ["rice"]]}}}
CALL |= {"portability": {"one_hop": {"prompt": ["Bob's land is"], "ground_truth": ["Italy"]}}}


@pytest.mark.parametrize(
    ("record", "near", "far"),
    [
        (
            KNOWEDIT,
            [("Bob was born in", "Oslo"), ("Bob was born in", "Kristiania")],
            [("Bob's land is", "Italy"), ("Bobby lives in", "Rome")],
        ),
        (FLAT, [("Eve lives in", "Oslo")], [("Bob's land is", "Italy")]),
        (CALL, [("Eve lives in", "Oslo"), ("Eve eats", "rice")], [("Bob's land is", "Italy")]),
        (
            ZSRE | {"portability": {"Recalled Relation": "x", "New Question": "Bob's land?", "New Answer": "Italy"}},
            [("nq question: capital of Norway", "Oslo")],
            [("Bob's land?", "Italy")],
        ),
        (ZSRE | {"portability": ["no prompt", 7, None]}, [("nq question: capital of Norway", "Oslo")], []),
    ],
)
def test_what_records_ask_beside_the_edit(
    record: dict[str, object], near: list[tuple[str, str]], far: list[tuple[str, str]]
) -> None:
    asked = list(questions(parse_record(record)))
    found = {
        (kind, role): [(q.prompt.text, q.target) for q in asked if (q.kind, q.role) == (kind, role)]
        for kind, role in (("neighborhood", "target_true"), ("portability", "target_new"))
    }
    assert list(found.values()) == [near, far]
    assert {q.role for q in asked if q.kind == "portability"} <= {"target_new"}


@given(samples.CASES)
@settings(max_examples=60, deadline=None)
def test_questions_are_counted_without_being_made(case: Case) -> None:
    asked = list(questions(case))
    assert count_questions(case) == len(asked)
    assert count_spaced(case) == sum(spaced(q.prompt.text) or q.target != q.target.strip() for q in asked)
