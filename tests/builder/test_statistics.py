"""Counts of a built dataset, by hand, and their Markdown: every number of the embedded card is one of its files'."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.builder_scripts.card import Statistics, attributes, examples, markdown, people_by_group
from seesaw_cf.builder_scripts.tables import DEMOGRAPHICS
from seesaw_cf.records import groups, read_cases
from seesaw_cf.records import load as sample
from seesaw_cf.types import AttributePrompt, Case, EditRequest, Entity

REQUEST = EditRequest("{} is a citizen of", "Ann", "P27", Entity("Q17", "Japan"), Entity("Q30", "USA"))


def asked(id: str, holds: str, *gender: str, race: tuple[str, ...] = ()) -> AttributePrompt:
    return AttributePrompt(f"{id} is a citizen of", Entity(id, id), "P27-cloze-01", holds, gender, race)


PEOPLE = (
    asked("Q1", "target_new", "men", race=("Black", "white")),
    asked("Q1", "target_new", "men"),
    asked("Q2", "target_true", "women"),
    asked("Q3", "target_new"),
)
OPEN: Any = {"generation_prompts": ("Ann is", "Ann is"), "flags": ("few_holders",)}
CASE = Case(1, REQUEST, attribute_prompts=PEOPLE, extra={"subject_id": "Q9"}, **OPEN)
ANSWERS: Any = {"candidates": ("physics", "jazz", "law"), "gold": ("law",), "extra": {"subject_id": "Q9"}}
PAIR = Case(2, REQUEST, "P101", effect_prompts=(asked("Q9", ""), asked("Q9", "")), **ANSWERS)


def cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()]


@pytest.fixture
def counted() -> Statistics:
    statistics = Statistics()
    for case in (CASE, replace(CASE, case_id=3, flags=(), extra={"subject_id": "Q8"}), PAIR):
        statistics.add(case)
    return statistics


def test_cross_subject_counts_by_hand(counted: Statistics) -> None:
    """Two edits of two subjects to one target; 3 + 3 prompts of new holders, 1 + 1 of old; 3 texts, 3 people."""
    head, _, row = cells(counted.cross_subject())
    assert dict(zip(head, row, strict=True)) == {
        "Relation": "citizenship (P27)", "Edits": "2", "Edit subjects": "2", "New targets": "1",
        "Cloze prompts (hold the new target)": "6", "Cloze prompts (hold the old target)": "2",
        "Distinct cloze prompts": "3", "People asked about": "3", "Open-ended prompts": "4",
        "Edits with fewer than 2 holders": "1",
    }  # fmt: skip


def test_cross_property_counts_by_hand(counted: Statistics) -> None:
    """One case, two prompts, three candidates: six pairs to score."""
    _, _, row = cells(counted.cross_property())
    assert row == ["citizenship", "work", "1", "2", "6", "0"]


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
    assert cells(table) == [
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
