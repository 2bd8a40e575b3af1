"""Finished units of work in a folder: what a killed job keeps, and their merge into its tables.

Every protocol has the same folder: `manifest.json` describes the job, each finished unit is one Parquet
file, a shard, and what else is known of the unit is in that file's metadata, so that a unit is there whole
or not at all. Units do not depend on each other: any number of processes do them in any order, some of them twice, and
the merged tables are the same bytes.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.errors import RecordError, RunFolderError
from seesaw_cf.base.files import atomic_path, safe_name
from seesaw_cf.base.tables import PARQUET, read_table, write_table
from seesaw_cf.base.types import JsonObject
from seesaw_cf.run.manifest import RunManifest, claim_folder

log = logging.getLogger(__name__)

# Names of a unit, from the folder to the file.
Key = Sequence[str]
_FACTS, _RUN, _CRC32 = b"seesaw_cf.facts", b"seesaw_cf.run", b"seesaw_cf.crc32"
_ROWS_PER_GROUP = 250_000


class Shard(NamedTuple):
    """A finished unit: its rows, and what else is known of it."""

    table: pa.Table
    facts: dict[str, Any]


@dataclass(frozen=True)
class Store:
    """The finished units of one job, of one kind of rows.

    Attributes:
        folder: The job's folder.
        manifest: What the job is made of; every shard carries its identity.
        schema: Of the rows of a shard.
        place: The folder of the shards, below `folder`.
    """

    folder: Path
    manifest: RunManifest
    schema: pa.Schema
    place: str = "shards"
    _whole: dict[Path, tuple[int, int]] = field(default_factory=dict, init=False, compare=False)  # size and time

    @cached_property
    def _identity(self) -> str:
        return self.manifest.identity

    def claim(self) -> bool:
        """Make the folder this job's own, or check that it is; see `seesaw_cf.run.manifest.claim_folder`."""
        return claim_folder(self.folder, self.manifest)

    def path(self, key: Key) -> Path:
        """Return the file of a unit."""
        *folders, name = map(safe_name, key)
        return self.folder.joinpath(self.place, *folders, f"{name}.parquet")

    def has(self, key: Key) -> bool:
        """Return whether a unit is finished.

        A shard that is cut off is not finished, so that it is made again. Damage inside is found by `merge`: its error
        names the file to delete.

        Raises:
            RunFolderError: The shard belongs to another job.
        """
        file = self.path(key)
        try:
            status = file.stat()
            if self._whole.get(file) != (status.st_size, status.st_mtime_ns):
                self._metadata(file)
                self._whole[file] = (status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            return False
        except (pa.ArrowException, OSError, UnicodeError) as error:
            log.warning("%s is damaged and made again (%s)", file, error)
            return False
        return True

    def write(self, key: Key, table: pa.Table, **facts: object) -> None:
        """Write a finished unit.

        Args:
            key: Its names.
            table: Its rows.
            facts: What else is known of it, plain values.

        Raises:
            StorageError: The disk is full; no file is left under the shard's name.
        """
        content = json.dumps(facts).encode()
        metadata = {_FACTS: content, _RUN: self._identity, _CRC32: _crc32(content)}
        write_table(self.path(key), table.replace_schema_metadata(metadata))

    def read(self, key: Key) -> Shard:
        """Read a finished unit.

        Raises:
            RunFolderError: The shard belongs to another job.
            RecordError: It is damaged; the message names the file to delete.
            StorageError: It is not there.
        """
        file = self.path(key)
        table, metadata = read_table(file, self.schema, may_lack=()), self._metadata(file)
        content = metadata.get(_FACTS, b"{}")
        if metadata.get(_CRC32, _crc32(content)) != _crc32(content):
            raise RecordError(f"{file}: damaged metadata. Delete the file and run the same command again.")
        return Shard(table.replace_schema_metadata(None), json.loads(content))

    def merge(self, keys: Sequence[Key], name: str) -> list[dict[str, Any]]:
        """Write the rows of all units into one table, in the order of `keys`.

        Args:
            keys: Every unit of the job.
            name: Of the table in the folder.

        Returns:
            The facts of every unit.

        Raises:
            RunFolderError: A unit is missing, or its shard belongs to another job.
            RecordError: A shard is damaged.
            StorageError: The disk is full.
        """
        missing = [key for key in keys if not self.path(key).exists()]
        if missing:
            raise RunFolderError(
                f"{self.folder}: {len(missing)} of {len(keys)} units are not finished, first {missing[0]}. "
                "Run the same command again to finish them."
            )
        facts, held = list[JsonObject](), list[pa.Table]()
        with atomic_path(self.folder / name) as file, pq.ParquetWriter(file, self.schema, **PARQUET) as writer:
            for key in keys:
                shard = self.read(key)
                facts.append(shard.facts)
                held.append(shard.table)
                if key is keys[-1] or sum(table.num_rows for table in held) >= _ROWS_PER_GROUP:
                    writer.write_table(pa.concat_tables(held))
                    held.clear()
        return facts

    def _metadata(self, file: Path) -> Mapping[bytes, bytes]:
        metadata: Mapping[bytes, bytes] = pq.read_schema(file).metadata or {}
        run = metadata.get(_RUN, b"").decode(errors="replace")
        if run != self._identity:
            raise RunFolderError(
                f"{file} was written by another run (it carries the identity {run[:12] or 'of none'}, this run is "
                f"{self._identity[:12]}). Delete that file and run the same command again; use one folder for each run."
            )
        return metadata


def _crc32(content: bytes) -> bytes:
    return f"{zlib.crc32(content):08x}".encode()
