"""Where facts come from: one interface for an endpoint and an embedded store, and a cache of replies before both.

Every reply of the cache is one gzip file named after the SHA-256 of the source's identity and the query. A JSON file
with it keeps query, source, time and the reply's digest. The JSON file is written last: without it no reply exists. Of
a query that the source did not finish in time, and that was then asked in another way, there is only the JSON file.
"""

from __future__ import annotations

import datetime
import gzip
import hashlib
import json
import logging
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Protocol, TypeVar

from seesaw_cf.base.errors import RecordError, StorageError, hide_secrets, need
from seesaw_cf.base.files import atomic_path, dump_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.builder_scripts.sparql import Binding, Parameter, SourceError, SourceTimeout, query, rows

BATCH = 200  # identifiers in one query
FEW = 10  # in one query, once the source did not finish a larger one

T = TypeVar("T")
logger = logging.getLogger(__name__)


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

    identity: str  # what the answers depend on besides the query: an endpoint's URL, the contents of a file
    limited: bool = False  # ends queries that take long, as public endpoints do

    def ask(self, text: str) -> bytes:
        """Run a query and return the raw reply: SPARQL 1.1 results in JSON, whole and well-formed."""

    def within_time(self, text: str) -> bytes | None:
        """Return what `ask` does, for a query that can be put in another way; None when it is not finished in time."""
        try:
            return self.ask(text)
        except SourceTimeout:
            return None

    def time_of(self, text: str) -> str:
        """Return when the kept reply to a query came, as ISO 8601 in UTC; "" when none is kept."""
        return ""

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

    def try_select(self, name: str, **parameters: Parameter) -> list[Binding] | None:
        """Run `queries/<name>.rq` as `select` does; return None when the source does not finish it in time."""
        reply = self.within_time(query(name, parameters))
        return None if reply is None else rows(reply)

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


def _store_module() -> ModuleType:
    with need("pyoxigraph", extra="build", what_for="an embedded store"):
        import pyoxigraph
    return pyoxigraph


class StoreSource(Source):
    """An embedded SPARQL store: an RDF file loaded into memory, or a store folder on disk."""

    def __init__(self, place: str | os.PathLike[str]):
        """Load a file into a new store in memory, or open a folder made by `oxigraph load` read-only.

        Args:
            place: N-Triples (.nt), Turtle (.ttl) or another RDF file that the suffix names; or the folder of a store.

        Raises:
            StorageError: It cannot be read.
            RecordError: The file is not valid RDF (the text gives the place).
        """
        place, ox = Path(place), _store_module()
        try:
            self._store = ox.Store.read_only(str(place)) if place.is_dir() else ox.Store()
            if not place.is_dir():
                self._store.bulk_load(path=str(place))
        except (SyntaxError, ValueError) as error:
            raise RecordError(
                f"{place}: not valid RDF ({error}). Take the file again if it was cut off, or correct the line."
            ) from error
        except OSError as error:
            raise StorageError(
                f"{place}: no readable RDF file or store ({error}). Check the path; make a store with `oxigraph load`."
            ) from error
        self.identity = f"store:sha256:{_digest(place)}"

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


def _digest(place: Path) -> str:
    """Return a digest of a file's contents; of a store folder, of its files' names, sizes and times."""
    digest = hashlib.sha256()
    if place.is_file():
        digest.update(hashlib.sha256(place.read_bytes()).digest())
    for file in sorted(place.iterdir()) if place.is_dir() else ():
        status = file.stat()
        if file.suffix in {".sst", ".log"}:  # the data; other files change when a store is only opened
            digest.update(f"{file.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


class CachedSource(Source):
    """A source that keeps replies on disk and asks for each once: a killed build goes on, and can be replayed."""

    def __init__(self, source: Source, folder: str | os.PathLike[str], *, offline: bool = False):
        """Put a cache in front of a source.

        Args:
            source: Who is asked when a reply is not there.
            folder: Where replies are kept; several sources can share it.
            offline: Never ask; a reply that is not there is an error.
        """
        self.identity, self.limited = source.identity, source.limited
        self.offline = offline
        self.hits = self.misses = 0
        self.latest = ""  # when the last of the replies that were used came, as ISO 8601 in UTC
        self._source = source
        self._folder = Path(folder)

    def ask(self, text: str) -> bytes:
        """Return the reply out of the cache, or from the source and then kept.

        Raises:
            SourceError: Offline and the reply is not there, or the source does not answer.
            StorageError: The reply cannot be kept (full disk); nothing half-written is left.
        """
        reply = self._reply(text, self._source.ask)
        assert reply is not None
        return reply

    def within_time(self, text: str) -> bytes | None:
        """See `Source.within_time`; that a query was not finished is kept too, so that no later build waits for it.

        Raises:
            SourceError, StorageError: As `ask`.
        """
        if self._description(text).get("timed_out"):
            self.hits += 1
            return None
        return self._reply(text, self._source.within_time)

    def _reply(self, text: str, ask: Callable[[str], bytes | None]) -> bytes | None:
        stem = self._stem(text)
        reply = _read_reply(stem)
        if reply is not None:
            self.hits += 1
        elif self.offline:
            raise SourceError(
                f"{self._folder}: no kept reply of {self.identity} to this query, and asking is switched off. Build "
                f"once online with the same options, or point to the cache of that build. The query:\n{text}"
            )
        else:
            self.misses += 1
            started = time.monotonic()
            reply = ask(text)
            self._keep(stem, text, reply, time.monotonic() - started)
        self.latest = max(self.latest, self.time_of(text))
        return reply

    def time_of(self, text: str) -> str:
        """See `Source.time_of`."""
        return str(self._description(text).get("time", ""))

    def _description(self, text: str) -> JsonObject:
        """Return the record kept with the reply to a query; empty when there is none."""
        try:
            return dict(json.loads(self._stem(text).with_suffix(".json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return {}

    def _stem(self, text: str) -> Path:
        """Return where the reply to a query is kept, without suffix."""
        key = hashlib.sha256(f"{self.identity}\n{text}".encode()).hexdigest()
        return self._folder / key[:2] / key

    def _keep(self, stem: Path, text: str, reply: bytes | None, seconds: float) -> None:
        facts: JsonObject = {"timed_out": True}
        if reply is not None:
            with atomic_path(stem.with_suffix(".gz")) as path:
                path.write_bytes(gzip.compress(reply, compresslevel=6, mtime=0))
            facts = {"bytes": len(reply), "sha256": hashlib.sha256(reply).hexdigest()}
        facts |= {
            "source": hide_secrets(self.identity),
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "seconds": round(seconds, 3),
            "query": text,
        }
        dump_json(stem.with_suffix(".json"), facts, ensure_ascii=False)


def _read_reply(stem: Path) -> bytes | None:
    """Return a whole reply, or None; a damaged one is reported and asked for again."""
    try:
        facts = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
        reply = gzip.decompress(stem.with_suffix(".gz").read_bytes())
        written = facts["sha256"]
    except FileNotFoundError:
        return None
    except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error) as error:
        logger.warning("%s: the kept reply is damaged (%s); it is asked for again", stem, error)
        return None
    if hashlib.sha256(reply).hexdigest() != written:
        logger.warning("%s: the kept reply is not what was written; it is asked for again", stem)
        return None
    return reply
