"""The tables of the sample: format, labels, provenance, balance, and what the released files say of them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.sample_checks import read_subjects
from seesaw_cf.builder_scripts.embedded import COLUMNS, FOLDER, origins, read_tsv
from seesaw_cf.records.groups import AXES
from tests.builder.embedded import AREAS, small_tables

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference" / "seesaw"
CONTINENTS = {"Africa", "Asia", "Europe", "North America", "Oceania", "South America"}
PEOPLE, ROWS, _ = small_tables()
ENTITIES = {(row["kind"], row["label"]): row for row in ROWS}
TABLES = {"people": PEOPLE, "sample": read_tsv(FOLDER / "people.tsv")}


def cells(row: dict[str, str], column: str) -> list[str]:
    return row[column].split("|") if row[column] else []


def held(rows: Iterable[dict[str, str]]) -> set[tuple[str, str]]:
    """(kind, label) of every value that somebody has."""
    return {
        (kind, cell) for row in rows for column, (_, kind) in COLUMNS.items() if kind for cell in cells(row, column)
    }


@pytest.mark.parametrize("table", TABLES)
def test_names_and_identifiers_tell_people_apart(table: str) -> None:
    people = TABLES[table]
    names = [row["name"] for row in people]
    assert len(set(names)) == len({row["iri"] for row in people}) == len(people)
    assert [(name, other) for name in names for other in names if name != other and name in other] == []
    assert [name for name in names if not name or re.search(r"[()\[\]|\t\d]|\s{2}", name)] == []
    pattern = r"Q[1-9]\d*|s:[a-z0-9]+(-[a-z0-9]+)*"
    assert [row["iri"] for row in people if not re.fullmatch(pattern, row["iri"])] == []


@pytest.mark.parametrize("table", TABLES)
def test_every_value_has_one_origin_and_no_cell_is_odd(table: str) -> None:
    for row in TABLES[table]:
        assert all(cell == cell.strip() for value in row.values() for cell in value.split("|")), row
        assert set(origins(row)) == {id for column, (id, _) in COLUMNS.items() if row[column]}, row
        assert all(len(set(cells(row, column))) == len(cells(row, column)) for column in COLUMNS), row
        assert row["gender"], row
        assert len(cells(row, "birth_place")) <= 1, row
        if row["birth_year"] and row["death_year"]:
            assert 15 <= int(row["death_year"]) - int(row["birth_year"]) <= 115, row


def test_curated_people_have_every_property_that_edits_need() -> None:
    needed = ("gender", "citizenship", "birth_place", "native_language", "field_of_work", "occupation", "birth_year")
    for row in PEOPLE:
        assert all(row[column] for column in needed), row
        assert len(cells(row, "field_of_work")) <= 3, row


def test_labels_are_entities_and_every_entity_is_in_use() -> None:
    countries = {("country", name) for row in ROWS for name in cells(row, "country")}
    assert held(PEOPLE) | countries == set(ENTITIES)
    ids = [row["iri"] for row in ROWS]
    assert len(set(ids)) == len(ids)
    assert not {row["iri"] for row in PEOPLE} & set(ids)
    for row in ROWS:
        assert bool(row["country"]) is (row["kind"] == "city"), row
        assert row["continent"] in CONTINENTS if row["kind"] == "country" else not row["continent"], row
        assert row["area"] in AREAS if row["kind"] == "field" else not row["area"], row
        assert row["kind"] == "ethnic_group" or not row["race"] + row["region"], row


def test_the_curated_people_are_balanced() -> None:
    share = {gender: sum(row["gender"] == gender for row in PEOPLE) / len(PEOPLE) for gender in ("female", "male")}
    assert 300 <= len(PEOPLE) <= 325
    assert min(share.values()) > 0.45
    assert sum(bool(row["death_year"]) for row in PEOPLE) > 0.85 * len(PEOPLE)
    assert sum(not row["ethnic_group"] for row in PEOPLE) >= 20
    assert any("|" in row["ethnic_group"] for row in PEOPLE)
    members: dict[str, Counter[str]] = defaultdict(Counter)
    for row in PEOPLE:
        entities = [ENTITIES["ethnic_group", label] for label in cells(row, "ethnic_group")]
        for tag in {tag for entity in entities for axis in ("race", "region") for tag in cells(entity, axis)}:
            members[tag][row["gender"]] += 1
    for tag in (*AXES["race"], *AXES["region"]):
        assert members[tag].total() >= 18, tag
        assert min(members[tag]["female"], members[tag]["male"]) >= 0.35 * members[tag].total(), tag
    assert all(members[tag].total() >= 6 for tag in ("Arab", "Indigenous", "Romani"))


@pytest.mark.parametrize(
    ("column", "most", "size", "large"),
    [
        ("field_of_work", 20, 8, 20),
        ("citizenship", 25, 8, 12),
        ("birth_place", 120, 4, 20),
        ("native_language", 20, 6, 15),
    ],
)
def test_values_are_few_and_many_people_hold_them(column: str, most: int, size: int, large: int) -> None:
    """At most `most` values, of which `large` have at least `size` people."""
    counts = Counter(label for row in PEOPLE for label in cells(row, column))
    assert len(counts) <= most
    assert sum(count >= size for count in counts.values()) >= large
    if column == "field_of_work":
        areas = Counter(ENTITIES["field", label]["area"] for label in counts)
        assert min(areas[area] for area in AREAS) >= 3


def test_the_tables_agree_with_the_released_claims() -> None:
    if not REFERENCE.is_dir():
        pytest.skip("the released SEESAW-CF files are not in ../shared/reference")
    subjects = read_subjects(REFERENCE)
    known = [row for row in PEOPLE if any("reference claims" in text for text in origins(row).values())]
    assert len(known) >= 15
    for row in known:
        subject = subjects[row["iri"]]
        assert row["name"] == subject["name"]
        for column, (id, kind) in COLUMNS.items():
            stated = list(map(str, subject["properties"].get(id, ())))
            if stated and kind:
                assert {ENTITIES[kind, label]["iri"] for label in cells(row, column)} <= set(stated), (row, column)
            elif stated:
                assert f"{int(row[column]):+05d}" in {value[:5] for value in stated}, (row, column)
