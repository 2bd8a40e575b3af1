"""Invented worlds in Wikidata's shape, of any size, to build from without asking anybody.

People are made of the values that the packaged tables list, with Wikidata's kind of skew: few values that very many
hold and many that few hold, four men for one woman, fields of work and ethnic groups recorded for a minority, some
people without an English name or with a disambiguator in it, some values unknown. Nobody in them exists.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from seesaw_cf.base.files import write_text
from seesaw_cf.builder_scripts.embedded import PROPERTIES
from seesaw_cf.builder_scripts.sparql import FEMALE, MALE, WIKIDATA, entity_iri
from seesaw_cf.records import groups
from seesaw_cf.types import Case

__all__ = ["write_world"]

SKEW = 1.4  # exponent of the Zipf law over fields, places, countries and languages
FIRST_ID = 900_000_000  # QIDs of invented people; Wikidata has not come near
_WDT = f"{WIKIDATA}prop/direct/"
_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_SYLLABLES = [a + b for a in "bdfghjklmnprstv" for b in "aeo"]
_OCCUPATIONS = tuple(f"Q{n}" for n in (36180, 33999, 82955, 1622272, 937857, 639669, 901, 1028181, 1930187, 39631))
_TABLES = {"P27": "countries", "P19": "cities", "P101": "fields_of_work", "P103": "languages"}


class _Property(NamedTuple):
    """How a property is spread over people: cumulated weights, share of who has it, of these of who has two values."""

    id: str
    values: Sequence[str]
    weights: Sequence[float]
    share: float
    second: float


def _zipf(id: str, values: Sequence[str], skew: float, share: float, second: float) -> _Property:
    return _Property(id, values, list(accumulate(rank**-skew for rank in range(1, len(values) + 1))), share, second)


def _properties(edits: Sequence[Case]) -> tuple[_Property, ...]:
    others = [id for id in groups.table("genders") if id not in (MALE, FEMALE)]
    genders = list(accumulate((0.78, 0.21, *(0.01 / len(others) for _ in others))))
    return (
        _Property("P21", (MALE, FEMALE, *others), genders, 0.995, 0.001),
        _zipf("P27", _ranked("P27", edits), SKEW, 0.9, 0.08),
        _zipf("P19", _ranked("P19", edits), SKEW, 0.7, 0.0),
        _zipf("P101", _ranked("P101", edits), SKEW, 0.35, 0.2),
        _zipf("P103", _ranked("P103", edits), SKEW, 0.35, 0.03),
        _zipf("P106", _OCCUPATIONS, 1.0, 0.9, 0.3),
        _zipf("P172", tuple(groups.table("ethnic_groups")), 1.0, 0.15, 0.1),
    )


def _ranked(relation_id: str, edits: Sequence[Case]) -> tuple[str, ...]:
    """The values of a relation, the table's and those of edits, in an order of their own."""
    requests = [case.request for case in edits if case.request.relation_id == relation_id]
    edited = {str(entity.id) for request in requests for entity in (request.target_new, request.target_true)}
    values = sorted({id for id in (*groups.table(_TABLES[relation_id]), *edited) if id.startswith("Q")})
    return tuple(random.Random(f"0 {relation_id}").sample(values, len(values)))


def _name(number: int) -> str:
    """A name of its own for every number below four million: two words of two syllables."""
    parts = []
    for _ in range(4):
        number, digit = divmod(number, len(_SYLLABLES))
        parts.append(_SYLLABLES[digit])
    return f"{(parts[0] + parts[1]).capitalize()} {(parts[2] + parts[3]).capitalize()}"


def _fact(subject: str, property_id: str, value: str) -> str:
    return f"<{entity_iri(subject)}> <{_WDT}{property_id}> {value} .\n"


def _held(subject: str, property_id: str, value: str) -> str:
    return _fact(subject, property_id, f"<{entity_iri(value)}>")


def _label(id: str, text: str, tag: str = "en") -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'<{entity_iri(id)}> <{_LABEL}> "{quoted}"@{tag} .\n'


def _person(number: int, properties: Sequence[_Property], rng: random.Random) -> Iterator[str]:
    """Name, values, dates and links; the name is nearly always English, else "mul" or Cyrillic."""
    id, name, kind = f"Q{FIRST_ID + number}", _name(number), rng.random()
    yield _held(id, "P31", "Q5")
    if kind < 0.03:
        yield _label(id, name, "mul")
    elif kind < 0.05:
        yield _label(id, f"Имя {number}", "ru")
    else:
        yield _label(id, f"{name} (singer)" if kind < 0.055 else name)
    for row in properties:
        if rng.random() < row.share:
            count = 2 if rng.random() < row.second else 1
            for value in dict.fromkeys(rng.choices(row.values, cum_weights=row.weights, k=count)):
                yield _held(id, row.id, value)
        elif rng.random() < 0.002:  # known to exist, but not what it is
            yield _fact(id, row.id, f"_:u{rng.getrandbits(48)}")
    born = rng.randint(1750, 2000)
    if rng.random() < 0.85:
        yield _fact(id, "P569", f'"{born}-01-01T00:00:00Z"^^<{_XSD}dateTime>')
    if rng.random() < (0.95 if born < 1915 else 0.3):
        known = f'"{born + 60}-01-01T00:00:00Z"^^<{_XSD}dateTime>'
        yield _fact(id, "P570", known if rng.random() < 0.98 else f"_:d{rng.getrandbits(48)}")
    links = int(rng.paretovariate(1))
    yield f'<{entity_iri(id)}> <http://wikiba.se/ontology#sitelinks> "{links}"^^<{_XSD}integer> .\n'


def _values(edits: Sequence[Case]) -> Iterator[str]:
    """Names of every value: the tables', and those that only edits have; the countries of cities."""
    tables = ("genders", "countries", "cities", "fields_of_work", "languages", "ethnic_groups")
    names = {id: row["label"] for name in tables for id, row in groups.table(name).items()}
    given = (entity for case in edits for entity in (case.request.target_new, case.request.target_true))
    names |= {str(entity.id): entity.label for entity in given}
    yield from (_label(id, label) for id, label in sorted(names.items()) if label)
    yield from (_label(f"{WIKIDATA}entity/{id}", row["label"]) for id, row in PROPERTIES.items())
    countries = {row["label"]: id for id, row in groups.table("countries").items()}
    for id, row in groups.table("cities").items():
        if row["country"] in countries:
            yield _held(id, "P17", countries[row["country"]])


def _subjects(first: int, edits: Sequence[Case]) -> Iterator[str]:
    """A human for every subject of the edits, who holds the old values, so that edit files fit the world."""
    numbers: dict[str, int] = {}
    for request in (case.request for case in edits):
        number = numbers.setdefault(request.subject, first + len(numbers))
        yield _held(f"Q{number}", "P31", "Q5")
        yield _held(f"Q{number}", "P21", FEMALE if number % 5 == 0 else MALE)
        yield _held(f"Q{number}", request.relation_id, str(request.target_true.id))
        yield _label(f"Q{number}", request.subject)


def write_world(path: str | os.PathLike[str], people: int, edits: Sequence[Case] = ()) -> None:
    """Write a world as N-Triples, about ten lines per person, with the subjects of edits."""
    properties, rng = _properties(edits), random.Random("0 people")
    crowd = (line for number in range(people) for line in _person(number, properties, rng))
    write_text(path, "".join((*_values(edits), *crowd, *_subjects(FIRST_ID + people, edits))))
