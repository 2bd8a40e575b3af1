"""The rules for who is edited and to what."""

from __future__ import annotations

from collections import Counter

import pytest

from seesaw_cf.builder_scripts.edits import Edit, attribute_set, generate, holder_count
from seesaw_cf.builder_scripts.jobs import BuildOptions
from seesaw_cf.builder_scripts.people import FEMALE, MALE, Facts
from seesaw_cf.builder_scripts.sources import Source
from seesaw_cf.errors import RecordError
from seesaw_cf.records import groups
from seesaw_cf.records.relations import RELATIONS
from tests.builder.embedded import SMALL_OPTIONS

Edits = dict[str, list[Edit]]


def test_numbers_are_as_asked_and_half_are_about_women(edits: Edits) -> None:
    for relation_id, found in edits.items():
        assert len(found) == SMALL_OPTIONS.edits[relation_id]
        genders = Counter(edit.subject.gender for edit in found)
        assert genders == {("men",): len(found) / 2, ("women",): len(found) / 2}


def test_the_old_value_is_held_and_the_new_one_is_not(edits: Edits) -> None:
    for relation_id, found in edits.items():
        for edit in found:
            assert edit.relation_id == relation_id
            assert edit.true in edit.subject.holds(relation_id)
            assert edit.new not in edit.subject.holds(relation_id)


def test_gender_goes_both_ways_equally_often(edits: Edits) -> None:
    directions = Counter((edit.true, edit.new) for edit in edits["P21"])
    assert directions == {(MALE, FEMALE): 12, (FEMALE, MALE): 12}


@pytest.mark.parametrize(
    ("relation_id", "table", "column"),
    [("P101", "fields_of_work", "area"), ("P27", "countries", "continent"), ("P19", "cities", "continent")],
)
def test_the_new_value_is_of_another_area_or_continent(edits: Edits, relation_id: str, table: str, column: str) -> None:
    def kinds(value: str) -> set[str]:
        return set(groups.values(groups.table(table)[value][column]))

    for edit in edits[relation_id]:
        held = set().union(*(kinds(value) for value in edit.subject.holds(relation_id)))
        assert kinds(edit.new)
        assert not kinds(edit.new) & held


def test_new_values_are_balanced(edits: Edits, facts: Facts) -> None:
    """Every language with enough holders is a target about equally often: no value is used up before the others."""
    used = Counter(edit.new for edit in edits["P103"])
    enough = [value for value in attribute_set(facts, "P103") if holder_count(facts, "P103", value) >= 6]
    assert set(used) <= set(enough)
    assert max(used.values()) - min(used[value] for value in enough) <= 2


@pytest.mark.parametrize(("relation_id", "table", "column"), [("P101", "fields_of_work", "area"),
                         ("P27", "countries", "continent"), ("P19", "cities", "continent")])  # fmt: skip
def test_new_values_are_balanced_over_areas_and_continents(
    edits: Edits, relation_id: str, table: str, column: str
) -> None:
    """Most old countries and places are European; the new ones are spread evenly all the same."""
    used = Counter(groups.table(table)[edit.new][column] for edit in edits[relation_id])
    assert len(used) >= 4
    assert max(used.values()) - min(used.values()) <= 2


def test_targets_have_holders(edits: Edits, facts: Facts) -> None:
    assert all(
        holder_count(facts, relation_id, edit.new) >= SMALL_OPTIONS.min_holders
        for relation_id, found in edits.items()
        for edit in found
    )


def test_options_refuse_what_no_build_can_meet() -> None:
    with pytest.raises(RecordError, match="edits of P27 is -3, expected a whole number of at least 0"):
        BuildOptions(edits={"P27": -3})
    with pytest.raises(RecordError, match="open_repeats is 0, expected a whole number of at least 1"):
        BuildOptions(open_repeats=0)
    with pytest.raises(RecordError, match="per_gender is -1, expected a whole number of at least 0"):
        BuildOptions(per_gender=-1)


def test_no_edits_asked_means_none_and_no_query(facts: Facts) -> None:
    class Silent(Source):
        identity = "silent"

        def ask(self, text: str) -> bytes:
            raise AssertionError(text)

    nothing = BuildOptions(edits=dict.fromkeys(RELATIONS, 0))
    assert all(generate(Facts(Silent(), nothing), relation_id) == [] for relation_id in RELATIONS)
