"""Finished files of a run that machines without a common file system exchange, in a folder of any fsspec URL.

Every machine has its own copy of what it needs. What it has finished it sends; what another one has finished it fetches
in place of making it. Files are the same bytes whoever makes them, so that sending one twice does no harm.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import fsspec
from fsspec import AbstractFileSystem

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError, SeesawError, StorageError
from seesaw_cf.base.files import atomic_path

log = logging.getLogger(__name__)

_FRESH = 10.0
"""Seconds for which a listing stands: with 100,000 files, to ask for each of them would take most of an hour."""


@dataclass
class Exchange:
    """A folder that machines send finished files to and fetch them from.

    Attributes:
        url: Of the folder, such as "s3://bucket/run" or a path; credentials are those of the environment.

    Raises:
        RecordError: No such kind of storage, its package is not installed, or the URL has a password.
    """

    url: str
    _storage: AbstractFileSystem = field(init=False, repr=False)
    _root: str = field(init=False, repr=False)
    _listed_names: set[str] = field(default_factory=set, init=False, repr=False)
    _listed: float = field(default=float("-inf"), init=False, repr=False)

    def __post_init__(self) -> None:
        if urlsplit(self.url).password is not None:
            raise RecordError("--exchange: the URL has a password. Leave it out and give it in the environment.")
        try:
            self._storage, self._root = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise RecordError(
                f"--exchange: got {shown(self.url)}, expected a folder or a URL that fsspec can open ({error})."
            ) from error

    def has(self, name: str) -> bool:
        """Return whether somebody had sent a file when the folder was last listed, at most ten seconds ago."""
        return name in self._names()

    def fetch(self, name: str, file: Path) -> bool:
        """Copy a file from there, whole or not at all; False where nobody had sent it, see `has`.

        Raises:
            StorageError: The storage does not answer, or the file cannot be written here.
        """
        if not self.has(name):
            return False
        with self._explained(f"fetch {name}"), atomic_path(file) as copy:
            self._storage.get_file(f"{self._root}/{name}", str(copy))
        log.debug("%s: fetched", name)
        return True

    def send(self, name: str, file: Path) -> None:
        """Copy a file there, whole or not at all.

        Raises:
            StorageError: The storage does not answer, or refuses the file.
        """
        target = f"{self._root}/{name}"
        part = f"{target}.{uuid4().hex}.tmp"
        with self._explained(f"send {name}"):
            self._storage.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._storage.put_file(str(file), part)
            self._storage.mv(part, target)
        self._listed_names.add(name)

    def _names(self) -> set[str]:
        """Return the names of the files there."""
        if time.monotonic() - self._listed > _FRESH:
            with self._explained("list"):
                self._storage.invalidate_cache()
                found = self._storage.find(self._root)
            start = len(self._root.rstrip("/")) + 1
            self._listed_names, self._listed = {name[start:] for name in found}, time.monotonic()
        return self._listed_names

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except SeesawError:
            raise
        except Exception as error:  # of as many kinds as there are storages
            raise StorageError(
                f"--exchange {self.url}: cannot {what} ({type(error).__name__}: {error}). Check the address, the "
                "rights and the network, then repeat the command: what is finished is kept."
            ) from error
