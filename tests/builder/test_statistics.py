"""Counts of a built dataset, by hand, and their Markdown: every number of the embedded card is one of its files'."""

import re
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.builder_scripts.card import attributes, examples, markdown, people_by_group
from seesaw_cf.builder_scripts.tables import DEMOGRAPHICS
from seesaw_cf.records import groups, read_cases
from seesaw_cf.records import load as sample


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.text(max_size=6), min_size=2, max_size=2), max_size=4))
def test_a_table_stays_a_rectangle_whatever_is_in_its_cells(rows: list[list[str]]) -> None:
    """A name may hold "|" or a line break; neither may make a cell or a row more."""
    lines = markdown(["Name", "Other"], rows).split("\n")
    assert len(lines) == len(rows) + 2
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 3 for line in lines)


def test_people_by_group_and_gender_with_several_of_both() -> None:
    rows = [
        {"race": ["Black", "white"], "gender": ["men"]}, {"race": [], "gender": ["women", "trans women"]},
        {"race": ["Atlantean"], "gender": []},
    ]  # fmt: skip
    table = people_by_group(pa.Table.from_pylist(rows, schema=DEMOGRAPHICS), "race")
    assert [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()] == [
        ["Race", "men", "women", "trans women", "unknown"], ["---", "---:", "---:", "---:", "---:"],
        ["Black", "1", "0", "0", "0"], ["white", "1", "0", "0", "0"], ["Atlantean", "0", "0", "0", "1"],
        ["unknown", "0", "1", "1", "0"],
    ]  # fmt: skip


@pytest.fixture(scope="module")
def embedded() -> dict[str, pa.Table]:
    return {name: pq.read_table(sample.path() / "data" / name) for name in sample.configs()}


@pytest.fixture(scope="module")
def card() -> str:
    return (sample.path() / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_embedded_card_counts_what_is_in_the_files(embedded: dict[str, pa.Table], card: str) -> None:
    cases, pairs = (read_cases(sample.path() / "data" / name) for name in ("cross_subject", "cross_property"))
    prompts = Counter(row.holds for case in cases for row in case.attribute_prompts)
    scored = sum(len(case.effect_prompts) * len(case.candidates) for case in pairs)
    said = " ".join(card.split())
    assert (
        f"{prompts['target_new']:,} cloze prompts about holders of the new target and {prompts['target_true']:,} about "
        f"holders of the old one, over {len(cases):,} edits; {len(pairs):,} cross-property cases with {scored:,} "
        f"prompt and candidate pairs; {embedded['open_ended'].num_rows:,} open-ended prompts."
    ) in said
    assert f"{embedded['demographics'].num_rows:,} well-known people" in said
    for axis in ("race", "region"):
        assert people_by_group(embedded["demographics"], axis) in card
    for id, column in (("P101", "area"), ("P27", "continent"), ("P19", "continent")):
        assert attributes(embedded["candidates"], id, column) in card
    assert examples(embedded["candidates"]) in card


@pytest.mark.slow
def test_every_person_of_a_prompt_is_in_the_demographics_with_the_same_tags(embedded: dict[str, pa.Table]) -> None:
    people = {row["id"]: row for row in embedded["demographics"].to_pylist()}
    for name in ("cross_subject", "cross_property"):
        for case in read_cases(sample.path() / "data" / name):
            assert case.extra["subject_id"] in people
            for row in (*case.attribute_prompts, *case.effect_prompts):
                known = people[str(row.subject.id)]
                assert (row.subject.label, row.living, row.sitelinks) == tuple(
                    known[key] for key in ("label", "living", "sitelinks")
                )
                assert [list(getattr(row, axis)) for axis in groups.AXES] == [known[axis] for axis in groups.AXES]
