"""Query files and their places, and what a reply holds: rows, identifiers, people with their tags.

Queries are the `.rq` files in `queries/`; `{{name}}` marks a place for a parameter. Parameters are numbers, language
tags and identifiers, each checked against a pattern. Names that are looked up are quoted literals in which no escape
can form. No other text from data ever becomes part of a query.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seesaw_cf.base.errors import RecordError, SeesawError
from seesaw_cf.base.types import AttributePrompt, Entity
from seesaw_cf.records import groups

QUERIES = Path(__file__).parent / "queries"
WIKIDATA = "http://www.wikidata.org/"
GENID = f"{WIKIDATA}.well-known/genid/"  # IRIs of values that are known to exist but not what they are
OWN = "https://seesaw-cf.github.io/entity/"  # names for entities whose QID is not certain

MALE, FEMALE = "Q6581097", "Q6581072"
TAGS = ("gender", "race", "region", "living", "sitelinks")
OLDEST_LIVING = 1915  # who was born before and has no date of death is not taken to be alive
SITELINKS = "http://wikiba.se/ontology#sitelinks"
NOT_VALUES = ("P31", "P569", "P570", SITELINKS)  # read otherwise

Binding = dict[str, str]
Parameter = int | str | Sequence[str]

_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")
_LANGUAGE = r"[a-z]{2,8}(-[a-z0-9]{1,8})*"
# Prefix of the IRI -> short identifiers below it (P as the direct property).
_SHORT = {f"{WIKIDATA}entity/": re.compile(r"Q[1-9][0-9]*"), f"{WIKIDATA}prop/direct/": re.compile(r"P[1-9][0-9]*")}
_YEAR = re.compile(r"[+-]?\d+")
_IRI = re.compile(r"https?://[^\x00-\x20<>\"{}|^`\\]+")  # SPARQL 1.1 IRIREF, http(s) only
# Place -> pattern of its text, which stands in the query as it is; "g" is above every hash.
_PLAIN = {
    **dict.fromkeys(("seed", "limit", "offset"), r"[0-9]+"),
    **dict.fromkeys(("first", "last"), r"[0-9a-f]{4}|g"),
    "language": _LANGUAGE,
}


class SourceError(SeesawError, ConnectionError):
    """A source of facts does not answer, refuses a query, or answers with something else than results."""


class SourceTimeout(SourceError):
    """A source did not finish a query in time; a smaller one may be answered."""


def entity_iri(id: str) -> str:
    """Return the IRI of an identifier: "Q42" and "P27" are Wikidata's (P as the direct property), IRIs are themselves.

    Raises:
        RecordError: Not an identifier; nothing else may enter a query.
    """
    if not is_identifier(id):
        raise RecordError(f"{id!r} is not an identifier: expected a QID, a property such as 'P27' or an http(s) IRI.")
    return next((prefix + id for prefix, short in _SHORT.items() if short.fullmatch(id)), id)


def is_identifier(id: str) -> bool:
    """Return whether `entity_iri` takes a text: not the address of a mailbox, which Wikidata gives as an IRI too."""
    return any(pattern.fullmatch(id) for pattern in (*_SHORT.values(), _IRI))


def entity_id(iri: str) -> str:
    """Return the short identifier of an IRI: Wikidata's entities and properties lose their prefix, other IRIs stay."""
    rests = (iri.removeprefix(prefix) for prefix in _SHORT if iri.startswith(prefix))
    return next((rest for rest in rests if any(short.fullmatch(rest) for short in _SHORT.values())), iri)


def is_name(label: str) -> bool:
    """Return whether a name can be looked up: without a backslash no escape can form and end its literal."""
    return bool(label.strip()) and label.isprintable() and "\\" not in label


def _fill(place: str, value: Parameter) -> str:
    """Return what a parameter becomes in a query.

    Raises:
        RecordError: It is not what its place takes.
    """
    if pattern := _PLAIN.get(place):
        if not re.fullmatch(pattern, str(value)):
            raise RecordError(f"query parameter {place!r}: got {value!r}, expected a text like {pattern}.")
        return str(value)
    values = value if isinstance(value, Sequence) and not isinstance(value, str) else [str(value)]
    if place == "names":
        return " ".join(map(_literal, values))
    ids = [f"<{entity_iri(id)}>" for id in values]
    if place == "held" and len(ids) != 1:
        return f"?value . VALUES ?value {{ {' '.join(ids)} }}" if ids else "?value"
    return (", " if place == "listed" else " ").join(ids)


def _literal(name: str) -> str:
    label, _, tag = name.rpartition("@")
    if not is_name(label) or not re.fullmatch(_LANGUAGE, tag):
        raise RecordError(f"query parameter 'names': got {name!r}, expected a printable label without backslash@tag.")
    quoted = label.replace('"', '\\"')
    return f'"{quoted}"@{tag}'


def query(name: str, parameters: Mapping[str, Parameter]) -> str:
    """Read a query file and fill its places.

    Args:
        name: File name without ".rq".
        parameters: One value per place: whole numbers for seed, limit and offset, a language tag for language,
            "label@tag" texts for names, beginnings of hashes for first and last, identifiers (one, or a sequence) for
            everything else ("listed" with commas, "held" none for any).

    Raises:
        RecordError: A parameter is not what its place takes.
    """
    text = (QUERIES / f"{name}.rq").read_text(encoding="utf-8")
    return _PLACE.sub(lambda match: _fill(match[1], parameters[match[1]]), text)


def rows(reply: bytes) -> list[Binding]:
    """Return the solutions of a raw reply, as `Source.select` gives them.

    Raises:
        SourceError: Not whole JSON, or not SPARQL results.
    """
    try:
        bindings = json.loads(reply)["results"]["bindings"]
        return [{name: _text(term) for name, term in solution.items()} for solution in bindings]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        ends = f"it begins {reply[:80]!r} and ends {reply[-40:]!r}"
        raise SourceError(f"the reply is not a whole SPARQL result ({error!r}); {ends}") from error


def _text(term: Mapping[str, str]) -> str:
    """Return the text of an IRI or a literal; a blank node, or what stands for one, with "_:" in front."""
    unknown = term["type"] == "bnode" or term["value"].startswith(GENID)
    return f"_:{term['value']}" if unknown else term["value"]


@dataclass(frozen=True, slots=True)
class RecordedPerson:
    """What a source records about one person.

    Attributes:
        entity: Identifier and label.
        values: Property -> identifiers, sorted; properties without a usable value are left out.
        gender, race, region: Group tags; see `seesaw_cf.records.groups`.
        living: False with a recorded death (date known or not), True without one when born in 1915 or later, else None.
        sitelinks: Number of Wikipedia and sister pages, None when the source does not say.
    """

    entity: Entity
    values: Mapping[str, tuple[str, ...]]
    gender: tuple[str, ...] = ()
    race: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    living: bool | None = None
    sitelinks: int | None = None

    @property
    def id(self) -> str:
        """The identifier; "" for a person known by name only."""
        return self.entity.id or ""

    def holds(self, relation_id: str) -> tuple[str, ...]:
        """Return the values of one property, sorted; none is an empty tuple."""
        return self.values.get(relation_id, ())

    def is_of(self, gender: str) -> bool:
        """Return whether the person is of a gender, or of none of the two when it is ""."""
        recorded = set(self.holds("P21"))
        return gender in recorded if gender else bool(recorded) and recorded.isdisjoint((MALE, FEMALE))


def tags_of(row: RecordedPerson | AttributePrompt) -> dict[str, Any]:
    """Return all tags of a person: name of `TAGS` -> value."""
    return {tag: getattr(row, tag) for tag in TAGS}


def known_tags(row: RecordedPerson | AttributePrompt) -> dict[str, Any]:
    """Return the tags that are known of a person: name -> value."""
    return {tag: value for tag, value in tags_of(row).items() if value not in ((), None)}


def _living(rows: Mapping[str, Sequence[str]]) -> bool | None:
    if rows.get("P570"):
        return False
    years = [int(match[0]) for date in rows.get("P569", ()) if (match := _YEAR.match(date))]
    return True if years and min(years) >= OLDEST_LIVING else None


def by_person(rows: Iterable[Binding]) -> dict[str, dict[str, list[str]]]:
    """Return the answer to `queries/facts.rq` as person -> property -> values, for people with recorded facts."""
    people: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        values = people.setdefault(entity_id(row["person"]), {}).setdefault(entity_id(row["property"]), [])
        values.append(entity_id(row["value"]))
    return people


def person_of(entity: Entity, rows: Mapping[str, Sequence[str]]) -> RecordedPerson:
    """Return a person with the tags that recorded facts give; `rows`: property -> values, as in `by_person`."""
    recorded = {
        name: tuple(sorted({value for value in values if value[:2] != "_:"}))
        for name, values in rows.items()
        if name not in NOT_VALUES
    }
    sitelinks = rows.get(SITELINKS)
    return RecordedPerson(
        entity,
        {name: cells for name, cells in recorded.items() if cells},
        groups.gender_tags(recorded.get("P21", ())),
        *groups.tags(recorded.get("P172", ())),
        living=_living(rows),
        sitelinks=int(sitelinks[0]) if sitelinks else None,
    )
