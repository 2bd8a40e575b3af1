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
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from seesaw_cf.base.errors import RecordError, hide_secrets, need
from seesaw_cf.base.files import atomic_path, dump_json
from seesaw_cf.base.retrying import Bar, no_bars
from seesaw_cf.base.types import JsonObject
from seesaw_cf.builder_scripts.sparql import Binding, Parameter, SourceError, SourceTimeout, query, rows

BATCH = 200  # identifiers in one query
FEW = 10  # in one query, once the source did not finish a larger one

T = TypeVar("T")
Fill = Callable[[list[str]], Parameter]
logger = logging.getLogger(__name__)


def bar(steps: Sequence[T], label: str) -> Iterable[T]:
    """Wrap steps in a progress bar that shows the time left; a single step has none."""
    return Bar(steps, desc=label, disable=len(steps) < 2 or no_bars(), smoothing=0.1)


def batches(ids: Iterable[str], size: int = BATCH) -> list[list[str]]:
    """Return sorted identifiers (or names) without repeats, in lists of at most `size`."""
    ordered = sorted(set(ids))
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


class Source(Protocol):
    """Something that answers the query files."""

    identity: str  # what the answers depend on besides the query: an endpoint's URL, the contents of a file
    limited: bool = False  # ends queries that take long, as public endpoints do

    def ask(self, text: str, *, patient: bool = True) -> bytes:
        """Run a query and return the raw reply: SPARQL 1.1 results in JSON, whole and well-formed.

        Args:
            text: The query.
            patient: False where the question can be put in another way: what is not finished in time is not tried
                again.

        Raises:
            SourceTimeout: It is not finished in time.
            SourceError: The source cannot answer.
        """

    def time_of(self, text: str) -> str:
        """Return when the kept reply to a query came, as ISO 8601 in UTC; "" when none is kept."""
        return ""

    def select(self, name: str, **parameters: Parameter) -> list[Binding]:
        """Run `queries/<name>.rq`; see `ask`.

        Args:
            name: File name without ".rq".
            **parameters: What its places are filled with; see `query`.

        Returns:
            One dict per solution, in the query's order: variable -> IRI or the text of a literal. Unbound variables
            are left out; blank nodes and `GENID` IRIs (values known to exist but not what they are) start with "_:".
        """
        return rows(self.ask(query(name, parameters)))

    def try_select(self, name: str, **parameters: Parameter) -> list[Binding] | None:
        """Run `queries/<name>.rq` as `select` does; return None when the source does not finish it in time."""
        try:
            return rows(self.ask(query(name, parameters), patient=False))
        except SourceTimeout:
            return None

    def gather(
        self, name: str, place: str, values: Iterable[str], size: int = BATCH, fill: Fill = list, **places: Parameter
    ) -> Iterator[Binding]:
        """Run `queries/<name>.rq` about any number of values, in parts; after an unfinished part in smaller ones.

        Args:
            name: File name without ".rq".
            place: Its place for the values.
            values: Identifiers or names.
            size: Values in one query at most.
            fill: Makes what the place takes out of values.
            **places: The other places.

        Yields:
            Rows; "time" is that of their reply ("" when the source keeps none).

        Raises:
            SourceError: The source does not finish the query even about one value.
        """
        for batch in bar(batches(values, size), f"{place}: {name}"):
            parts = batches(batch, size)
            while parts:
                text = query(name, {place: fill(parts[0]), **places})
                smallest = len(parts[0]) == 1
                try:
                    reply = self.ask(text, patient=smallest)
                except SourceTimeout as error:
                    if smallest:
                        about = f"{self.identity} did not finish any form of the question in time"
                        raise SourceError(f"{about}; the last was about one of the {place}: {error}") from error
                    size = FEW if len(parts[0]) > FEW else 1
                    parts = batches((value for part in parts for value in part), size)
                    continue
                time = self.time_of(text)
                yield from (row | {"time": time} for row in rows(reply))
                del parts[0]


class StoreSource(Source):
    """An embedded SPARQL store: an RDF file loaded into memory, or a store folder on disk."""

    def __init__(self, place: str | os.PathLike[str]):
        """Load a file into a new store in memory, or open a folder made by `oxigraph load` read-only.

        Args:
            place: N-Triples (.nt), Turtle (.ttl) or another RDF file that the suffix names; or the folder of a store.

        Raises:
            RecordError: It cannot be read, or is not valid RDF (the text gives the place).
        """
        with need("pyoxigraph", extra="build", what_for="an embedded store"):
            import pyoxigraph as ox
        place, self._json = Path(place), ox.QueryResultsFormat.JSON
        try:
            self._store = ox.Store.read_only(str(place)) if place.is_dir() else ox.Store()
            if not place.is_dir():
                self._store.bulk_load(path=str(place))
        except (SyntaxError, ValueError, OSError) as error:
            raise RecordError(f"{place}: not valid RDF, or no store of `oxigraph load` ({error}).") from error
        self.identity = f"store:sha256:{_digest(place)}"

    def ask(self, text: str, *, patient: bool = True) -> bytes:
        """Run a query; see `Source.ask`."""
        reply: Any = self._store.query(text)
        return bytes(reply.serialize(format=self._json))


def _digest(place: Path) -> str:
    """Return a digest of a file's contents; of a store folder, of the names, sizes and times of the files with data."""
    if place.is_file():
        content = hashlib.sha256(place.read_bytes()).digest()
    else:
        files = [(file.name, file.stat()) for file in sorted(place.iterdir()) if file.suffix in {".sst", ".log"}]
        content = "".join(f"{name} {stat.st_size} {stat.st_mtime_ns}\n" for name, stat in files).encode()
    return hashlib.sha256(content).hexdigest()


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
        self.hits = self.misses = 0
        self.latest = ""  # when the last of the replies that were used came, as ISO 8601 in UTC
        self._source, self._folder, self._offline = source, Path(folder), offline

    def ask(self, text: str, *, patient: bool = True) -> bytes:
        """Return the reply out of the cache, or from the source and then kept; see `Source.ask`.

        That a query was not finished is kept too, so that no later build waits for it.

        Raises:
            SourceError: Offline and the reply is not there, or the source does not answer.
            StorageError: The reply cannot be kept (full disk); nothing half-written is left.
        """
        reply = self._kept_reply(text)
        timed_out = reply is None and not patient and "timed_out" in self._about(text)
        self.hits += timed_out or reply is not None
        if timed_out:
            raise SourceTimeout(f"{self.identity} did not finish the query in an earlier build")
        if reply is None and self._offline:
            about = f"{self._folder}: no kept reply of {self.identity} to this query, and asking is switched off"
            raise SourceError(f"{about}. Build once online. The query:\n{text}")
        if reply is None:
            self.misses += 1
            reply = self._ask_and_keep(text, patient)
        self.latest = max(self.latest, self.time_of(text))
        return reply

    def _ask_and_keep(self, text: str, patient: bool) -> bytes:
        started = time.monotonic()
        try:
            reply = self._source.ask(text, patient=patient)
        except SourceTimeout:
            if not patient:
                self._describe(text, {"timed_out": True}, started)
            raise
        with atomic_path(self._stem(text).with_suffix(".gz")) as path:
            path.write_bytes(gzip.compress(reply, compresslevel=6, mtime=0))
        self._describe(text, {"bytes": len(reply), "sha256": hashlib.sha256(reply).hexdigest()}, started)
        return reply

    def _describe(self, text: str, facts: JsonObject, started: float) -> None:
        facts |= {
            "source": hide_secrets(self.identity),
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - started, 3),
            "query": text,
        }
        dump_json(self._stem(text).with_suffix(".json"), facts, ensure_ascii=False)

    def time_of(self, text: str) -> str:
        """See `Source.time_of`."""
        return str(self._about(text).get("time", ""))

    def _stem(self, text: str) -> Path:
        """Return where the reply to a query is kept, without suffix."""
        key = hashlib.sha256(f"{self.identity}\n{text}".encode()).hexdigest()
        return self._folder / key[:2] / key

    def _about(self, text: str) -> JsonObject:
        """Return what is kept about a query; empty when nothing is."""
        try:
            return dict(json.loads(self._stem(text).with_suffix(".json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return {}

    def _kept_reply(self, text: str) -> bytes | None:
        """Return a whole reply, or None; a damaged one is reported and asked for again."""
        stem = self._stem(text)
        try:
            reply = gzip.decompress(stem.with_suffix(".gz").read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, EOFError, zlib.error):
            reply = b""
        if hashlib.sha256(reply).hexdigest() == self._about(text).get("sha256"):
            return reply
        logger.warning("%s: the kept reply is damaged; it is asked for again", stem)
        return None
