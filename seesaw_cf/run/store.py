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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seesaw_cf.base.errors import EditError, RecordError, RunFolderError
from seesaw_cf.base.files import atomic_path, safe_name
from seesaw_cf.base.system import ahead
from seesaw_cf.base.tables import PARQUET, read_table, write_table
from seesaw_cf.base.types import JsonObject, TableRow
from seesaw_cf.effects.answers import LEAST_LOCAL, knowledge, locality
from seesaw_cf.effects.success import edit_numbers
from seesaw_cf.run.manifest import RunManifest, claim_folder
from seesaw_cf.stats.simple import above, tolerance

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

    def read(self, key: Key, form: str = "") -> Shard:
        """Read a finished unit.

        Args:
            key: Its names.
            form: Only rows of this form; "" = all rows.

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
        table = table.replace_schema_metadata(None)
        return Shard(table.filter(pc.field("form") == form) if form else table, json.loads(content))

    def merge(
        self, keys: Sequence[Key], name: str, form: str = "", read: Callable[[Key, Shard], None] | None = None
    ) -> list[dict[str, Any]]:
        """Write the rows of all units into one table, in the order of `keys`.

        Args:
            keys: Every unit of the job.
            name: Of the table in the folder.
            form: Only rows of this form; "" = all rows.
            read: Called with each unit that was read.

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
            for shard in ahead(self._shards(keys, form, read)):
                facts.append(shard.facts)
                held.append(shard.table)
                if len(facts) == len(keys) or sum(table.num_rows for table in held) >= _ROWS_PER_GROUP:
                    writer.write_table(pa.concat_tables(held))
                    held.clear()
        return facts

    def _shards(self, keys: Sequence[Key], form: str, read: Callable[[Key, Shard], None] | None) -> Iterator[Shard]:
        for key in keys:
            shard = self.read(key, form)
            if read is not None:
                read(key, shard)
            yield shard

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


# `edits.parquet`: what became of every edit of a run, and whether the first ones spoil the model.

ASKED_ONLY = "asked only"
"""Status of a case that no model is known to be edited for, so that no efficacy is claimed."""
MADE = ("ok", "zero delta", ASKED_ONLY)
"""Statuses of cases that were scored after the edit; an edit of any other status was not made."""

# logprobs: nats of the edit's own prompt. raised: p(target_new) rose. success: p(target_new) > p(target_true) after;
# both by more than the run's noise, see `seesaw_cf.stats.simple`. candidates: answers scored before the edit, the
# true target first, candidates_pre their logprobs; then `seesaw_cf.effects.answers.knowledge` of them.
# form: how it was asked.
EDITS: pa.Schema = pa.schema(
    [
        ("editor", pa.string()),
        ("case_id", pa.int64()),
        *(
            (name, pa.string())
            for name in ("relation_id", "effect_relation_id", "subject", "target_true", "target_new")
        ),
        ("status", pa.string()),
        *((name, pa.float64()) for name in ("delta_norm", "new_pre", "true_pre", "new_post", "true_post")),
        ("raised", pa.bool_()),
        ("success", pa.bool_()),
        ("candidates", pa.list_(pa.string())),
        ("candidates_pre", pa.list_(pa.float64())),
        ("n_candidates", pa.int32()),
        ("true_rank", pa.int32()),
        ("true_share", pa.float64()),
        ("known", pa.bool_()),
        ("form", pa.string()),
    ]
)


def write_edits(file: Path, rows: Iterable[TableRow], nats: float = 0.0, schema: pa.Schema = EDITS) -> None:
    """Write the table.

    Args:
        file: Where to.
        rows: Of `EDITS`, without what is decided here: whether the edit raised its target and succeeded, and whether
            its fact was known before.
        nats: Differences up to this are rounding, see `seesaw_cf.stats.simple`; such an edit did neither.
        schema: `EDITS` and what else the rows have.

    Raises:
        StorageError: The disk is full.
    """
    write_table(file, pa.Table.from_pylist([_judged(row, nats) for row in rows], schema))


def _judged(row: dict[str, Any], nats: float) -> TableRow:
    """Return the row with `raised`, `success` (None where a side was not scored) and what was known before the edit."""
    for name, first, second in (("raised", "new_post", "new_pre"), ("success", "new_post", "true_post")):
        left, other = row.get(first), row.get(second)
        row[name] = None if left is None or other is None else bool(above(left, other, nats))
    if not (names := row.get("candidates")):  # no true target
        return row
    logprobs = np.array(row["candidates_pre"], dtype=np.float64)
    return {**row, **knowledge(logprobs, np.array(names) == row["target_true"], nats)}


def check_first_edits(store: Store, keys: Sequence[Key], first: int, ignore_damage: bool) -> None:
    """Stop a run when an editor spoils, by its first edits, what the model knew of other facts.

    Args:
        store: The finished units.
        keys: Of all units of the editor.
        first: How many of them are looked at, when all of these are finished.
        ignore_damage: Warn instead, as is done when no edit of the editor is left to make.

    Raises:
        EditError: See above; what is finished is kept.
    """
    if not all(map(store.has, keys[:first])):
        return
    form = store.manifest.settings.get("forms", ["plain"])[0]
    editor, (tables, facts) = keys[0][0], zip(*(store.read(key, form) for key in keys[:first]), strict=True)
    single = store.manifest.protocol == "single"
    numbers = edit_numbers(pd.DataFrame([row for unit in facts for row in unit["edits"]])) if single else None
    nats, _ = tolerance(asdict(store.manifest))
    counts = locality(pa.concat_tables(tables), numbers, nats).get(editor)
    if counts is None or not counts.collapsed:
        return
    text = f"{editor}: its first {counts.local.n} edits spoil what the model knew of others: {counts}"
    if ignore_damage or all(map(store.has, keys)):
        log.warning("%s.", text)
        return
    raise EditError(
        f"{text}, expected an upper end of at least {LEAST_LOCAL:.0%}. Make smaller steps (learning_rate, clamp or "
        "max_change in --editor-config), take another editor, or repeat the command with "
        "--ignore-damage. What is finished is kept."
    )
