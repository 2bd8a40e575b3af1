"""Case ↔ Arrow table ↔ Parquet: nothing is lost, and tables from elsewhere are refused with reasons."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.base.tables import write_table
from seesaw_cf.errors import RecordError
from seesaw_cf.records import CASES, cases_to_table, parse_record, read_cases, table_to_cases
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


def test_slices_chunks_and_column_order_do_not_matter() -> None:
    cases = [dataclasses.replace(parse_record(samples.SEESAW), case_id=number) for number in range(7)]
    table = cases_to_table(cases)
    assert table_to_cases(table.slice(2, 3)) == cases[2:5]
    assert table_to_cases(pa.concat_tables([table.slice(0, 3), table.slice(3)])) == cases
    shuffled = table.select(CASES.names[::-1]).append_column("more", pa.array(range(7)))
    assert table_to_cases(shuffled) == cases


def test_what_edits_have_in_common_is_in_memory_once() -> None:
    table = cases_to_table([dataclasses.replace(parse_record(samples.SEESAW), case_id=number) for number in range(2)])
    one, other = (case.attribute_prompts for case in table_to_cases(table))
    assert len(one) > 1
    assert all(prompt is again for prompt, again in zip(one, other, strict=True))


def test_parquet_bytes_are_the_same_for_the_same_cases(tmp_path: Path) -> None:
    cases = [parse_record(record) for record in samples.RECORDS.values()]
    for name in ("a.parquet", "b.parquet"):
        write_table(tmp_path / name, cases_to_table(cases))
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert read_cases(tmp_path / "a.parquet") == cases


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
    with pytest.raises(RecordError, match=rf"case {bad.case_id}: a value does not fit.*{problem}.*Correct or drop"):
        cases_to_table([good, bad])


def test_missing_columns_are_named() -> None:
    table = cases_to_table([parse_record(samples.SEESAW)]).drop_columns(["extra", "gold"])
    with pytest.raises(RecordError, match=r"columns \['gold', 'extra'\] are missing.*import the released files again"):
        table_to_cases(table)


def test_columns_of_another_type_are_refused() -> None:
    table = cases_to_table([parse_record(samples.SEESAW)])
    table = table.set_column(0, "case_id", pa.array(["seven"]))
    with pytest.raises(RecordError, match="seven"):
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


def test_a_null_in_a_list_is_refused() -> None:
    table = cases_to_table([parse_record(samples.SEESAW)])
    column = CASES.field("generation_prompts")
    table = table.set_column(CASES.get_field_index(column.name), column, pa.array([["a", None]], column.type))
    with pytest.raises(RecordError, match="generation_prompts holds 1 nulls"):
        table_to_cases(table)


@pytest.mark.parametrize("text", ["{half", "[1]", "null"])
def test_an_extra_that_is_no_json_object_is_refused(text: str) -> None:
    table = cases_to_table([parse_record(samples.SEESAW)])
    table = table.set_column(CASES.get_field_index("extra"), "extra", pa.array([text]))
    with pytest.raises(RecordError, match="no JSON object in extra"):
        table_to_cases(table)
