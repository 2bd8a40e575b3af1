"""Which shards are whole: a run of 100,000 units opens none of them to know what is left to do."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class Finished:
    """An index of shards that were written, or opened and found whole, with their sizes and the times of their changes.

    Any number of processes add lines to the file. One that a kill cuts off, or that is lost, costs no more than opening
    that shard again.
    """

    def __init__(self, file: Path) -> None:
        """Take the index in a file, which need not exist; shards are below its folder."""
        self.file, self._lines, self._end = file, set[str](), 0

    def has(self, shard: Path) -> bool:
        """Return whether a shard is in the index and has not changed since.

        Raises:
            FileNotFoundError: It is not there.
        """
        line = self._line(shard)
        if line not in self._lines:
            self._read_more()
        return line in self._lines

    def add(self, shard: Path) -> None:
        """Add a shard that is whole."""
        with suppress(OSError), self.file.open("a", encoding="utf-8") as stream:
            stream.write(self._line(shard) + "\n")

    def _line(self, shard: Path) -> str:
        found, name = shard.stat(), os.fspath(shard).removeprefix(os.fspath(self.file.parent))
        return f"{name}\t{found.st_size}\t{found.st_mtime_ns}"

    def _read_more(self) -> None:
        """Read the whole lines that have been added since the last time."""
        with suppress(OSError), self.file.open("rb") as stream:
            stream.seek(self._end)
            added = stream.read()
            size = added.rfind(b"\n") + 1
            self._lines.update(added[:size].decode(errors="replace").splitlines())
            self._end += size
