"""People and values are compared with the released files, here a made-up copy of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.builder_scripts.sample.check.balance import group_table
from seesaw_cf.builder_scripts.sample.check.people import main
from seesaw_cf.builder_scripts.sample.check.reference import (
    check_against_reference,
    reference_groups,
    reference_labels,
    reference_names,
)
from seesaw_cf.builder_scripts.sample.people import (
    HERE,
    KINDS,
    CuratedPerson,
    LabelledValue,
    load_entities,
    load_people,
)

ENTITIES = load_entities()
CURIE = next(person for person in load_people() if person.iri == "Q7186")
Entities = dict[tuple[str, str], LabelledValue]

SHEET = "Code,Link,Ethnic Group,Racial Group,Geo Group\n"


@pytest.fixture
def released(tmp_path: Path) -> Path:
    files = {
        "P101_ethnic_groups.csv": SHEET + "Q1,x,Alphas,black,Africa\nQ2,x,Betas, white ,Western Europe\n",
        "P103_ethnic_groups.csv": SHEET + "Q1,x,Alpha people,Black,Caribbean\nQ3,x,Gammas,,\n",
        "fow.csv": "code,label\nQ413,physics\n,empty\n",
        "P27_cats.csv": "Q142,France,Europe\n",
        "city_to_country.csv": "0,Q90,Paris\n",
        "P103_conversions.csv": "n,from,name,to,name\n0,Q150,French,Q1860,English\n",
        "seesaw_cf_P27_P101.json": json.dumps(
            [
                {"attribute_aux_info": ["Q5"], "attribute_aux_ent": ["Ann Lee"]},
                {"attribute_aux_info": "['Q5', 'Q6']", "attribute_aux_ent": "['Ann L.', 'Bob']"},
            ]
        ),
        "P27_subject_info.json": json.dumps(
            {
                "Q7186": {
                    "name": "Marie Curie",
                    "properties": {"P21": ["Q6581072"], "P27": ["Q142", "Q36"], "P569": ["+1867-11-07T00:00:00Z"],
                                   "P570": ["+1934-07-04T00:00:00Z"]},
                }
            }
        ),
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_group_in_both_sheets_has_the_tags_of_both(released: Path) -> None:
    assert reference_groups(released) == {
        "Q1": (frozenset({"Black"}), frozenset({"Africa", "Caribbean"})),
        "Q2": (frozenset({"white"}), frozenset({"Western Europe"})),
        "Q3": (frozenset(), frozenset()),
    }
    group = LabelledValue("ethnic_group", "Alphas", "Q1", (), "", "", ("white",), ())
    own = LabelledValue("ethnic_group", "Mine", "Q9", (), "", "", ("white",), ("Africa",))
    table = {("ethnic_group", "Alphas"): group, ("ethnic_group", "Mine"): own}
    assert group_table(table)["Alphas"] == (frozenset({"white"}), frozenset())
    assert group_table(table, released)["Alphas"][0] == {"Black"}, "the sheets win where they list the group"
    assert group_table(table, released)["Mine"] == (frozenset({"white"}), frozenset({"Africa"}))


def test_names_and_labels_of_the_released_files(released: Path) -> None:
    assert reference_names(released) == {"Q5": {"Ann Lee", "Ann L."}, "Q6": {"Bob"}, "Q7186": {"Marie Curie"}}
    labels = reference_labels(released)
    assert set(labels) == set(KINDS)
    assert labels["language"] == {"Q150": {"French"}, "Q1860": {"English"}}
    assert labels["ethnic_group"]["Q1"] == {"Alphas", "Alpha people"}
    assert labels["field"] == {"Q413": {"physics"}}, "a row without a code is left out"
    assert (labels["country"], labels["city"]) == ({"Q142": {"France"}}, {"Q90": {"Paris"}})


def curie(**changes: Any) -> CuratedPerson:
    """Marie Curie with what the made-up files know of her, and a birth place that they do not."""
    known: dict[str, Any] = {
        "gender": "female", "citizenship": ("France",), "birth_year": 1867, "death_year": 1934, "birth_place": "Paris",
        "native_language": (), "field_of_work": (), "ethnic_group": (), "occupation": (),
        "provenance": ((("P21", "P27", "P569", "P570"), "reference claims"), (("P19", "P106"), "curated")),
    }  # fmt: skip
    return replace(CURIE, **known | changes)


def only(*keys: tuple[str, str]) -> Entities:
    return {key: ENTITIES[key] for key in keys}


BASE = only(("gender", "female"), ("gender", "male"), ("country", "France"), ("country", "Japan"), ("city", "Paris"))


def test_what_agrees_with_the_released_files_is_no_problem(released: Path) -> None:
    assert check_against_reference([curie()], BASE, released) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "Maria Curie"}, "Maria Curie: Q7186 is ['Marie Curie'] in the reference"),
        ({"iri": "Q42", "provenance": ()}, "Marie Curie: the reference has ['Q7186'], not Q42"),
        ({"iri": "Q42"}, "claims to come from the reference, which has no claims"),
        ({"gender": "male"}, "P21 ('male',) is not among the claims ['Q6581072']"),
        ({"citizenship": ("France", "Japan")}, "P27 ('France', 'Japan') is not among the claims ['Q142', 'Q36']"),
        ({"birth_year": 1868}, "P569 ('1868',) is not among the claims ['+1867-11-07T00:00:00Z']"),
        ({"death_year": None}, "Marie Curie: has died, says the reference"),
        (
            {"provenance": ((("P21", "P27", "P19", "P569", "P570"), "reference claims"),)},
            "P19 claims to come from the reference, which lacks it",
        ),
    ],
)
def test_what_disagrees_with_the_released_files_is_named(released: Path, change: dict[str, Any], message: str) -> None:
    problems = check_against_reference([curie(**change)], BASE, released)
    assert any(message in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        (
            LabelledValue("country", "Gaul", "Q142", (), "", "", (), ()),
            "country 'Gaul': Q142 is ['France'] in the reference",
        ),
        (LabelledValue("city", "Paris", "Q1", (), "", "", (), ()), "city 'Paris': the reference has ['Q90'], not Q1"),
        (LabelledValue("ethnic_group", "Alphas", "Q1", (), "", "", ("white",), ()), "Alphas: race and region"),
    ],
)
def test_values_that_disagree_with_the_released_files_are_named(
    released: Path, entity: LabelledValue, message: str
) -> None:
    problems = check_against_reference([], {(entity.kind, entity.label): entity}, released)
    assert any(problem.startswith(message) for problem in problems), problems


def test_a_table_that_is_not_sound_is_not_compared(
    released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (HERE / "people.tsv").read_text(encoding="utf-8").replace("\tFrance", "\tGaul", 1)
    (tmp_path / "people.tsv").write_text(text, encoding="utf-8")
    assert main(["--people", str(tmp_path / "people.tsv"), "--reference", str(released)]) == 1
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "problem: country 'Gaul' is not in the entities\n")
