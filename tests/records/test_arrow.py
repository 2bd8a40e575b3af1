"""Case ↔ Arrow table ↔ Parquet: nothing is lost, and tables from elsewhere are refused with reasons."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.errors import RecordError
from seesaw_cf.records import CASES, cases_to_table, parse_record, table_to_cases
from seesaw_cf.types import AttributePrompt, Case, Entity
from tests.records import samples


@given(st.lists(samples.CASES, max_size=4))
@settings(max_examples=60, deadline=None)
def test_cases_survive_the_table(cases: list[Case]) -> None:
    table = cases_to_table(cases)
    assert table.schema == CASES
    assert table.num_rows == len(cases)
    assert table_to_cases(table) == cases


def test_none_and_empty_stay_apart() -> None:
    case = dataclasses.replace(
        parse_record(samples.SEESAW),
        attribute_prompts=(
            AttributePrompt("a", Entity(None, ""), living=None, sitelinks=None),
            AttributePrompt("b", Entity("", "x"), living=False, sitelinks=0),
        ),
        extra={"none": None, "empty": [], "object": {}},
    )
    (back,) = table_to_cases(cases_to_table([case]))
    assert back == case
    assert [row.subject.id for row in back.attribute_prompts] == [None, ""]
    assert [row.living for row in back.attribute_prompts] == [None, False]
    assert [row.sitelinks for row in back.attribute_prompts] == [None, 0]


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


def test_missing_columns_are_named() -> None:
    table = cases_to_table([parse_record(samples.SEESAW)]).drop_columns(["extra", "gold"])
    with pytest.raises(RecordError, match=r"columns \['gold', 'extra'\] are missing"):
        table_to_cases(table)


@pytest.mark.parametrize(
    "column", ["case_id", "extra", "requested_rewrite", "record_format", "gold", "attribute_prompts"]
)
def test_nulls_where_values_are_needed_are_refused(column: str) -> None:
    table = cases_to_table([parse_record(samples.SEESAW)])
    position = CASES.get_field_index(column)
    table = table.set_column(position, CASES.field(column), pa.nulls(1, CASES.field(column).type))
    with pytest.raises(RecordError, match="a null where a value is needed"):
        table_to_cases(table)


@pytest.mark.parametrize("text", ["{half", "[1]", "null"])
def test_an_extra_that_is_no_json_object_is_refused(text: str) -> None:
    table = cases_to_table([parse_record(samples.SEESAW)])
    table = table.set_column(CASES.get_field_index("extra"), "extra", pa.array([text]))
    with pytest.raises(RecordError, match="no JSON object in extra"):
        table_to_cases(table)
