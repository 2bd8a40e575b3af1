"""Each check of the curated people says what is wrong with whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.builder_scripts.sample.check.balance import check_balance, summary
from seesaw_cf.builder_scripts.sample.check.people import check
from seesaw_cf.builder_scripts.sample.facts import provenance, read_tsv
from seesaw_cf.builder_scripts.sample.people import (
    HERE,
    KIND_OF,
    CuratedPerson,
    LabelledValue,
    load_entities,
    load_people,
)
from seesaw_cf.builder_scripts.sample.tables import KINDS as TABLES
from seesaw_cf.builder_scripts.sample.tables import missing
from seesaw_cf.errors import RecordError, StorageError

PEOPLE = load_people()
ENTITIES = load_entities()
FIRST = PEOPLE[0]


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
    odd = LabelledValue("planet", "Mars", "Q111", (), "", "", (), ())
    problems = check(PEOPLE, ENTITIES | {("planet", "Mars"): odd})
    assert problems == ["planet 'Mars': unknown kind", "planet 'Mars' is not in use"]
    shared = replace(odd, kind="occupation", iri=FIRST.iri)
    problems = check(PEOPLE, ENTITIES | {("occupation", "Mars"): shared})
    assert f"{FIRST.name}: shares {FIRST.iri} with occupation 'Mars'" in problems


def _without(test: Callable[[CuratedPerson], bool]) -> list[CuratedPerson]:
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
def test_an_unbalanced_sample_is_seen(people: list[CuratedPerson], message: str) -> None:
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
