"""Each check of the curated people says what is wrong with whom; the released files are compared by a made-up copy."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.builder_scripts.sample.balance import check_balance, group_table, summary
from seesaw_cf.builder_scripts.sample.check_people import check, main
from seesaw_cf.builder_scripts.sample.facts import provenance, read_tsv
from seesaw_cf.builder_scripts.sample.people import HERE, KIND_OF, KINDS, Entity, Person, load_entities, load_people
from seesaw_cf.builder_scripts.sample.reference import (
    check_against_reference,
    reference_groups,
    reference_labels,
    reference_names,
)
from seesaw_cf.builder_scripts.sample.tables import KINDS as TABLES
from seesaw_cf.builder_scripts.sample.tables import missing
from seesaw_cf.errors import RecordError, StorageError

PEOPLE = load_people()
ENTITIES = load_entities()
FIRST = PEOPLE[0]
CURIE = next(person for person in PEOPLE if person.iri == "Q7186")
Entities = dict[tuple[str, str], Entity]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": PEOPLE[1].name}, f"name {PEOPLE[1].name!r} occurs 2 times"),
        ({"name": "Somebody (poet)"}, "name 'Somebody (poet)' has a disambiguator or an odd character"),
        ({"name": "Two  Spaces"}, "name 'Two  Spaces' has a disambiguator or an odd character"),
        ({"name": ""}, "name '' has a disambiguator"),
        ({"name": PEOPLE[1].name + "son"}, f"name {PEOPLE[1].name!r} is part of {PEOPLE[1].name + 'son'!r}"),
        ({"iri": PEOPLE[1].iri}, f"iri {PEOPLE[1].iri!r} occurs 2 times"),
        ({"iri": "Q007"}, "bad iri 'Q007'"),
        ({"iri": "s:Not-Lower"}, "bad iri 's:Not-Lower'"),
        ({"citizenship": ("Atlantis",)}, "country 'Atlantis' is not in the entities"),
        ({"citizenship": ()}, f"{FIRST.name}: P27 is missing"),
        ({"birth_place": ""}, f"{FIRST.name}: P19 is missing"),
        ({"birth_place": "Paris|London"}, f"{FIRST.name}: more than one birth place"),
        ({"occupation": FIRST.occupation * 2}, f"{FIRST.name}: P106 has repeats"),
        ({"field_of_work": ("physics", "chemistry", "literature", "music")}, "more than three fields of work"),
        ({"birth_year": 1900, "death_year": 1914}, "lived from 1900 to 1914"),
        ({"birth_year": 1800, "death_year": 1916}, "lived from 1800 to 1916"),
        ({"provenance": ()}, f"{FIRST.name}: provenance covers []"),
    ],
)  # fmt: skip
def test_a_wrong_person_is_named_with_what_is_wrong(change: dict[str, Any], message: str) -> None:
    problems = check([replace(FIRST, **change), *PEOPLE[1:]], ENTITIES)
    assert any(message in problem for problem in problems), problems


@pytest.mark.parametrize(("born", "died"), [(1900, 1915), (1800, 1915), (-100, -50)])
def test_ages_at_the_limits_are_no_problem(born: int, died: int) -> None:
    """Fifteen and 115 years, and years before Christ."""
    assert check([replace(FIRST, birth_year=born, death_year=died), *PEOPLE[1:]], ENTITIES) == []


@pytest.mark.parametrize(
    ("kind", "label", "change", "message"),
    [
        ("country", "France", {"iri": "France"}, "country 'France': bad iri 'France'"),
        ("country", "France", {"continent": "Gondwana"}, "country 'France': continent 'Gondwana'"),
        ("country", "France", {"continent": ""}, "country 'France': continent ''"),
        ("country", "France", {"area": "arts"}, "country 'France': area 'arts'"),
        ("country", "France", {"race": ("white",)}, "country 'France': race and region belong to ethnic groups"),
        ("country", "France", {"country": ("France",)}, "country 'France': a country belongs to cities"),
        ("city", "Paris", {"country": ()}, "city 'Paris': a country belongs to cities, and to each of them"),
        ("city", "Paris", {"country": ("Gaul",)}, "city 'Paris': country 'Gaul' is not in the entities"),
        ("field", "physics", {"area": "magic"}, "field 'physics': area 'magic'"),
        ("field", "physics", {"iri": ENTITIES["country", "France"].iri}, "shares Q142 with"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_wrong(kind: str, label: str, change: dict[str, Any], message: str) -> None:
    changed = ENTITIES | {(kind, label): replace(ENTITIES[kind, label], **change)}
    problems = check(PEOPLE, changed)
    assert any(message in problem for problem in problems), problems


def test_values_that_nobody_has_and_unknown_kinds_are_named() -> None:
    odd = Entity("planet", "Mars", "Q111", (), "", "", (), ())
    problems = check(PEOPLE, ENTITIES | {("planet", "Mars"): odd})
    assert problems == ["planet 'Mars': unknown kind", "planet 'Mars' is not in use"]
    shared = replace(odd, kind="occupation", iri=FIRST.iri)
    problems = check(PEOPLE, ENTITIES | {("occupation", "Mars"): shared})
    assert f"{FIRST.name}: shares {FIRST.iri} with occupation 'Mars'" in problems


def _without(test: Callable[[Person], bool]) -> list[Person]:
    return [person for person in PEOPLE if not test(person)]


@pytest.mark.parametrize(
    ("people", "message"),
    [
        ([], "0 people"),
        (PEOPLE[:299], "299 people"),
        ([*PEOPLE, *PEOPLE[:10]], f"{len(PEOPLE) + 10} people"),
        (_without(lambda person: person.gender == "male"), "100% women"),
        ([replace(person, death_year=None) for person in PEOPLE], "only 0% have died"),
        ([replace(p, ethnic_group=p.ethnic_group[:1]) for p in PEOPLE], "nobody has several ethnic groups"),
        (_without(lambda person: not person.ethnic_group), "only 0 people of unknown ethnic group"),
        ([replace(person, field_of_work=("physics",)) for person in PEOPLE], "area 'arts': only 0 fields"),
        ([replace(p, field_of_work=(f"field {n % 21}",)) for n, p in enumerate(PEOPLE)], "21 fields"),
        ([replace(p, citizenship=(f"land {n % 26}",)) for n, p in enumerate(PEOPLE)], "26 countries, at most 25"),
        ([replace(p, birth_place=f"town {n}") for n, p in enumerate(PEOPLE)], "only 0 cities with at least 4 people"),
        ([replace(p, native_language=("Latin",)) for p in PEOPLE], "only 1 languages with at least 6 people"),
    ],
    ids=range(12),
)  # fmt: skip
def test_an_unbalanced_sample_is_seen(people: list[Person], message: str) -> None:
    extra = {("field", f"field {n}"): replace(ENTITIES["field", "physics"], label=f"field {n}") for n in range(21)}
    problems = check_balance(people, ENTITIES | extra)
    assert any(problem.startswith(message) for problem in problems), problems


def test_the_balance_does_not_depend_on_the_order_of_people() -> None:
    some = PEOPLE[:200]
    assert sorted(check_balance(some, ENTITIES)) == sorted(check_balance(some[::-1], ENTITIES))
    assert summary(PEOPLE, ENTITIES) == summary(PEOPLE[::-1], ENTITIES)


def test_the_summary_counts_women_and_men() -> None:
    lines = summary(PEOPLE, ENTITIES).splitlines()
    assert lines[0] == f"{len(PEOPLE)} people"
    counts = Counter(
        (label, person.gender)
        for person in PEOPLE
        for label in person.native_language
    )  # fmt: skip
    for language in ("English", "French"):
        women, men = counts[language, "female"], counts[language, "male"]
        section = lines[next(n for n, line in enumerate(lines) if line.startswith("native language")) :]
        (found,) = (line.split() for line in section if line.split()[:1] == [language])
        assert found[1:] == [str(women + men), str(women), str(men)]


# The released files, made up: one subject, one edit about other people, the sheets with a heading or without.
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
    group = Entity("ethnic_group", "Alphas", "Q1", (), "", "", ("white",), ())
    own = Entity("ethnic_group", "Mine", "Q9", (), "", "", ("white",), ("Africa",))
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


def curie(**changes: Any) -> Person:
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
        (Entity("country", "Gaul", "Q142", (), "", "", (), ()), "country 'Gaul': Q142 is ['France'] in the reference"),
        (Entity("city", "Paris", "Q1", (), "", "", (), ()), "city 'Paris': the reference has ['Q90'], not Q1"),
        (Entity("ethnic_group", "Alphas", "Q1", (), "", "", ("white",), ()), "Alphas: race and region"),
    ],
)
def test_values_that_disagree_with_the_released_files_are_named(released: Path, entity: Entity, message: str) -> None:
    problems = check_against_reference([], {(entity.kind, entity.label): entity}, released)
    assert any(problem.startswith(message) for problem in problems), problems


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"columns \[\], expected \['kind', 'label'"),
        (b"kind\tlabel\n", r"columns \[\], expected .* and at least one row"),
        (b"kind\tlabel", r"the last line does not end; the file may be cut off"),
        (b"kind\tlabel\ncity\n", r"line 2: 1 cells, expected 2 as in the header"),
        (b"kind\tlabel\ncity\tParis\n", r"columns \['kind', 'label'\], expected"),
        (b"kind\tlabel\n\xff\tx\n", r"byte 11 is not UTF-8 text\. Save the table as UTF-8"),
    ],
)
def test_tables_that_cannot_be_read_say_where(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "entities.tsv"
    file.write_bytes(content)
    with pytest.raises(RecordError, match=rf"entities\.tsv.*{message}"):
        load_entities(file)
    with pytest.raises(StorageError, match=r"none\.tsv: cannot be read .*Check the path"):
        load_people(tmp_path / "none.tsv")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\tfemale\t", "\t female\t", r"gender ' female' begins or ends with white space"),
        ("\t1867\t", "\tMDCCC\t", r"Marie Curie: birth_year 'MDCCC', expected a year"),
        ("P21", "P 21", r"Marie Curie: provenance 'P 21.*', expected 'P21,P27:where from'"),
    ],
)
def test_a_cell_that_cannot_be_read_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    head, *rows = (HERE / "people.tsv").read_text(encoding="utf-8").splitlines()
    row = next(row for row in rows if row.startswith("Marie Curie\t"))
    assert old in row
    (tmp_path / "people.tsv").write_text(f"{head}\n{row.replace(old, new, 1)}\n", encoding="utf-8")
    with pytest.raises(RecordError, match=message):
        load_people(tmp_path / "people.tsv")


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r"), max_size=6)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=5))
def test_tables_are_read_as_they_are_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:  # fmt: skip
    """No quoting: quotes and bars are themselves."""
    file = tmp_path_factory.mktemp("tables") / "t.tsv"
    file.write_text("".join("\t".join(row) + "\n" for row in [["a", "b"], *rows]), encoding="utf-8")
    assert read_tsv(file) == [dict(zip("ab", row, strict=True)) for row in rows]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.from_regex(r"P[1-9][0-9]{0,3}", fullmatch=True), min_size=1, max_size=3),
            st.from_regex(r"[a-z][a-z :,]{0,8}", fullmatch=True),
        ),
        max_size=4,
    )
)
def test_provenance_is_read_as_it_is_written(parts: list[tuple[list[str], str]]) -> None:
    cell = "|".join(f"{','.join(names)}:{text}" for names, text in parts)
    assert provenance(cell, "Ann") == tuple((tuple(names), text) for names, text in parts)


def test_every_value_of_every_person_has_one_origin() -> None:
    for person in PEOPLE:
        covered = [name for names, _ in person.provenance for name in names]
        assert sorted(covered) == sorted(person.values())
        assert set(KIND_OF) | {"P569", "P570"} >= set(covered)


def test_new_values_get_a_row_in_the_packaged_tables() -> None:
    """A city has the continents of its countries; kinds without a table are left out; values already there too."""
    empty = {"country": "", "continent": "", "area": "", "race": "", "region": ""}
    rows = [
        empty | {"kind": "country", "label": "Here", "iri": "s:here", "continent": "Asia"},
        empty | {"kind": "country", "label": "There", "iri": "s:there", "continent": "Africa"},
        empty | {"kind": "city", "label": "Between", "iri": "s:between", "country": "Here|There"},
        empty | {"kind": "ethnic_group", "label": "Folk", "iri": "s:folk", "race": "white|Black", "region": "Africa"},
        empty | {"kind": "occupation", "label": "poet", "iri": "Q49757"},
        empty | {"kind": "country", "label": "France", "iri": "Q142", "continent": "Europe"},
    ]
    found = missing(rows)
    assert set(found) == set(TABLES.values())
    assert [row["label"] for row in found["countries"]] == ["Here", "There"]
    (city,) = found["cities"]
    assert (city["id"], city["continent"]) == ("https://seesaw-cf.github.io/entity/between", "Africa|Asia")
    (group,) = found["ethnic_groups"]
    assert (group["race"], group["region"], group["provenance"]) == ("white|Black", "Africa", "embedded sample")
    assert found["languages"] == []


def test_a_table_that_is_not_sound_is_not_compared(
    released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (HERE / "people.tsv").read_text(encoding="utf-8").replace("\tFrance", "\tGaul", 1)
    (tmp_path / "people.tsv").write_text(text, encoding="utf-8")
    assert main(["--people", str(tmp_path / "people.tsv"), "--reference", str(released)]) == 1
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "problem: country 'Gaul' is not in the entities\n")
