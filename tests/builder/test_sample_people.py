"""The curated people of the sample data hold what their README promises and agree with the released files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from seesaw_cf.builder_scripts.sample.check import people as cp
from seesaw_cf.builder_scripts.sample.check.reference import check_against_reference, reference_names
from seesaw_cf.builder_scripts.sample.people import HERE, CuratedPerson, LabelledValue, load_entities, load_people

REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference" / "seesaw"


@pytest.fixture(scope="module")
def people() -> list[CuratedPerson]:
    return load_people()


@pytest.fixture(scope="module")
def entities() -> dict[tuple[str, str], LabelledValue]:
    return load_entities()


@pytest.fixture(scope="module")
def reference() -> Path:
    if not REFERENCE.is_dir():
        pytest.skip("the released SEESAW-CF files are not in ../shared/reference")
    return REFERENCE


def test_tables_hold_every_constraint(
    people: list[CuratedPerson], entities: dict[tuple[str, str], LabelledValue]
) -> None:
    assert cp.check(people, entities) == []


def test_constraints_hold_with_the_released_sheets(
    people: list[CuratedPerson], entities: dict[tuple[str, str], LabelledValue], reference: Path
) -> None:
    assert cp.check(people, entities, reference) == []


def test_tables_agree_with_the_reference(
    people: list[CuratedPerson], entities: dict[tuple[str, str], LabelledValue], reference: Path
) -> None:
    assert check_against_reference(people, entities, reference) == []
    known = reference_names(reference)
    assert sum(person.iri in known for person in people) >= 25


def test_reference_comparison_sees_wrong_facts(
    people: list[CuratedPerson], entities: dict[tuple[str, str], LabelledValue], reference: Path
) -> None:
    curie = next(person for person in people if person.iri == "Q7186")
    for wrong in (
        replace(curie, gender="male"),
        replace(curie, citizenship=("Japan",)),
        replace(curie, death_year=1935),
        replace(curie, death_year=None),
        replace(curie, name="Maria Curie"),
        replace(curie, iri="s:marie-curie"),
    ):
        assert check_against_reference([wrong], entities, reference)


def test_faults_are_found(people: list[CuratedPerson], entities: dict[tuple[str, str], LabelledValue]) -> None:
    first, second, *rest = people
    for changed in (
        replace(first, name=second.name),
        replace(first, name=second.name.split()[0]),
        replace(first, name="Somebody (poet)"),
        replace(first, iri=second.iri),
        replace(first, iri="Poet"),
        replace(first, birth_place="Nowhere"),
        replace(first, birth_place=""),
        replace(first, citizenship=()),
        replace(first, field_of_work=("physics", "chemistry", "poetry", "dance")),
        replace(first, death_year=first.birth_year),
        replace(first, provenance=()),
        replace(first, provenance=((("P21", "P21"), "twice"),)),
    ):
        assert cp.check([changed, second, *rest], entities)
    assert cp.check(people[:-40], entities)
    assert cp.check([person for person in people if person.gender == "female" or len(person.name) > 14], entities)
    country = entities["country", "France"]
    for bad in (replace(country, continent=""), replace(country, iri="Q30"), replace(country, race=("white",))):
        assert cp.check(people, {**entities, ("country", "France"): bad})


def test_malformed_files_are_refused(tmp_path: Path) -> None:
    lines = (HERE / "people.tsv").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "people.tsv"
    for text in (
        "\n".join(lines),
        "\n".join(lines[1:]) + "\n",
        "\n".join([lines[0], lines[1] + "\textra"]) + "\n",
        "\n".join([lines[0], lines[1].replace(":curated", ";curated")]) + "\n",
        "\n".join([lines[0], " " + lines[1]]) + "\n",
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=r"people\.tsv|provenance"):
            load_people(path)
    header, row = (HERE / "entities.tsv").read_text(encoding="utf-8").splitlines()[:2]
    path.write_text(f"{header}\n{row}\n{row}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="twice"):
        load_entities(path)


def test_main_prints_a_summary_and_fails_on_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cp.main([]) == 0
    assert "field of work (20)" in capsys.readouterr().out
    lines = (HERE / "people.tsv").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "people.tsv"
    path.write_text("\n".join(lines[:50]) + "\n", encoding="utf-8")
    assert cp.main(["--people", str(path)]) == 1
    assert "problem: " in capsys.readouterr().err
