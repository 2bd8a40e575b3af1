"""Where facts come from: one interface, the same query files for every source.

Queries are the `.rq` files in `queries/`; `{{name}}` marks a place for a parameter. Parameters are numbers, language
tags and identifiers, each checked against a pattern. Names that are looked up are quoted literals in which no escape
can form. No other text from data ever becomes part of a query.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Protocol, TypeVar

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, SeesawError, StorageError, need

QUERIES = Path(__file__).parents[1] / "queries"
WIKIDATA = "http://www.wikidata.org/"
GENID = f"{WIKIDATA}.well-known/genid/"  # IRIs of values that are known to exist but not what they are
OWN = "https://seesaw-cf.github.io/entity/"  # names for entities whose QID is not certain

BATCH = 200  # identifiers in one query
FEW = 10  # in one query, once the source did not finish a larger one

T = TypeVar("T")
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


class Progress(Protocol):
    """Show how far a long list of queries is."""

    def __call__(self, steps: Sequence[T], what: str, /) -> Iterable[T]:
        """Pass `steps` through, one after the other; `what` names the steps."""


def silent(steps: Sequence[T], _: str) -> Iterable[T]:
    """Return a progress that shows nothing."""
    return steps


def batches(ids: Iterable[str], size: int = BATCH) -> list[list[str]]:
    """Return sorted identifiers (or names) without repeats, in lists of at most `size`."""
    ordered = sorted(set(ids))
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


class Source(Protocol):
    """Something that answers the query files."""

    identity: str  # what the answers depend on besides the query: an endpoint's URL, the contents of files
    limited: bool = False  # ends queries that take long, as public endpoints do

    def ask(self, text: str) -> bytes:
        """Run a query and return the raw reply: SPARQL 1.1 results in JSON, whole and well-formed."""

    def within_time(self, text: str) -> bytes | None:
        """Return what `ask` does, for a query that can be put in another way; None when it is not finished in time."""
        try:
            return self.ask(text)
        except SourceTimeout:
            return None

    def select(self, name: str, **parameters: Parameter) -> list[Binding]:
        """Run `queries/<name>.rq`.

        Args:
            name: File name without ".rq".
            **parameters: What its places are filled with; see `query`.

        Returns:
            One dict per solution, in the query's order: variable -> IRI or the text of a literal. Unbound variables
            are left out; blank nodes and `GENID` IRIs (values known to exist but not what they are) start with "_:".

        Raises:
            SeesawError: A parameter is not usable, or the source cannot answer.
        """
        return rows(self.ask(query(name, parameters)))

    def gather(
        self,
        name: str,
        place: str,
        values: Iterable[str],
        parameters: Mapping[str, Parameter] = {},
        *,
        size: int = BATCH,
        fill: Callable[[list[str]], Parameter] = list,
        progress: Progress = silent,
        label: str = "",
    ) -> Iterator[tuple[Binding, str]]:
        """Run `queries/<name>.rq` about any number of values, in parts; after an unfinished part in smaller ones.

        Args:
            name: File name without ".rq".
            place: Its place for the values.
            values: Identifiers or names.
            parameters: The other places.
            size: Values in one query at most.
            fill: Makes what the place takes out of values.
            progress: Shows how far the parts are.
            label: What the parts are, for `progress`.

        Yields:
            Rows, each with the time of its reply ("" when the source keeps none).

        Raises:
            SourceError: The source does not finish the query even about one value.
        """
        for batch in progress(batches(values, size), label or name):
            parts = batches(batch, size)
            while parts:
                text = query(name, {place: fill(parts[0]), **parameters})
                reply = self._smallest(text, place) if len(parts[0]) == 1 else self.within_time(text)
                if reply is None:
                    size = FEW if len(parts[0]) > FEW else 1
                    parts = batches((value for part in parts for value in part), size)
                    continue
                time = self.time_of(text)
                yield from ((row, time) for row in rows(reply))
                del parts[0]

    def _smallest(self, text: str, place: str) -> bytes:
        """Return the reply to a query that cannot be made smaller."""
        try:
            return self.ask(text)
        except SourceTimeout as error:
            raise SourceError(
                f"{self.identity} did not finish any form of the question in time; the last was about one of the "
                f"{place} and needs no search: {error}"
            ) from error

    def time_of(self, text: str) -> str:
        """Return when the kept reply to a query came, as ISO 8601 in UTC; "" when none is kept."""
        return ""

    def try_select(self, name: str, **parameters: Parameter) -> list[Binding] | None:
        """Run `queries/<name>.rq` as `select` does; return None when the source does not finish it in time."""
        reply = self.within_time(query(name, parameters))
        return None if reply is None else rows(reply)


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


def _check_of(fits: Callable[[Parameter], object], expected: str) -> Callable[[str, Parameter], str]:
    """Return a function that gives a parameter unchanged, or raises where it does not fit."""

    def check(name: str, value: Parameter) -> str:
        if not fits(value):
            raise RecordError(f"query parameter {name!r}: got {value!r}, expected {expected}.")
        return str(value)

    return check


_number = _check_of(lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number")
_language = _check_of(
    lambda value: isinstance(value, str) and _LANGUAGE.fullmatch(value), "a language tag such as 'en' or 'pt-br'"
)
_hash = _check_of(lambda value: isinstance(value, str) and _HASH.fullmatch(value), "four hexadecimal digits, or 'g'")


def _identifiers(name: str, value: Parameter) -> str:
    if isinstance(value, int):
        raise RecordError(f"query parameter {name!r}: got {value!r}, expected one or more identifiers.")
    return " ".join(f"<{entity_iri(id)}>" for id in ([value] if isinstance(value, str) else value))


def _names(name: str, value: Parameter) -> str:
    """Return the literals of labels to look up, given as "label@tag".

    Without a backslash no escape can form, so a quote cannot end the literal.
    """
    literals = []
    for text in [value] if isinstance(value, (str, int)) else value:
        label, at, tag = str(text).rpartition("@")
        if not at or not label.isprintable() or "\\" in label or not label.strip():
            raise RecordError(
                f"query parameter {name!r}: got {text!r}, expected a label without control characters and backslashes, "
                "'@' and a language tag."
            )
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


_KINDS = {
    "seed": _number,
    "limit": _number,
    "offset": _number,
    "language": _language,
    "names": _names,
    "listed": _listed,
    "held": _held,
    "first": _hash,
    "last": _hash,
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


def _store_module() -> ModuleType:
    with need("pyoxigraph", extra="build", what_for="an embedded store"):
        import pyoxigraph
    return pyoxigraph


class StoreSource(Source):
    """An embedded SPARQL store: files loaded into memory, or a store folder on disk."""

    def __init__(self, files: Iterable[str | os.PathLike[str]] = (), *, store: str | os.PathLike[str] | None = None):
        """Load files into a new store in memory, or open a folder made by `oxigraph load` read-only.

        Args:
            files: N-Triples (.nt), Turtle (.ttl) or other RDF files that the suffix names.
            store: Folder of an existing store; then `files` must be empty.

        Raises:
            StorageError: A file or the store cannot be read.
            RecordError: A file is not valid RDF (the text gives the place), or files and a store were given.
        """
        listed = [Path(file) for file in files]
        if listed and store is not None:
            raise RecordError(
                f"{listed[0]} and {store}: files and a store folder were given, expected one of them. Load the files "
                "into the store with `oxigraph load`, or leave one out."
            )
        ox = _store_module()
        try:
            self._store = ox.Store() if store is None else ox.Store.read_only(str(store))
        except OSError as error:
            raise StorageError(f"{store}: no readable store ({error}). Make one with `oxigraph load`.") from error
        for file in listed:
            try:
                self._store.bulk_load(path=str(file))
            except (SyntaxError, ValueError) as error:
                raise RecordError(
                    f"{file}: not valid RDF ({error}). Take the file again if it was cut off, correct the line, or "
                    "leave the file out."
                ) from error
            except OSError as error:
                raise StorageError(f"{file}: cannot be read ({error}). Check the path.") from error
        self.identity = _identity(listed, store)

    def ask(self, text: str) -> bytes:
        """Run a query; see `Source.ask`.

        Raises:
            SourceError: The query is not valid SPARQL.
        """
        try:
            reply = self._store.query(text).serialize(format=_store_module().QueryResultsFormat.JSON)
        except SyntaxError as error:
            raise SourceError(f"the store refused a query ({error}). Correct the .rq file:\n{text}") from error
        return bytes(reply)


def _identity(files: Sequence[Path], store: str | os.PathLike[str] | None) -> str:
    """Return a digest of the files' contents; of a store folder, of its files' names, sizes and times."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    for file in sorted(Path(store).iterdir()) if store is not None else ():
        status = file.stat()
        if file.suffix in {".sst", ".log"}:  # the data; other files change when a store is only opened
            digest.update(f"{file.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return f"store:sha256:{digest.hexdigest()}"
