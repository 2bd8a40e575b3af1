"""A cache of raw replies: a build that was killed goes on without asking twice, and can be replayed offline.

Every reply is one gzip file named after the SHA-256 of the source's identity and the query; a JSON file beside it keeps
query, source, time and the reply's digest. The JSON file is written last: without it there is no reply.
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
from pathlib import Path

from seesaw_cf.builder_scripts.source.sources import Source, SourceError
from seesaw_cf.io.files import atomic_path, write_text

__all__ = ["CachedSource"]

logger = logging.getLogger(__name__)


class CachedSource(Source):
    """A source whose replies are kept on disk and asked for once."""

    def __init__(self, source: Source, folder: str | os.PathLike[str], *, offline: bool = False):
        """Puts a cache in front of a source.

        Args:
            source: Who is asked when a reply is not there.
            folder: Where replies are kept; several sources can share it.
            offline: Never ask; a reply that is not there is an error.
        """
        self.identity = source.identity
        self.offline = offline
        self.hits = self.misses = 0
        self._source = source
        self._folder = Path(folder)

    def ask(self, text: str) -> bytes:
        """The reply out of the cache, or from the source and then kept.

        Raises:
            SourceError: Offline and the reply is not there, or the source does not answer.
            StorageError: The reply cannot be kept (full disk); nothing half-written is left.
        """
        key = hashlib.sha256(f"{self.identity}\n{text}".encode()).hexdigest()
        stem = self._folder / key[:2] / key
        reply = self._kept(stem)
        if reply is not None:
            self.hits += 1
            return reply
        if self.offline:
            raise SourceError(
                f"{self._folder}: no kept reply of {self.identity} to this query, and asking is switched off. Build "
                f"once online with the same options, or point to the cache of that build. The query:\n{text}"
            )
        self.misses += 1
        started = time.monotonic()
        reply = self._source.ask(text)
        self._keep(stem, text, reply, time.monotonic() - started)
        return reply

    def _kept(self, stem: Path) -> bytes | None:
        """A whole reply, or None; a damaged one is reported and asked for again."""
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

    def _keep(self, stem: Path, text: str, reply: bytes, seconds: float) -> None:
        with atomic_path(stem.with_suffix(".gz")) as path:
            path.write_bytes(gzip.compress(reply, compresslevel=6, mtime=0))
        facts = {
            "source": self.identity,
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "seconds": round(seconds, 3),
            "bytes": len(reply),
            "sha256": hashlib.sha256(reply).hexdigest(),
            "query": text,
        }
        write_text(stem.with_suffix(".json"), json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
