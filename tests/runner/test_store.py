"""Finished units in a folder: kept, merged in order, shared by processes, made again when damaged."""

import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.base.tables import read_table
from seesaw_cf.errors import RecordError, RunFolderError, StorageError
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.manifest import RunManifest, claim_folder
from seesaw_cf.run.store import Key, Store
from tests import fresh
from tests.conftest import ROOT
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


@pytest.mark.slow
def test_of_several_processes_one_claims_a_folder_and_the_others_join(tmp_path: Path) -> None:
    rounds = 100
    command = [sys.executable, "-m", "tests.runner.claimer", str(tmp_path), str(rounds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(command, **pipes) for _ in range(3)]  # type: ignore[call-overload]
    try:
        assert [worker.stdout.readline() for worker in workers] == ["ready\n"] * 3
        for _ in range(rounds):
            for worker in workers:
                worker.stdin.write("\n")
                worker.stdin.flush()
            assert Counter(worker.stdout.readline() for worker in workers) == {"claimed\n": 1, "joined\n": 2}
    finally:
        for worker in workers:
            worker.stdin.close()
            worker.wait(timeout=60)
            worker.stdout.close()


@pytest.mark.slow(60)
@pytest.mark.exhaustive
def test_two_runs_started_together_end_with_the_same_bytes(tmp_path: Path) -> None:
    options = "--data sample --config cross_subject --editor ft --limit 2 --threads 1 --control none --keep-deltas"
    command = [sys.executable, "-m", "seesaw_cf", "audit", "seesaw-tiny", *options.split(), "--quiet", "--out"]

    def start(out: str, cache: str) -> subprocess.Popen[str]:
        env = {**os.environ, "SEESAW_CF_CACHE": str(tmp_path / cache)}
        return subprocess.Popen([*command, str(tmp_path / out)], env=env, stderr=subprocess.PIPE, text=True)

    both = [start("both", "shared"), start("both", "shared")]
    said = [process.communicate(timeout=600)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    alone = start("alone", "own")
    said.append(alone.communicate(timeout=600)[1])
    assert alone.returncode == 0, said
    for table in ("scores.parquet", "edits.parquet"):
        assert (tmp_path / "both" / table).read_bytes() == (tmp_path / "alone" / table).read_bytes()


@pytest.fixture
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
@pytest.mark.usefixtures("_threads")
def test_threads_are_set_and_are_part_of_the_runs_identity(tmp_path: Path) -> None:
    job: dict[str, Any] = {"model": "seesaw-tiny", "editors": ("ft",), "limit": 1, "device": "cpu", "data": "sample"}
    two = make_run(Job(**job, threads=2), tmp_path).manifest
    assert torch.get_num_threads() == 2
    assert make_run(Job(**job), tmp_path).manifest.identity == two.identity  # torch still has two
    one = make_run(Job(**job, threads=1), tmp_path).manifest
    assert torch.get_num_threads() == 1
    assert one.identity != two.identity
    claim_folder(tmp_path / "run", two)
    with pytest.raises(RunFolderError) as caught:
        claim_folder(tmp_path / "run", one)
    assert ("scoring.threads: the folder has 2, this run 1 (give --threads N to both)") in str(caught.value)


def _run(out: Path, threads: int, *engine: str) -> None:
    """A run as from a shell that says nothing about threads, with nothing cached by another one."""
    env = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    options = ["audit", "seesaw-tiny", "--control", "none", "--device", "cpu", "--editor", "memit", "--limit", "2",
               "--block", "1", "--config", "cross_subject"]  # fmt: skip
    options += [*engine, "--quiet", "--threads", str(threads), "--out", str(out)]
    env |= {"OMP_WAIT_POLICY": "PASSIVE", "SEESAW_CF_CACHE": f"{out}.cache"}  # threads that wait do not spin
    fresh.python("-m", "seesaw_cf", *options, cwd=ROOT, env=env)


@pytest.mark.slow(40)
@pytest.mark.exhaustive
@pytest.mark.parametrize("threads", [1, 2])
def test_ray_and_a_local_run_with_the_same_threads_write_the_same_bytes(tmp_path: Path, threads: int) -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    _run(tmp_path / "alone", threads)
    _run(tmp_path / "shared", threads, "--engine", "ray")
    for table in ("scores.parquet", "edits.parquet"):
        assert (tmp_path / "alone" / table).read_bytes() == (tmp_path / "shared" / table).read_bytes()
