"""Several workers write the tables of one, byte for byte, also when some of them die."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.errors import RunFolderError, UnknownNameError
from seesaw_cf.run.jobs import Workers
from seesaw_cf.run.units import work_order
from seesaw_cf.run.workers import rank_and_world, run_share
from tests.conftest import ROOT
from tests.scoring.shared_run import make, same_tables


@pytest.mark.slow
def test_shares_done_in_turn_give_the_tables_of_one_process(alone: Path, tmp_path: Path) -> None:
    runs = [make(tmp_path / "run") for _ in range(3)]
    for run, tasks in zip(runs, ([0, 4], [3], [2, 1])):
        for number in tasks:
            run.do(run.tasks[number])
    (tmp_path / "run" / "manifest.json").write_text((alone / "manifest.json").read_text())
    assert run_share(runs[0], 0, 3)
    assert not run_share(runs[1], 1, 3)
    same_tables(alone, tmp_path / "run")


def test_the_last_worker_does_what_a_lost_one_left(alone: Path, tmp_path: Path) -> None:
    assert run_share(make(tmp_path / "run"), 0, 4)  # workers 1 to 3 never come
    same_tables(alone, tmp_path / "run")


@pytest.mark.slow
def test_shards_of_another_run_are_found_out(alone: Path, tmp_path: Path) -> None:
    run_share(make(tmp_path / "other", seed=1), 0, 1)
    shard = "shards/nudge/P21-00000001.parquet"
    run = make(tmp_path / "run")
    run_share(run, 0, 1)
    (tmp_path / "run" / shard).write_bytes((tmp_path / "other" / shard).read_bytes())
    with pytest.raises(RunFolderError, match=r"P21-00000001.parquet was written by another run .*Delete that file"):
        run.merge()
    (tmp_path / "run" / shard).unlink()
    assert run_share(make(tmp_path / "run"), 0, 1)
    same_tables(alone, tmp_path / "run")


def test_two_runs_cannot_use_one_folder(tmp_path: Path) -> None:
    run_share(make(tmp_path / "run"), 0, 1)
    with pytest.raises(RunFolderError, match=r"(?s)belongs to another run:.*seed.*the folder has 0, this run 1"):
        run_share(make(tmp_path / "run", seed=1), 1, 2)


@pytest.mark.slow
def test_a_worker_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = r"worker 1 waited 0 s for the first worker to write manifest.json"
    failures = iter(["", "", "out of memory"])
    with pytest.raises(RunFolderError, match=waited):
        run_share(make(tmp_path / "run"), 1, 2, lambda: next(failures))
    assert not list(failures)
    monkeypatch.setattr("seesaw_cf.run.workers._PATIENCE", 0.3)
    with pytest.raises(RunFolderError, match=waited):
        run_share(make(tmp_path / "run"), 1, 2)


@pytest.mark.parametrize(("first_failed", "seconds"), [(None, 600), (lambda: False, 3600)])
def test_a_worker_waits_longer_where_it_would_hear_of_a_failure(
    first_failed: Callable[[], object] | None, seconds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def sleep(_: float) -> None:
        now[0] += 100

    monkeypatch.setattr("seesaw_cf.run.workers.time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    with pytest.raises(RunFolderError, match=rf"worker 1 waited {seconds + 100} s for the first worker"):
        run_share(make(tmp_path / "run"), 1, 2, first_failed)


@given(tasks=st.sets(st.integers(0, 60)), world=st.integers(1, 9))
def test_every_worker_begins_with_its_own_tasks_and_ends_with_all(tasks: set[int], world: int) -> None:
    orders = [work_order(tasks, rank, world) for rank in range(world)]
    for rank, order in enumerate(orders):
        own = [number for number in sorted(tasks) if number % world == rank]
        assert order[: len(own)] == own
        assert sorted(order) == sorted(tasks)


def test_those_who_help_seldom_do_the_same() -> None:
    """Of eight workers one is dead: in steps of one task each, hardly more is done than there is."""
    orders, done, started = [iter(work_order(range(800), rank, 8)) for rank in range(1, 8)], set[int](), 0
    while len(done) < 800:
        now = [next((number for number in order if number not in done), None) for order in orders]
        done.update(number for number in now if number is not None)
        started += len(now) - now.count(None)
    assert started < 850


@given(spans=st.lists(st.integers(0, 4), min_size=1, max_size=40), world=st.integers(1, 4))
def test_whoever_helps_goes_span_by_span(spans: list[int], world: int) -> None:
    tasks = range(len(spans))
    for rank in range(world):
        order = work_order(tasks, rank, world, spans)
        helped = [spans[number] for number in order[len(tasks[rank::world]) :]]
        assert sorted(order) == [*tasks]
        assert order[: len(tasks[rank::world])] == [*tasks[rank::world]]
        assert len([*itertools.groupby(helped)]) == len({*helped})


def test_rank_and_world(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rank_and_world() == (0, 1)
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert rank_and_world() == (3, 4)
    with pytest.raises(UnknownNameError, match=r"unknown engine 'rai'. Did you mean 'ray'"):
        Workers(engine="rai")


def _torchrun(out: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", *options]
    return subprocess.run(
        [*command, "-m", "tests.scoring.shared_run", str(out)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.mark.slow(40)
@pytest.mark.exhaustive
def test_torchrun_with_two_processes(alone: Path, tmp_path: Path) -> None:
    done = _torchrun(tmp_path / "run")
    assert done.returncode == 0, done.stderr
    same_tables(alone, tmp_path / "run")


@pytest.mark.slow(40)
def test_torchrun_with_a_worker_killed_in_the_middle_of_a_shard(alone: Path, tmp_path: Path) -> None:
    dies = {"SEESAW_TEST_DIES": str(tmp_path / "died"), "SEESAW_TEST_RANK": "1"}
    killed = _torchrun(tmp_path / "run", **dies)
    assert (tmp_path / "died").exists()
    assert killed.returncode != 0
    again = _torchrun(tmp_path / "run", **dies)
    assert again.returncode == 0, again.stderr
    same_tables(alone, tmp_path / "run")


@pytest.mark.slow(40)
@pytest.mark.exhaustive
def test_torchrun_restarts_by_itself(alone: Path, tmp_path: Path) -> None:
    dies = {"SEESAW_TEST_DIES": str(tmp_path / "died"), "SEESAW_TEST_RANK": "0"}
    done = _torchrun(tmp_path / "run", "--max-restarts", "1", **dies)
    assert (tmp_path / "died").exists()
    assert done.returncode == 0, done.stderr
    same_tables(alone, tmp_path / "run")
