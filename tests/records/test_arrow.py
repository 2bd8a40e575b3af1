"""Case ↔ Arrow table ↔ Parquet: nothing is lost, and tables from elsewhere are refused with reasons."""

import dataclasses
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.errors import RecordError
from seesaw_cf.records import CASES, cases_to_table, flag_cases, parse_record, table_to_cases
from seesaw_cf.records.checks import CASE_FLAGS
from seesaw_cf.types import AttributePrompt, Case, Entity
from tests.records import samples


@given(st.lists(samples.CASES, max_size=4))
@settings(max_examples=60, deadline=None)
def test_cases_survive_the_table(cases: list[Case]) -> None:
    table = cases_to_table(cases)
    assert table.schema == CASES
    assert table.num_rows == len(cases)
    assert table_to_cases(table) == cases


def test_what_edits_have_in_common_is_in_memory_once() -> None:
    table = cases_to_table([dataclasses.replace(parse_record(samples.SEESAW), case_id=number) for number in range(2)])
    one, other = (case.attribute_prompts for case in table_to_cases(table))
    assert len(one) > 1
    assert all(prompt is again for prompt, again in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"extra": {"bad": float("nan")}}, "not JSON compliant"),
        ({"extra": {"bad": object()}}, "not JSON serializable"),
        ({"case_id": 2**63}, "int too (big|large)"),
        ({"generation_prompts": ("half \ud800",)}, "surrogates not allowed"),
    ],
)
def test_a_value_that_does_not_fit_names_its_case(change: dict[str, object], problem: str) -> None:
    good = parse_record(samples.SEESAW)
    bad = dataclasses.replace(good, **{"case_id": 99, **change})  # type: ignore[arg-type]
    with pytest.raises(RecordError, match=rf"case {bad.case_id}: a value does not fit.*{problem}"):
        cases_to_table([good, bad])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        *(
            (column, None, "a null where a value is needed")
            for column in ("case_id", "extra", "requested_rewrite", "record_format", "gold", "attribute_prompts")
        ),
        *(("extra", text, "no JSON object in extra") for text in ("{half", "[1]", "null")),
    ],
)
def test_tables_from_elsewhere_are_refused(column: str, value: str | None, message: str) -> None:
    field = CASES.field(column)
    table = cases_to_table([parse_record(samples.SEESAW)])
    values = pa.nulls(1, field.type) if value is None else pa.array([value])
    with pytest.raises(RecordError, match=message):
        table_to_cases(table.set_column(CASES.get_field_index(column), field, values))
    with pytest.raises(RecordError, match=rf"columns \['{column}'\] are missing"):
        table_to_cases(table.drop_columns([column]))


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
