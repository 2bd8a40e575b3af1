"""Checks the curated people of the sample data: format, labels, counts, balance, provenance.

Run it with ``python -m seesaw_cf.builder_scripts.sample.check_people``; it prints a summary and fails on any problem.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from seesaw_cf.builder_scripts.sample.balance import check_balance, summary
from seesaw_cf.builder_scripts.sample.people import (
    HERE,
    KIND_OF,
    KINDS,
    CuratedPerson,
    Entity,
    load_entities,
    load_people,
)
from seesaw_cf.builder_scripts.sample.reference import check_against_reference
from seesaw_cf.records.groups import AREAS

__all__ = ["check", "main"]

CONTINENTS = ("Africa", "Asia", "Europe", "North America", "Oceania", "South America")

_IRI = re.compile(r"Q[1-9][0-9]*|s:[a-z0-9]+(-[a-z0-9]+)*")


def _check_entities(people: Sequence[CuratedPerson], entities: Mapping[tuple[str, str], Entity]) -> list[str]:
    problems: list[str] = []
    used: set[tuple[str, str]] = set()
    for person in people:
        for key, labels in person.values().items():
            if key in KIND_OF:
                used |= {(KIND_OF[key], label) for label in labels}
    for kind, label in sorted(used - set(entities)):
        problems.append(f"{kind} {label!r} is not in the entities")
    owners: dict[str, str] = {}
    for (kind, label), entity in entities.items():
        where = f"{kind} {label!r}"
        if kind not in KINDS:
            problems.append(f"{where}: unknown kind")
        if _IRI.fullmatch(entity.iri) is None:
            problems.append(f"{where}: bad iri {entity.iri!r}")
        if entity.iri in owners:
            problems.append(f"{where}: shares {entity.iri} with {owners[entity.iri]}")
        owners[entity.iri] = where
        if (kind == "city") != bool(entity.country):
            problems.append(f"{where}: a country belongs to cities, and to each of them")
        for country in entity.country:
            used.add(("country", country))
            if ("country", country) not in entities:
                problems.append(f"{where}: country {country!r} is not in the entities")
        if (kind == "country") != bool(entity.continent) or entity.continent not in (*CONTINENTS, ""):
            problems.append(f"{where}: continent {entity.continent!r}")
        if (kind == "field") != bool(entity.area) or entity.area not in (*AREAS, ""):
            problems.append(f"{where}: area {entity.area!r}")
        if kind != "ethnic_group" and (entity.race or entity.region):
            problems.append(f"{where}: race and region belong to ethnic groups")
    for kind, label in sorted(set(entities) - used):
        problems.append(f"{kind} {label!r} is not in use")
    for person in people:
        if person.iri in owners:
            problems.append(f"{person.name}: shares {person.iri} with {owners[person.iri]}")
    return problems


def _check_persons(people: Sequence[CuratedPerson]) -> list[str]:
    problems: list[str] = []
    for text in ("name", "iri"):
        for value, count in Counter(str(getattr(person, text)) for person in people).items():
            if count > 1:
                problems.append(f"{text} {value!r} occurs {count} times")
    names = [person.name for person in people]
    for name in names:
        problems += [f"name {name!r} is part of {other!r}" for other in names if other != name and name in other]
        if not name or re.search(r"[()\[\]|\t\d]|\s{2}", name):
            problems.append(f"name {name!r} has a disambiguator or an odd character")
    for person in people:
        values = person.values()
        if _IRI.fullmatch(person.iri) is None:
            problems.append(f"{person.name}: bad iri {person.iri!r}")
        problems += [
            f"{person.name}: {key} is missing"
            for key in ("P21", "P27", "P19", "P103", "P101", "P106")
            if not all(values.get(key, ("",)))
        ]
        problems += [f"{person.name}: {key} has repeats" for key, got in values.items() if len(set(got)) < len(got)]
        if len(person.field_of_work) > 3:
            problems.append(f"{person.name}: more than three fields of work")
        if "|" in person.birth_place:
            problems.append(f"{person.name}: more than one birth place")
        if person.death_year is not None and not 15 <= person.death_year - person.birth_year <= 115:
            problems.append(f"{person.name}: lived from {person.birth_year} to {person.death_year}")
        covered = [key for keys, _source in person.provenance for key in keys]
        if sorted(covered) != sorted(values):
            problems.append(f"{person.name}: provenance covers {covered}, the values are {list(values)}")
    return problems


def check(
    people: Sequence[CuratedPerson], entities: Mapping[tuple[str, str], Entity], reference: Path | None = None
) -> list[str]:
    """All that is wrong with the tables; an empty list when nothing is.

    Args:
        people: Of the table.
        entities: Of the table; see `load_entities`.
        reference: Folder of the released files, whose ethnic-group sheets win over the table's.

    Returns:
        One line each. The balance is looked at only when every value is known.
    """
    problems = _check_entities(people, entities) + _check_persons(people)
    return problems or check_balance(people, entities, reference)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the summary, or each problem; the exit status is 1 when there is one.

    Tables that are sound in themselves are compared with the reference.
    """
    parser = argparse.ArgumentParser(description="check the curated people of the sample data")
    parser.add_argument("--people", type=Path, default=HERE / "people.tsv")
    parser.add_argument("--entities", type=Path, default=HERE / "entities.tsv")
    parser.add_argument("--reference", type=Path, help="folder of the released SEESAW-CF files, to compare with")
    arguments = parser.parse_args(argv)
    people = load_people(arguments.people)
    entities = load_entities(arguments.entities)
    problems = check(people, entities, arguments.reference)
    if arguments.reference is not None and not problems:
        problems = check_against_reference(people, entities, arguments.reference)
    if not problems:
        print(summary(people, entities, arguments.reference))
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
