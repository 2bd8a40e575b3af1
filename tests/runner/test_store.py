"""Finished units in a folder: kept, merged in order, refused when of another job, made again when damaged."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.base.tables import read_table
from seesaw_cf.errors import RecordError, RunFolderError, StorageError
from seesaw_cf.run.manifest import RunManifest
from seesaw_cf.run.store import Key, Store
from tests.runner import claimer

SCHEMA = pa.schema([("unit", pa.string()), ("value", pa.float64())])
KEYS: list[Key] = [("a", "1"), ("a", "2"), ("b", "1"), ("c",)]


def store(folder: Path, **changes: Any) -> Store:
    return Store(folder, claimer.manifest(**changes), SCHEMA)


def do(kept: Store, key: Key) -> None:
    rng = random.Random("/".join(key))
    values = [rng.random() for _ in range(rng.randrange(4))]
    kept.write(key, pa.table({"unit": ["/".join(key)] * len(values), "value": values}, SCHEMA), n=len(values))


def finish(kept: Store, keys: Sequence[Key] = KEYS) -> bytes:
    kept.claim()
    for key in keys:
        if not kept.has(key):
            do(kept, key)
    facts = kept.merge(keys, "all.parquet")
    assert pq.read_metadata(kept.folder / "all.parquet").num_rows == sum(unit["n"] for unit in facts)
    return (kept.folder / "all.parquet").read_bytes()


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(done=st.lists(st.sampled_from(KEYS), unique=True), damaged=st.integers(0, 3), cut=st.integers(0, 300))
def test_whatever_was_done_or_damaged_the_table_is_the_same_bytes(done: list[Key], damaged: int, cut: int) -> None:
    with TemporaryDirectory() as name:
        whole = finish(store(Path(name) / "whole"))
        broken = store(Path(name) / "broken")
        broken.claim()
        for key in done:
            do(broken, key)
        for key in done[:damaged]:
            broken.path(key).write_bytes(broken.path(key).read_bytes()[:cut])
            assert not broken.has(key)
        assert finish(broken) == whole


def test_several_at_once_leave_the_bytes_of_one(tmp_path: Path) -> None:
    whole = finish(store(tmp_path / "whole"))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: finish(store(tmp_path / "many")), range(8)))
    assert set(found) == {whole}
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_unit_keeps_its_rows_and_facts(tmp_path: Path) -> None:
    kept = store(tmp_path)
    table = pa.table({"unit": ["x"], "value": [0.5]}, SCHEMA)
    kept.write(("a", "odd/name: 1"), table, status="ok", edits=[{"n": 1}])
    assert kept.path(("a", "odd/name: 1")).parent == tmp_path / "shards" / "a"
    found = kept.read(("a", "odd/name: 1"))
    assert (found.table, found.facts) == (table, {"status": "ok", "edits": [{"n": 1}]})
    with pytest.raises(StorageError, match="no such file"):
        kept.read(("a", "other"))


def test_units_of_another_job_and_missing_ones_are_refused(tmp_path: Path) -> None:
    mine, other = store(tmp_path / "run"), store(tmp_path / "other", seed=1)
    finish(mine)
    do(other, KEYS[0])
    with pytest.raises(RunFolderError, match=r"(?s)belongs to another run:.*seed.*the folder has 0, this run 1"):
        store(tmp_path / "run", seed=1).claim()
    mine.path(KEYS[0]).write_bytes(other.path(KEYS[0]).read_bytes())
    for ask in (mine.has, mine.read, lambda key: mine.merge([key], "all.parquet")):
        with pytest.raises(RunFolderError, match=r"1\.parquet was written by another run .*Delete that file"):
            ask(KEYS[0])
    mine.path(KEYS[0]).unlink()
    with pytest.raises(RunFolderError, match=r"1 of 4 units are not finished, first \('a', '1'\)"):
        mine.merge(KEYS, "all.parquet")
    mine.path(KEYS[0]).write_bytes(b"PAR1 not really")
    with pytest.raises(RecordError, match=r"1\.parquet: not a whole Parquet file.*Delete it"):
        mine.merge(KEYS, "all.parquet")


def test_a_flipped_bit_never_reads_as_another_number(tmp_path: Path) -> None:
    kept = store(tmp_path)
    finish(kept)
    shard, table = kept.path(KEYS[0]), tmp_path / "all.parquet"
    readers: list[tuple[Path, Callable[[], object]]] = [
        (shard, lambda: kept.read(KEYS[0])),
        (table, lambda: read_table(table, SCHEMA)),
    ]
    for file, read in readers:
        bits, rows = file.read_bytes(), read()
        pages = range(4, len(bits) - int.from_bytes(bits[-8:-4], "little") - 8, 11)
        for place in [*pages, *(match.end() for match in re.finditer(rb'"n": ', bits))]:
            file.write_bytes(bits[:place] + bytes([bits[place] ^ 1]) + bits[place + 1 :])
            try:
                assert read() == rows, place
            except RecordError as error:
                assert re.search(rf"(?s){re.escape(str(file))}.*Delete", str(error))  # noqa: PT017 - or the same rows
        file.write_bytes(bits)


@pytest.mark.parametrize("protocol", ["single", "dose", "leme", "stereotype graph"])
def test_settings_of_every_protocol_are_part_of_the_identity(tmp_path: Path, protocol: str) -> None:
    def manifest(**protocol_settings: object) -> RunManifest:
        return claimer.manifest(protocol=protocol, settings={"depth": {"n": 1}, **protocol_settings})

    Store(tmp_path, manifest(), SCHEMA).claim()
    assert Store(tmp_path, manifest(), SCHEMA).claim()
    assert manifest().identity != manifest(more=2).identity
    differences = (
        r"(?s)settings\.depth: the folder has .'n': 1., this run 3\n.*settings\.more: the folder has None, this"
    )
    with pytest.raises(RunFolderError, match=differences):
        Store(tmp_path, manifest(depth=3, more=2), SCHEMA).claim()
