"""Checks the people of the two samples: format, labels, counts, balance, provenance.

Run it with ``python -m seesaw_cf.builder_scripts.sample.check.people``; it prints a summary and fails on any problem.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from seesaw_cf.builder_scripts.sample.check.balance import check_balance, summary
from seesaw_cf.builder_scripts.sample.check.reference import check_against_reference
from seesaw_cf.builder_scripts.sample.claims import CLAIMS, ORIGIN, claims_table, known_values
from seesaw_cf.builder_scripts.sample.facts import read_tsv
from seesaw_cf.builder_scripts.sample.people import (
    HERE,
    KIND_OF,
    KINDS,
    CuratedPerson,
    LabelledValue,
    load_entities,
    load_people,
)
from seesaw_cf.records.groups import AREAS

CONTINENTS = ("Africa", "Asia", "Europe", "North America", "Oceania", "South America")

Entities = Mapping[tuple[str, str], LabelledValue]

_NEEDED = ("P21", "P27", "P19", "P103", "P101", "P106")
_QID = re.compile(r"Q[1-9][0-9]*")
_IRI = re.compile(r"Q[1-9][0-9]*|s:[a-z0-9]+(-[a-z0-9]+)*")


def _check_entities(people: Sequence[CuratedPerson], entities: Entities) -> list[str]:
    held = {(KIND_OF[key], label) for p in people for key, row in p.values().items() if key in KIND_OF for label in row}
    used = held | {("country", country) for entity in entities.values() for country in entity.country}
    problems = [f"{kind} {label!r} is not in the entities" for kind, label in sorted(held - set(entities))]
    owners: dict[str, str] = {}
    for (kind, label), entity in entities.items():
        where, iri = f"{kind} {label!r}", entity.iri
        unknown = [name for name in entity.country if ("country", name) not in entities]
        faults = (
            (kind not in KINDS, "unknown kind"),
            (_IRI.fullmatch(iri) is None, f"bad iri {iri!r}"),
            (iri in owners, f"shares {iri} with {owners.get(iri)}"),
            ((kind == "city") != bool(entity.country), "a country belongs to cities, and to each of them"),
            *((True, f"country {name!r} is not in the entities") for name in unknown),
            (_is_odd(entity.continent, kind == "country", CONTINENTS), f"continent {entity.continent!r}"),
            (_is_odd(entity.area, kind == "field", AREAS), f"area {entity.area!r}"),
            (kind != "ethnic_group" and entity.race + entity.region, "race and region belong to ethnic groups"),
        )
        problems += [f"{where}: {fault}" for wrong, fault in faults if wrong]
        owners[iri] = where
    problems += [f"{kind} {label!r} is not in use" for kind, label in sorted(set(entities) - used)]
    shared = [person for person in people if person.iri in owners]
    return problems + [f"{person.name}: shares {person.iri} with {owners[person.iri]}" for person in shared]


def _is_odd(value: str, needed: bool, vocabulary: Sequence[str]) -> bool:
    return needed != bool(value) or value not in (*vocabulary, "")


def _check_persons(people: Sequence[CuratedPerson], needed: Sequence[str] = _NEEDED) -> list[str]:
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
        values, born, died = person.values(), person.birth_year, person.death_year
        covered = [key for keys, _source in person.provenance for key in keys]
        faults = (
            (_IRI.fullmatch(person.iri) is None, f"bad iri {person.iri!r}"),
            *((not all(values.get(key, ("",))), f"{key} is missing") for key in needed),
            *((len(set(got)) < len(got), f"{key} has repeats") for key, got in values.items()),
            ("|" in person.birth_place, "more than one birth place"),
            (died is not None and not 15 <= died - born <= 115, f"lived from {born} to {died}"),
            (sorted(covered) != sorted(values), f"provenance covers {covered}, the values are {list(values)}"),
        )
        problems += [f"{person.name}: {fault}" for wrong, fault in faults if wrong]
    return problems


def check(
    people: Sequence[CuratedPerson], entities: Mapping[tuple[str, str], LabelledValue], reference: Path | None = None
) -> list[str]:
    """Return all that is wrong with the tables; an empty list when nothing is.

    Args:
        people: Of the table.
        entities: Of the table; see `load_entities`.
        reference: Folder of the released files, its ethnic-group sheets win over the table's.

    Returns:
        One line each. The balance is looked at only when every value is known.
    """
    problems = _check_entities(people, entities) + _check_persons(people)
    many = [person for person in people if len(person.field_of_work) > 3]
    problems += [f"{person.name}: more than three fields of work" for person in many]
    return problems or check_balance(people, entities, reference)


def check_claims(people: Sequence[CuratedPerson], entities: Entities) -> list[str]:
    """Return all that is wrong with the people of the released claims: each has a QID, known values, and one origin.

    Args:
        people: Of `claims.tsv`.
        entities: What its labels may be; see `seesaw_cf.builder_scripts.sample.claims.known_values`.

    Returns:
        One line each.
    """
    problems = _check_persons(people, ("P21",))
    for person in people:
        held = [(KIND_OF[key], label) for key, row in person.values().items() if key in KIND_OF for label in row]
        faults = (
            (_QID.fullmatch(person.iri) is None, f"{person.iri!r} is not a QID"),
            *((pair not in entities, f"{pair[0]} {pair[1]!r} is not in the packaged tables") for pair in held),
            *((origin != ORIGIN, f"provenance {origin!r}, expected {ORIGIN!r}") for _, origin in person.provenance),
        )
        problems += [f"{person.name}: {fault}" for wrong, fault in faults if wrong]
    return problems


def main(argv: Sequence[str] | None = None) -> int:
    """Print the summary, or each problem; the exit status is 1 when there is one.

    Tables that are sound in themselves are compared with the reference.
    """
    parser = argparse.ArgumentParser(description="check the people of the samples")
    parser.add_argument("--people", type=Path, default=HERE / "people.tsv")
    parser.add_argument("--entities", type=Path, default=HERE / "entities.tsv")
    parser.add_argument("--claims", type=Path, default=CLAIMS)
    parser.add_argument("--reference", type=Path, help="folder of the released SEESAW-CF files, to compare with")
    arguments = parser.parse_args(argv)
    people = load_people(arguments.people)
    entities = load_entities(arguments.entities)
    problems = check(people, entities, arguments.reference)
    problems += check_claims(load_people(arguments.claims), known_values())
    if arguments.reference is not None and not problems:
        problems = check_against_reference(people, entities, arguments.reference)
        if read_tsv(arguments.claims) != claims_table(arguments.reference):
            problems.append(f"{arguments.claims}: differs from the claims in {arguments.reference}. Write it again.")
    if not problems:
        print(summary(people, entities, arguments.reference))
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
