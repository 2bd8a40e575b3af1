"""Machines without a common file system or cache do one run's work once, and write the tables of one process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from seesaw_cf.base.exchange import Exchange
from seesaw_cf.errors import RecordError, RunFolderError, StorageError
from seesaw_cf.run.runner import Run
from seesaw_cf.run.units import Task
from seesaw_cf.run.workers import run_share
from tests.scoring.shared_run import make, same_tables


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys of the first units of the tasks that are done here, in their order."""
    keys: list[str] = []
    do = Run.do

    def noted(run: Run, task: Task) -> None:
        keys.append(task.units[0].key)
        do(run, task)

    monkeypatch.setattr(Run, "do", noted)
    return keys


def _machine(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The run on a machine of its own: its cache and its run folder are nobody else's."""
    monkeypatch.setenv("SEESAW_CF_CACHE", str(folder / "cache"))
    return replace(make(folder / "run"), exchange=Exchange(url))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_two_machines_do_each_task_once(
    scheme: str, alone: Path, tmp_path: Path, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{scheme}{tmp_path / 'exchange'}"
    first = _machine(tmp_path / "a", url, monkeypatch)
    first.store.claim()
    second = _machine(tmp_path / "b", url, monkeypatch)
    assert not run_share(second, 1, 2)  # the first one is away: it does all
    assert len(done) == len(second.tasks)
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "a" / "cache"))
    again = "what the second machine has scored is scored again"
    monkeypatch.setattr(type(first.scorer), "score", lambda *_: pytest.fail(again))
    monkeypatch.setattr("seesaw_cf.base.exchange._FRESH", 0.0)
    assert run_share(first, 0, 2)
    assert len(done) == len(second.tasks)
    same_tables(alone, tmp_path / "a" / "run")
    assert not [file for file in (tmp_path / "exchange").rglob("*") if file.name.endswith(".tmp")]


@pytest.mark.slow
def test_a_machine_that_starts_later_goes_on_where_a_dead_one_stopped(
    alone: Path, tmp_path: Path, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = _machine(tmp_path / "dead", str(tmp_path / "exchange"), monkeypatch)
    dead.store.claim()
    for task in dead.tasks[:2]:
        dead.do(task)
    later = _machine(tmp_path / "later", str(tmp_path / "exchange"), monkeypatch)
    assert run_share(later, 0, 1)
    assert sorted(done) == sorted(task.units[0].key for task in later.tasks)
    same_tables(alone, tmp_path / "later" / "run")


@pytest.mark.slow
def test_a_damaged_file_is_made_and_sent_again(
    alone: Path, tmp_path: Path, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _machine(tmp_path / "a", str(tmp_path / "exchange"), monkeypatch)
    assert run_share(first, 0, 1)
    shard = next((tmp_path / "exchange" / "shards").rglob("*.parquet"))
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-9])
    done.clear()
    assert run_share(_machine(tmp_path / "b", str(tmp_path / "exchange"), monkeypatch), 0, 1)
    assert len(done) == 1
    assert shard.read_bytes() == whole
    same_tables(alone, tmp_path / "b" / "run")


def test_a_worker_waits_for_the_first_one_of_another_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _machine(tmp_path / "b", str(tmp_path / "exchange"), monkeypatch)
    assert not run.store.claimed()
    _machine(tmp_path / "a", str(tmp_path / "exchange"), monkeypatch).store.claim()
    monkeypatch.setattr("seesaw_cf.base.exchange._FRESH", 0.0)
    assert run.store.claimed()
    assert run.store.claim()


@pytest.mark.slow
def test_a_run_that_was_begun_alone_may_go_on_with_others(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = make(tmp_path / "a" / "run")
    begun.store.claim()
    begun.do(begun.tasks[0])
    assert run_share(_machine(tmp_path / "a", str(tmp_path / "exchange"), monkeypatch), 0, 2)
    other = _machine(tmp_path / "b", str(tmp_path / "exchange"), monkeypatch)
    assert not any(map(other.is_open, other.tasks)), "what one machine had finished alone is there for the others"
    assert not run_share(other, 1, 2)
    same_tables(alone, tmp_path / "a" / "run")


def test_the_exchange_of_another_run_leaves_nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Exchange(str(tmp_path / "exchange")).send("manifest.json", _manifest_of_another_run(tmp_path))
    run = _machine(tmp_path / "a", str(tmp_path / "exchange"), monkeypatch)
    with pytest.raises(RunFolderError, match=r"^--exchange: another run is there, choose another place\."):
        run.store.claim()
    assert not (tmp_path / "a" / "run" / "manifest.json").exists()
    _machine(tmp_path / "a", str(tmp_path / "other"), monkeypatch).store.claim()


def _manifest_of_another_run(folder: Path) -> Path:
    run = make(folder / "another")
    replace(run.store, manifest=replace(run.manifest, seed=run.manifest.seed + 1)).claim()
    return folder / "another" / "manifest.json"


def test_a_network_that_fails_is_no_damaged_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _machine(tmp_path / "a", str(tmp_path / "exchange"), monkeypatch)

    def fails(*_: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(type(run.exchange._storage), "find", fails)  # type: ignore[union-attr]
    with pytest.raises(StorageError, match="no route to host"):
        run.is_open(run.tasks[0])


@pytest.mark.slow
def test_machines_that_do_not_know_each_other_begin_with_other_tasks(
    tmp_path: Path, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = []
    for host in ("one", "two"):
        monkeypatch.setattr("seesaw_cf.run.runner.gethostname", lambda host=host: host)
        done.clear()
        assert run_share(_machine(tmp_path / host, str(tmp_path / f"exchange-{host}"), monkeypatch), 0, 1)
        orders.append(list(done))
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s4://bucket/run", r"--exchange: got 's4://bucket/run', expected a folder or a URL that fsspec can open .*s4"),
        ("ftp://me:secret@host/run", r"--exchange: the URL has a password. Leave it out"),
    ],
)
def test_a_place_that_cannot_be_used(url: str, message: str) -> None:
    with pytest.raises(RecordError, match=message) as caught:
        Exchange(url)
    assert "secret" not in str(caught.value)


def test_a_place_that_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / "exchange").write_text("a file")
    (tmp_path / "table").write_text("rows")
    with pytest.raises(
        StorageError, match=r"--exchange .*exchange: cannot send shards/table .*what is finished is kept"
    ):
        Exchange(str(tmp_path / "exchange")).send("shards/table", tmp_path / "table")
