"""The rules for who is edited and to what."""

from __future__ import annotations

from collections import Counter

import pytest

from seesaw_cf.builder_scripts import BuildOptions
from seesaw_cf.builder_scripts.edits import Edit, generate
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import Source
from seesaw_cf.builder_scripts.sparql import FEMALE, MALE
from seesaw_cf.records import groups
from seesaw_cf.records.relations import RELATIONS

Edits = dict[str, list[Edit]]


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


@pytest.mark.parametrize(("relation_id", "table", "column"), [("P101", "fields_of_work", "area"),
                         ("P27", "countries", "continent"), ("P19", "cities", "continent")])  # fmt: skip
def test_new_values_are_balanced_over_areas_and_continents(
    edits: Edits, relation_id: str, table: str, column: str
) -> None:
    """Most old countries and places are European; the new ones are spread evenly all the same."""
    used = Counter(groups.table(table)[edit.new][column] for edit in edits[relation_id])
    assert len(used) >= 4
    assert max(used.values()) - min(used.values()) <= 2


def test_no_edits_asked_means_none_and_no_query(facts: Facts) -> None:
    class Silent(Source):
        identity = "silent"

        def ask(self, text: str, *, patient: bool = True) -> bytes:
            raise AssertionError(text)

    nothing = BuildOptions(edits=dict.fromkeys(RELATIONS, 0))
    assert all(generate(Facts(Silent(), nothing), relation_id) == [] for relation_id in RELATIONS)
