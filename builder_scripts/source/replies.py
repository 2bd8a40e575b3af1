"""A cache of raw replies: a build that was killed goes on without asking twice, and can be replayed offline.

Every reply is one gzip file named after the SHA-256 of the source's identity and the query. A JSON file with it keeps
query, source, time and the reply's digest. The JSON file is written last: without it no reply exists. Of a query that
the source did not finish in time, and that was then asked in another way, there is only the JSON file.
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
from collections.abc import Callable
from pathlib import Path

from seesaw_cf.base.files import atomic_path, dump_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.base.urls import hide_secrets
from seesaw_cf.builder_scripts.source.sources import Source, SourceError

logger = logging.getLogger(__name__)


class CachedSource(Source):
    """A source that keeps replies on disk and asks for each once."""

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
        if self._described(text).get("timed_out"):
            self.hits += 1
            return None
        return self._reply(text, self._source.within_time)

    def _reply(self, text: str, ask: Callable[[str], bytes | None]) -> bytes | None:
        stem = self._stem(text)
        reply = self._cached(stem)
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
        return str(self._described(text).get("time", ""))

    def _described(self, text: str) -> JsonObject:
        """Return the record kept with the reply to a query; empty when there is none."""
        try:
            return dict(json.loads(self._stem(text).with_suffix(".json").read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return {}

    def _stem(self, text: str) -> Path:
        """Return where the reply to a query is kept, without suffix."""
        key = hashlib.sha256(f"{self.identity}\n{text}".encode()).hexdigest()
        return self._folder / key[:2] / key

    def _cached(self, stem: Path) -> bytes | None:
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
