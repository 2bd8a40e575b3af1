"""The sample's facts as N-Triples: up to date, well-formed, with the origin of every fact."""

from __future__ import annotations

from seesaw_cf.builder_scripts.embedded import full_id, render
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sparql import entity_iri
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


def test_links_are_seen_from_both_sides() -> None:
    first = next(row for row in LINKS if row["property"] == "P25")
    ids = {row["name"]: full_id(row["iri"]) for row in PEOPLE}
    text = render(PEOPLE, ENTITIES, [first])
    for one, name, other in ((first["name"], "P25", first["other"]), (first["other"], "P40", first["name"])):
        assert f"<{entity_iri(ids[one])}> <{entity_iri(name)}> <{entity_iri(ids[other])}> .\n" in text
