"""Query files and their places, identifiers, and what a reply holds.

Queries are the `.rq` files in `queries/`; `{{name}}` marks a place for a parameter. Parameters are numbers, language
tags and identifiers, each checked against a pattern. Names that are looked up are quoted literals in which no escape
can form. No other text from data ever becomes part of a query.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, SeesawError

QUERIES = Path(__file__).parent / "queries"
WIKIDATA = "http://www.wikidata.org/"
GENID = f"{WIKIDATA}.well-known/genid/"  # IRIs of values that are known to exist but not what they are
OWN = "https://seesaw-cf.github.io/entity/"  # names for entities whose QID is not certain

Binding = dict[str, str]
Parameter = int | str | Sequence[str]

_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")
_LANGUAGE = re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,8})*")
_QID = re.compile(r"Q[1-9][0-9]*")
_PID = re.compile(r"P[1-9][0-9]*")
_HASH = re.compile(r"[0-9a-f]{4}|g")  # "g" is above every hash
_IRI = re.compile(r"https?://[^\x00-\x20<>\"{}|^`\\]+")  # SPARQL 1.1 IRIREF, http(s) only


class SourceError(SeesawError, ConnectionError):
    """A source of facts does not answer, refuses a query, or answers with something else than results."""


class SourceTimeout(SourceError):
    """A source did not finish a query in time; a smaller one may be answered."""


def entity_iri(id: str) -> str:
    """Return the IRI of an identifier: "Q42" and "P27" are Wikidata's (P as the direct property), IRIs are themselves.

    Raises:
        RecordError: Not an identifier; nothing else may enter a query.
    """
    if _QID.fullmatch(id):
        return f"{WIKIDATA}entity/{id}"
    if _PID.fullmatch(id):
        return f"{WIKIDATA}prop/direct/{id}"
    if _IRI.fullmatch(id):
        return id
    raise RecordError(
        f"{id!r} is not an identifier: expected a QID such as 'Q42', a property such as 'P27' or an http(s) IRI. "
        "Correct it where it comes from; labels cannot be used in its place."
    )


def is_identifier(id: str) -> bool:
    """Return whether `entity_iri` takes a text: not the address of a mailbox, which Wikidata gives as an IRI too."""
    return any(pattern.fullmatch(id) for pattern in (_QID, _PID, _IRI))


def entity_id(iri: str) -> str:
    """Return the short identifier of an IRI: Wikidata's entities and properties lose their prefix, other IRIs stay."""
    for prefix in (f"{WIKIDATA}entity/", f"{WIKIDATA}prop/direct/"):
        rest = iri.removeprefix(prefix)
        if rest != iri and (_QID.fullmatch(rest) or _PID.fullmatch(rest)):
            return rest
    return iri


def _wrong(name: str, value: object, expected: str) -> RecordError:
    return RecordError(f"query parameter {name!r}: got {value!r}, expected {expected}.")


def _number(name: str, value: Parameter) -> str:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(name, value, "a whole number")
    return str(value)


def _language(name: str, value: Parameter) -> str:
    if not isinstance(value, str) or not _LANGUAGE.fullmatch(value):
        raise _wrong(name, value, "a language tag such as 'en' or 'pt-br'")
    return value


def _hash(name: str, value: Parameter) -> str:
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise _wrong(name, value, "four hexadecimal digits, or 'g'")
    return value


def _identifiers(name: str, value: Parameter) -> str:
    if isinstance(value, int):
        raise _wrong(name, value, "one or more identifiers")
    return " ".join(f"<{entity_iri(id)}>" for id in ([value] if isinstance(value, str) else value))


def _names(name: str, value: Parameter) -> str:
    """Return the literals of labels to look up, given as "label@tag".

    Without a backslash no escape can form, so a quote cannot end the literal.
    """
    literals = []
    for text in [value] if isinstance(value, (str, int)) else value:
        label, at, tag = str(text).rpartition("@")
        if not at or not label.isprintable() or "\\" in label or not label.strip():
            expected = "a label without control characters and backslashes, '@' and a language tag"
            raise _wrong(name, text, expected)
        quoted = label.replace('"', '\\"')
        literals.append(f'"{quoted}"@{_language(name, tag)}')
    return " ".join(literals)


def _held(name: str, value: Parameter) -> str:
    """Return what is held: one identifier, one of several, or anything."""
    ids = _identifiers(name, value)
    if ids.count("<") == 1:
        return ids
    return f"?value . VALUES ?value {{ {ids} }}" if ids else "?value"


def _listed(name: str, value: Parameter) -> str:
    """Return identifiers with commas, as IN(...) takes them."""
    return _identifiers(name, value).replace("> <", ">, <")


_KINDS: Mapping[str, Callable[[str, Parameter], str]] = {
    **dict.fromkeys(("seed", "limit", "offset"), _number),
    **dict.fromkeys(("first", "last"), _hash),
    "language": _language,
    "names": _names,
    "listed": _listed,
    "held": _held,
}


def query(name: str, parameters: Mapping[str, Parameter]) -> str:
    """Read a query file and fill its places.

    Args:
        name: File name without ".rq".
        parameters: One value per place: whole numbers for seed, limit and offset, a language tag for language,
            "label@tag" texts for names, beginnings of hashes for first and last, identifiers (one, or a sequence) for
            everything else ("listed" with commas, "held" none for any).

    Returns:
        The query text.

    Raises:
        UnknownNameError: The file does not exist.
        RecordError: A parameter is missing, is not asked for, or is not what its place takes.
    """
    files = {file.stem: file for file in QUERIES.glob("*.rq")}
    one_of("query", name, files)
    text = files[name].read_text(encoding="utf-8")
    places = set(_PLACE.findall(text))
    if places != set(parameters):
        raise RecordError(
            f"query {name!r}: got parameters {sorted(parameters)}, expected exactly {sorted(places)}. Pass those."
        )
    filled = {place: _KINDS.get(place, _identifiers)(place, parameters[place]) for place in places}
    return _PLACE.sub(lambda match: filled[match[1]], text)


def rows(reply: bytes) -> list[Binding]:
    """Return the solutions of a raw reply, as `Source.select` gives them.

    Raises:
        SourceError: Not whole JSON, or not SPARQL results.
    """
    try:
        bindings = json.loads(reply)["results"]["bindings"]
        solutions = [{name: _text(term) for name, term in solution.items()} for solution in bindings]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(
            f"the reply is not a whole SPARQL result in JSON ({type(error).__name__}: {error}); it begins "
            f"{reply[:80]!r} and ends {reply[-40:]!r}. Ask again; check that the address is a SPARQL endpoint."
        ) from error
    return solutions


def _text(term: Mapping[str, str]) -> str:
    """Return the text of an IRI or a literal; a blank node, or what stands for one, with "_:" in front."""
    unknown = term["type"] == "bnode" or term["value"].startswith(GENID)
    return f"_:{term['value']}" if unknown else term["value"]
