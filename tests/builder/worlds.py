"""Invented worlds in Wikidata's shape, of any size, to build from without asking anybody.

People are made of the values that the packaged tables list, with Wikidata's kind of skew: few values that very many
hold and many that few hold, four men for one woman, fields of work and ethnic groups recorded for a minority, some
people without an English name or with a disambiguator in it, some values unknown. Nobody in them exists.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from seesaw_cf.base.files import atomic_path
from seesaw_cf.builder_scripts.embedded import PROPERTIES
from seesaw_cf.builder_scripts.sparql import FEMALE, MALE, WIKIDATA, entity_iri
from seesaw_cf.records import groups
from seesaw_cf.types import Case

__all__ = ["World", "triples", "write_world"]

SKEW = 1.4
FIRST_ID = 900_000_000  # QIDs of invented people; Wikidata has not come near
_WDT = f"{WIKIDATA}prop/direct/"
_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_SYLLABLES = [a + b for a in "bdfghjklmnprstv" for b in "aeo"]
_OCCUPATIONS = tuple(f"Q{n}" for n in (36180, 33999, 82955, 1622272, 937857, 639669, 901, 1028181, 1930187, 39631))
_TABLES = {"P27": "countries", "P19": "cities", "P101": "fields_of_work", "P103": "languages"}


@dataclass(frozen=True, slots=True)
class _Property:
    """How a property is spread over people: cumulated weights, share of who has it, of these of who has two values."""

    id: str
    values: Sequence[str]
    weights: Sequence[float]
    share: float
    second: float


@dataclass(frozen=True, slots=True)
class World:
    """An invented world.

    Attributes:
        people: Number of people.
        seed: Decides everything.
        edits: Records of edit files: people of their subjects' names who hold the old values are added, so that the
            files can be used with this world.
        skew: Exponent of the Zipf law over fields, places, countries and languages.
    """

    people: int
    seed: int = 0
    edits: Sequence[Case] = ()
    skew: float = SKEW


def _zipf(id: str, values: Sequence[str], skew: float, share: float, second: float) -> _Property:
    return _Property(id, values, list(accumulate(rank**-skew for rank in range(1, len(values) + 1))), share, second)


def _properties(world: World) -> tuple[_Property, ...]:
    others = [id for id in groups.table("genders") if id not in (MALE, FEMALE)]
    genders = list(accumulate((0.78, 0.21, *(0.01 / len(others) for _ in others))))
    return (
        _Property("P21", (MALE, FEMALE, *others), genders, 0.995, 0.001),
        _zipf("P27", _ranked(world, "P27"), world.skew, 0.9, 0.08),
        _zipf("P19", _ranked(world, "P19"), world.skew, 0.7, 0.0),
        _zipf("P101", _ranked(world, "P101"), world.skew, 0.35, 0.2),
        _zipf("P103", _ranked(world, "P103"), world.skew, 0.35, 0.03),
        _zipf("P106", _OCCUPATIONS, 1.0, 0.9, 0.3),
        _zipf("P172", tuple(groups.table("ethnic_groups")), 1.0, 0.15, 0.1),
    )


def _ranked(world: World, relation_id: str) -> tuple[str, ...]:
    """The values of a relation, the table's and those of edits, in an order of their own."""
    requests = [case.request for case in world.edits if case.request.relation_id == relation_id]
    edited = {str(entity.id) for request in requests for entity in (request.target_new, request.target_true)}
    values = sorted({id for id in (*groups.table(_TABLES[relation_id]), *edited) if id.startswith("Q")})
    return tuple(random.Random(f"{world.seed} {relation_id}").sample(values, len(values)))


def _name(number: int) -> str:
    """A name of its own for every number below four million: two words of two syllables."""
    parts = []
    for _ in range(4):
        number, digit = divmod(number, len(_SYLLABLES))
        parts.append(_SYLLABLES[digit])
    tail = f" {number + 1}" if number else ""
    return f"{(parts[0] + parts[1]).capitalize()} {(parts[2] + parts[3]).capitalize()}{tail}"


def _label(id: str, text: str, tag: str = "en") -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'<{entity_iri(id)}> <{_LABEL}> "{quoted}"@{tag} .\n'


def _named(number: int, rng: random.Random) -> str:
    """The label of a person: nearly always English; some only "mul", only Cyrillic, or with a disambiguator."""
    id, name, kind = f"Q{FIRST_ID + number}", _name(number), rng.random()
    if kind < 0.03:
        return _label(id, name, "mul")
    if kind < 0.05:
        return _label(id, f"Имя {number}", "ru")
    return _label(id, f"{name} (singer)" if kind < 0.055 else name)


def _held(iri: str, row: _Property, rng: random.Random) -> Iterator[str]:
    """The values of one property; rarely one that is known to exist but not what it is."""
    if rng.random() < row.share:
        count = 2 if rng.random() < row.second else 1
        for value in dict.fromkeys(rng.choices(row.values, cum_weights=row.weights, k=count)):
            yield f"<{iri}> <{_WDT}{row.id}> <{entity_iri(value)}> .\n"
    elif rng.random() < 0.002:
        yield f"<{iri}> <{_WDT}{row.id}> _:u{rng.getrandbits(48)} .\n"


def _dates(iri: str, rng: random.Random) -> Iterator[str]:
    born = rng.randint(1750, 2000)
    if rng.random() < 0.85:
        yield f'<{iri}> <{_WDT}P569> "{born}-01-01T00:00:00Z"^^<{_XSD}dateTime> .\n'
    if rng.random() < (0.95 if born < 1915 else 0.3):
        known = f'"{born + 60}-01-01T00:00:00Z"^^<{_XSD}dateTime>'
        yield f"<{iri}> <{_WDT}P570> {known if rng.random() < 0.98 else f'_:d{rng.getrandbits(48)}'} .\n"


def triples(world: World) -> Iterator[str]:
    """The world as N-Triples lines, about ten per person.

    Args:
        world: Its size, seed and edits.

    Yields:
        Lines with their ends: the names of all values, then person by person.
    """
    yield from _values(world)
    properties = _properties(world)
    rng = random.Random(f"{world.seed} people")
    for number in range(world.people):
        iri = f"{WIKIDATA}entity/Q{FIRST_ID + number}"
        yield f"<{iri}> <{_WDT}P31> <{WIKIDATA}entity/Q5> .\n"
        yield _named(number, rng)
        for row in properties:
            yield from _held(iri, row, rng)
        yield from _dates(iri, rng)
        yield f'<{iri}> <http://wikiba.se/ontology#sitelinks> "{int(rng.paretovariate(1))}"^^<{_XSD}integer> .\n'
    yield from _subjects(world)


def _values(world: World) -> Iterator[str]:
    """Names of every value: the tables', and those that only edits have; the countries of cities."""
    tables = ("genders", "countries", "cities", "fields_of_work", "languages", "ethnic_groups")
    names = {id: row["label"] for name in tables for id, row in groups.table(name).items()}
    given = (entity for case in world.edits for entity in (case.request.target_new, case.request.target_true))
    names |= {str(entity.id): entity.label for entity in given}
    yield from (_label(id, label) for id, label in sorted(names.items()) if label)
    yield from (f'<{WIKIDATA}entity/{id}> <{_LABEL}> "{row["label"]}"@en .\n' for id, row in PROPERTIES.items())
    countries = {row["label"]: id for id, row in groups.table("countries").items()}
    for id, row in groups.table("cities").items():
        if row["country"] in countries:
            yield f"<{entity_iri(id)}> <{_WDT}P17> <{entity_iri(countries[row['country']])}> .\n"


def _subjects(world: World) -> Iterator[str]:
    """A human for every subject of the edits, who holds the old values."""
    numbers: dict[str, int] = {}
    for case in world.edits:
        request = case.request
        number = numbers.setdefault(request.subject, FIRST_ID + world.people + len(numbers))
        iri = f"{WIKIDATA}entity/Q{number}"
        yield f"<{iri}> <{_WDT}P31> <{WIKIDATA}entity/Q5> .\n"
        yield f"<{iri}> <{_WDT}P21> <{WIKIDATA}entity/{FEMALE if number % 5 == 0 else MALE}> .\n"
        yield f"<{iri}> <{_WDT}{request.relation_id}> <{entity_iri(str(request.target_true.id))}> .\n"
        yield _label(f"Q{number}", request.subject)


def write_world(path: str | os.PathLike[str], world: World) -> int:
    """Writes a world as an N-Triples file, whole or not at all, and gives the number of triples."""
    count = 0
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for line in triples(world):
            file.write(line)
            count += 1
    return count
