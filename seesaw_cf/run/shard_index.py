"""Which shards are whole: a run of 100,000 units opens none of them to know what is left to do."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class ShardIndex:
    """An index of shards that were written, or opened and found whole, with their sizes and the times of their changes.

    Any number of processes add lines to the file. One that a kill cuts off, or that is lost, costs no more than opening
    that shard again.
    """

    def __init__(self, file: Path) -> None:
        """Take the index in a file, which need not exist; shards are below its folder."""
        self.file, self._lines, self._end = file, set[str](), 0

    def entry(self, shard: Path) -> str:
        """Return the line of a shard as it is now.

        Raises:
            FileNotFoundError: It is not there.
        """
        found, name = shard.stat(), os.fspath(shard).removeprefix(os.fspath(self.file.parent))
        return f"{name}\t{found.st_size}\t{found.st_mtime_ns}"

    def has(self, entry: str) -> bool:
        """Return whether a shard is in the index and has not changed since."""
        if entry not in self._lines:
            self._read_more()
        return entry in self._lines

    def add(self, entry: str) -> None:
        """Add a shard that is whole; an index that cannot be written stays as it is."""
        with suppress(OSError), self.file.open("a", encoding="utf-8") as stream:
            stream.write(entry + "\n")

    def _read_more(self) -> None:
        """Read the whole lines that have been added since the last time; all of them where the index is shorter now."""
        with suppress(OSError), self.file.open("rb") as stream:
            start = self._end if self._end <= stream.seek(0, os.SEEK_END) else 0
            stream.seek(start)
            added = stream.read()
            size = added.rfind(b"\n") + 1
            self._lines.update(added[:size].decode(errors="replace").splitlines())
            self._end = start + size
