"""The demographic tables against the published sheets, and the tags made from them."""

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from seesaw_cf.records import groups

Reference = Callable[..., Path]
PAPERS = "SEESAW-CF"  # provenance of the rows that come from the published tables


def rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def published(name: str) -> dict[str, dict[str, str]]:
    return {id: dict(row) for id, row in groups.table(name).items() if row["provenance"].startswith(PAPERS)}


@pytest.mark.parametrize("name", ["ethnic_groups", "genders", "fields_of_work", "countries", "cities", "languages"])
def test_every_row_has_an_identifier_and_a_provenance_and_no_stray_spaces(name: str) -> None:
    table = groups.table(name)
    assert len(table) == len(rows(groups.TABLES / f"{name}.csv")) - 1, "an identifier occurs twice"
    for id, row in table.items():
        assert id
        assert row["provenance"]
        assert all(cell == cell.strip() for cell in row.values()), row


def test_ethnic_groups_cover_both_sheets_and_agree_with_them(reference: Reference) -> None:
    sheets = [
        {row[0]: row for row in rows(reference("seesaw", f"{name}_ethnic_groups.csv"))[1:]} for name in ("P101", "P103")
    ]
    codes = sheets[0].keys() | sheets[1].keys()
    assert len(codes) == 166
    assert published("ethnic_groups").keys() == codes
    for code in codes:
        tagged = [(row[4].replace("black", "Black"), row[3]) for sheet in sheets if (row := sheet.get(code))]
        race, region = groups.tags([code])
        if len({pair[0] for pair in tagged}) == 1:
            assert race == groups.values(tagged[0][0]), code
        else:
            assert code in {"Q846570", "Q1196645"}  # Americans, Canadians: one sheet says white, the other nothing
            assert race == ()
        assert {region} == {groups.values(pair[1]) for pair in tagged}


def test_fields_of_work_are_the_219_of_table_16(reference: Reference) -> None:
    theirs = {row[0]: (row[1], row[2]) for row in rows(reference("seesaw", "fow.csv"))[1:]}
    ours = published("fields_of_work")
    assert {id: (row["label"], row["area"]) for id, row in ours.items()} == theirs
    assert Counter(row["area"] for row in ours.values()) == {
        "science": 119, "humanities": 55, "social science": 31, "arts": 14,
    }  # fmt: skip


def test_countries_are_the_90_of_table_17_with_repaired_labels(reference: Reference) -> None:
    theirs = rows(reference("seesaw", "P27_cats.csv"))
    ours = groups.table("countries")
    assert Counter(row[2] for row in theirs) == {
        "Africa": 2, "Asia": 6, "Europe": 77, "None": 1, "North America": 2, "Oceania": 2,
    }  # fmt: skip
    for id, label, continent in theirs:
        assert ours[id]["continent"] == ("" if continent == "None" else continent)
        assert ours[id]["label"] == label.strip() or id == "Q35"
    assert ours["Q35"]["label"] == "Denmark"
    assert ours["Q62651"]["label"] == "Denmark–Norway"


def test_cities_have_the_names_and_countries_of_the_two_unrelated_column_pairs(reference: Reference) -> None:
    theirs = rows(reference("seesaw", "city_to_country.csv"))
    continents = {row[0]: row[2] for row in rows(reference("seesaw", "country_codes.csv"))}
    names = {row[2]: row[3] for row in theirs if row[2]}
    countries = {row[0]: row[1] for row in theirs}
    assert len(names) == len(countries) == 232
    ours = published("cities")
    assert {id: row["label"] for id, row in ours.items()} == names
    assert {id: row["country"] for id, row in ours.items()} == countries
    doubtful = {"Turkey", "Armenia"}  # Europe there, in both continents here
    assert all(
        row["continent"] == continents[row["country"]] for row in ours.values() if row["country"] not in doubtful
    )


def test_reported_groups_are_known_groups() -> None:
    assert set(groups.AXES["race"]) <= set(groups.RACES)
    assert set(groups.AXES["region"]) <= set(groups.REGIONS)
    for row in groups.table("ethnic_groups").values():
        assert set(groups.values(row["race"])) <= set(groups.RACES), row
        assert set(groups.values(row["region"])) <= set(groups.REGIONS), row


def test_tags_are_sorted_multi_valued_and_empty_when_unknown() -> None:
    assert groups.tags([]) == ((), ())
    assert groups.tags(["Q999999999"]) == ((), ())
    assert groups.tags(["Q7325"]) == (("Jewish",), ())  # Jewish people: no one region
    assert groups.tags(["Q49085", "Q7325", "Q817393"]) == (("Black", "Jewish"), ("North America",))
    assert groups.tags(["Q23445"]) == groups.tags(["Q817393"]) == (("Black",), ())  # "black" folded


def test_no_gender_is_dropped() -> None:
    assert groups.gender_tags(["Q6581097"]) == ("men",)
    assert groups.gender_tags(["Q6581072"]) == ("women",)
    assert groups.gender_tags(["Q1052281"]) == ("trans women", "women")
    assert groups.gender_tags(["Q48270", "Q6581072"]) == ("non-binary people", "women")
    assert groups.gender_tags(["Q123456789"]) == ("other",)
    assert groups.gender_tags([]) == ()
