"""The sample's facts as N-Triples: up to date, well-formed, with the origin of every fact."""

from __future__ import annotations

from pathlib import Path

import pytest

from seesaw_cf.builder_scripts.embedded import read_tsv, render
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sparql import entity_iri
from seesaw_cf.errors import RecordError, StorageError
from tests.builder.embedded import small_tables

PEOPLE, ENTITIES, LINKS = small_tables()
TEXT = render(PEOPLE, ENTITIES, LINKS)


def test_everybody_arrives_in_the_store_with_every_value(facts: Facts) -> None:
    found = {person.entity.label: person for person in facts.everyone()}
    assert sorted(found) == sorted(row["name"] for row in PEOPLE)
    columns = {"citizenship": "P27", "birth_place": "P19", "native_language": "P103", "field_of_work": "P101"}
    for row in PEOPLE:
        for column, property_id in columns.items():
            labels = facts.labels(found[row["name"]].holds(property_id))
            assert sorted(labels.values()) == sorted(filter(None, row[column].split("|"))), row["name"]
        assert found[row["name"]].living is (not row["death_year"])


def test_every_fact_has_a_statement_with_a_reference(facts: Facts) -> None:
    origins = facts.references(person.id for person in facts.everyone())
    assert all(origins.values())
    statements = TEXT.count("<http://www.wikidata.org/prop/statement/P")
    assert statements == TEXT.count("<http://www.w3.org/ns/prov#wasDerivedFrom>")
    people = "".join(
        line + "\n" for line in TEXT.splitlines() if "/prop/direct/P31>" not in line and "P17>" not in line
    )
    assert statements == people.count("<http://www.wikidata.org/prop/direct/P")


def _id(row: dict[str, str]) -> str:
    from seesaw_cf.builder_scripts.embedded import full_id

    return full_id(row["iri"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"citizenship": "Atlantis"}, "citizenship 'Atlantis' is not a country of entities.tsv"),
        ({"provenance": "everything"}, "provenance 'everything', expected 'P21,P27:where from'"),
        ({"provenance": "P21:a book"}, "has no provenance. Name its origin"),
        ({"iri": "no one"}, "'no one' is not an identifier"),
    ],
)
def test_a_wrong_row_is_refused(change: dict[str, str], message: str) -> None:
    with pytest.raises(RecordError, match=message.replace(".", r"\.")):
        render([PEOPLE[0] | change], ENTITIES)


def test_links_are_seen_from_both_sides_and_wrong_ones_are_refused() -> None:
    first = next(row for row in LINKS if row["property"] == "P25")
    ids = {row["name"]: _id(row) for row in PEOPLE}
    text = render(PEOPLE, ENTITIES, [first])
    for one, name, other in ((first["name"], "P25", first["other"]), (first["other"], "P40", first["name"])):
        direct = entity_iri(name)
        assert f"<{entity_iri(ids[one])}> <{direct}> <{entity_iri(ids[other])}> .\n" in text
    for change in ({"property": "P99"}, {"other": "Nobody"}, {"other": first["name"]}):
        with pytest.raises(RecordError, match=r"links\.tsv: .* expected one of P25, .* between two people"):
            render(PEOPLE, ENTITIES, [first | change])


def test_tables_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file"):
        read_tsv(tmp_path / "none.tsv")
    (tmp_path / "marked.tsv").write_text("name\tcountry\nNA\tNone\n", encoding="utf-8-sig")
    assert read_tsv(tmp_path / "marked.tsv") == [{"name": "NA", "country": "None"}], "a mark is no letter of a name"
    ragged = tmp_path / "ragged.tsv"
    ragged.write_text("a\tb\n1\t2\n3\n", encoding="utf-8")
    with pytest.raises(RecordError, match=r"ragged\.tsv, line 3: 1 cells, expected 2"):
        read_tsv(ragged)
