"""Damage flags: each is seen where it is, only there, and counted."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from seesaw_cf.records import flag_cases, parse_record
from seesaw_cf.records.checks import CASE_FLAGS, count_flags
from seesaw_cf.types import AttributePrompt, Case, Entity
from tests.records import samples


def _case(*rows: tuple[str, str | None, str], case_id: int = 1) -> Case:
    prompts = tuple(AttributePrompt(text, Entity(id_, label)) for text, id_, label in rows)
    return dataclasses.replace(parse_record(samples.SEESAW), case_id=case_id, attribute_prompts=prompts)


@pytest.mark.parametrize(
    ("text", "label", "flags"),
    [
        ("Ada is a citizen of", "Ada", ()),
        ("Q15 is a citizen of", "Q15", ("qid_name",)),
        ("Q15 Band is a citizen of", "Q15 Band", ()),
        ("Phew (singer) is a citizen of", "Phew (singer)", ("disambiguator",)),
        ("Agnes (Nancy) Shane is a citizen of", "Agnes (Nancy) Shane", ()),
        ("Sophistic worked of Antiphon was a citizen of", "Sophistic works of Antiphon", ("tense_in_name",)),
        ("The expertise of wasa was", "isa", ("tense_in_name",)),
        ("Works is a citizen of", "Works", ()),
        ("Bob is a citizen of", "Ada", ("name_not_in_prompt",)),
        ("Ada works in the field of ", "Ada", ("trailing_space",)),
        ("Ada  Byron was born in", "Ada  Byron", ("double_space",)),
        ("The Saone flows through", "", ()),  # CounterFact names nobody
    ],
)
def test_each_flag_of_a_prompt(text: str, label: str, flags: tuple[str, ...]) -> None:
    (case,) = flag_cases([_case((text, "Q1", label))])
    assert case.attribute_prompts[0].flags == flags


def test_duplicates_are_within_a_case_and_shared_labels_across_cases() -> None:
    ada, bob, other = (
        ("Ada was born in", "Q1", "Ada"),
        ("Bob was born in", "Q2", "Bob"),
        ("Ada was born in", "Q3", "Ada"),
    )
    one, two = flag_cases([_case(ada, bob, bob), _case(other, bob, case_id=2)])
    assert [row.flags for row in one.attribute_prompts] == [("label_shared",), (), ("duplicate_prompt",)]
    assert [row.flags for row in two.attribute_prompts] == [("label_shared",), ()]


def test_case_flags() -> None:
    record = samples.changed(samples.SEESAW, "requested_rewrite.target_new.str", "Poland ")
    record["generation_prompts"] = ["</s> ", "</s> "]
    record["attribute_aux_ent"] = ["Murasaki Shikibu", "Marie Curie"]
    (case,) = flag_cases([parse_record(record)])
    assert case.flags == tuple(CASE_FLAGS)
    assert flag_cases([parse_record(samples.SEESAW)])[0].flags == ()


@pytest.mark.parametrize(
    ("change", "flag"),
    [
        ({"request": "{} lives in "}, "prompt_space"),
        ({"request": "{}  lives in"}, "prompt_space"),
        ({"paraphrase_prompts": ("Ada dwells in\n",)}, "prompt_space"),
        ({"neighborhood_prompts": (" Bob lives in",)}, "prompt_space"),
        ({"generation_prompts": ("Ada\tis ",)}, "prompt_space"),
        ({"candidates": ("physics", "jazz ")}, "target_space"),
        ({"gold": (" jazz",)}, "target_space"),
        ({"request": "{} lives in</s>"}, "special_token"),
        ({"neighborhood_prompts": ("Bob <|endoftext|> lives in",)}, "special_token"),
        (
            {"attribute_prompts": (AttributePrompt("[MASK] lives in", Entity("Q1", "[MASK]"), "", "target_new"),)},
            "special_token",
        ),
        ({"candidates": ("physics", "[/INST] jazz")}, "special_token"),
    ],
)
def test_what_spoils_a_text_is_flagged_wherever_a_model_reads_it(change: dict[str, Any], flag: str) -> None:
    case = parse_record(samples.SEESAW)
    if "request" in change:
        change = {"request": dataclasses.replace(case.request, prompt=change["request"])}
    assert flag_cases([dataclasses.replace(case, **change)])[0].flags == (flag,)


def test_flagging_again_changes_nothing_and_keeps_the_flags_of_others() -> None:
    case = _case(("Q1 is x ", "Q1", "Q1"))
    row = dataclasses.replace(case.attribute_prompts[0], flags=("by_hand", "double_space"))
    once = flag_cases([dataclasses.replace(case, attribute_prompts=(row,), flags=("odd",))])
    assert once[0].attribute_prompts[0].flags == ("by_hand", "qid_name", "trailing_space")  # double_space does not hold
    assert once[0].flags == ("odd",)
    assert flag_cases(once) == once


def test_counts_are_ordered_and_only_of_what_occurs() -> None:
    same = ("Q1 x", "Q1", "Q1")
    prompts, cases = count_flags(flag_cases([_case(same, same), _case(("Bob  x", "Q2", "Bob"), case_id=2)]))
    assert list(prompts.items()) == [("qid_name", 2), ("double_space", 1), ("duplicate_prompt", 1)]
    assert cases == {}
