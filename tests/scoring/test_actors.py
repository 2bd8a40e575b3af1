"""How many actors are started, and what becomes of a run when some are lost, on a cluster that is made up."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.errors import RunFolderError, ServiceError
from seesaw_cf.run.workers import _Worker, run_on_ray
from tests.scoring.fake_ray import FakeRay, FakeRun, OutOfMemoryError, RayActorError, RayTaskError, Reference

FOLDER = Path("folder")  # the driver sees a manifest.json in it
DEAD = RayActorError("The actor died.\n\tclass: _Worker")


def making(run: FakeRun) -> Any:
    """What `run_on_ray` is given: a function that makes the run."""
    return lambda: run


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    """One node with two CPUs."""
    return _cluster(monkeypatch, FakeRay([{"CPU": 2.0}]))


def _cluster(monkeypatch: pytest.MonkeyPatch, ray: FakeRay) -> FakeRay:
    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda path: path == FOLDER / "manifest.json" or exists(path))
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.exceptions", ray.exceptions)
    return ray


@pytest.mark.parametrize(
    ("nodes", "cpus", "gpus", "count"),
    [
        ([{"CPU": 2.0}], 1, 0.0, 2),
        ([{"CPU": 2.0}, {"CPU": 1.0}], 1, None, 3),
        ([{"CPU": 9.0}, {"CPU": 3.0}], 4, None, 2),
        ([{"CPU": 16.0, "GPU": 1.0}], 1, 0.1, 10),
        ([{"CPU": 4.0, "GPU": 8.0}], 1, 1.0, 4),
        ([{"CPU": 4.0, "GPU": 3.0}], 1, None, 3),
        ([{"CPU": 4.0}, {"CPU": 4.0, "GPU": 3.0}, {}], 1, 2.0, 1),
    ],
)
def test_as_many_actors_as_the_nodes_have_place_for(
    nodes: list[dict[str, float]], cpus: int, gpus: float | None, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray, run = _cluster(monkeypatch, FakeRay(nodes)), FakeRun(range(20))
    run_on_ray(making(run), FOLDER, cpus=cpus, gpus=gpus, progress=False)
    assert len(ray.started) == count
    assert sorted(run.done) == list(range(20))
    assert run.merged == 1


def test_an_actor_claims_the_folder_where_it_lives_once() -> None:
    run, claims = FakeRun(range(6)), list[int]()
    run.store.claim = lambda: claims.append(len(run.done))
    worker = _Worker(making(run))
    worker.do(3)
    worker.do(4)
    assert claims == [0], "before its first task, whoever asked for the open ones"


def test_a_folder_that_the_driver_does_not_see_is_refused(ray: FakeRay, tmp_path: Path) -> None:
    """The actors write to the disks of their nodes."""
    run = FakeRun(range(3))
    with pytest.raises(RunFolderError, match=r"the workers write to another disk. Choose an --out that all nodes"):
        run_on_ray(making(run), tmp_path, progress=False)
    assert not run.done


@pytest.mark.parametrize(
    ("given", "environment", "where"),
    [(None, None, "local"), (None, "10.0.0.1:6379", "10.0.0.1:6379"), ("auto", "10.0.0.1:6379", "auto")],
)
def test_a_cluster_that_nobody_named_is_not_joined(
    given: str | None, environment: str | None, where: str, ray: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if environment is not None:
        monkeypatch.setenv("RAY_ADDRESS", environment)
    joined = list[object]()
    vars(ray).update(is_initialized=lambda: False, init=lambda **how: joined.append(how["address"]), shutdown=int)
    run_on_ray(making(FakeRun([0])), FOLDER, address=given, progress=False)
    assert joined == [where]


def test_no_more_actors_than_tasks(ray: FakeRay) -> None:
    run_on_ray(making(FakeRun([0])), FOLDER, progress=False)
    assert len(ray.started) == 1


def test_a_cluster_without_place_for_one_actor(monkeypatch: pytest.MonkeyPatch) -> None:
    _cluster(monkeypatch, FakeRay([{"CPU": 4.0}, {"GPU": 2.0}]))
    with pytest.raises(ServiceError, match=r"has 2 GPUs and 4 CPUs, a worker needs 0.5 GPUs and 1 CPUs of"):
        run_on_ray(making(FakeRun([0])), FOLDER, gpus=0.5, progress=False)


def test_an_actor_that_never_gets_its_place_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    _cluster(monkeypatch, FakeRay([{"CPU": 2.0}], stuck=[1]))
    run = FakeRun(range(3))
    run_on_ray(making(run), FOLDER, progress=False)
    assert run.done == [0, 1, 2]


def test_a_task_is_tried_three_times(ray: FakeRay, caplog: pytest.LogCaptureFixture) -> None:
    ray.fails = {("do", 4): [RayActorError("gone"), OutOfMemoryError("killed")], ("ready",): [RayActorError("gone")]}
    run = FakeRun(range(6))
    run_on_ray(making(run), FOLDER, progress=False)
    assert sorted(run.done) == list(range(6))
    assert sorted(caplog.messages) == [
        "a worker was lost during block 4; it is done again by a new one",
        "a worker was lost during block 4; it is done again by a new one",
        "a worker was lost during the start; it is done again by a new one",
    ]
    ray.fails = {("do", 4): [RayActorError("gone")] * 3}
    with pytest.raises(RunFolderError, match=r"block 4 killed its worker 3 times \(gone\). Finished blocks are kept"):
        run_on_ray(making(FakeRun(range(6))), FOLDER, progress=False)


class _LateEnd(FakeRay):
    """A cluster on which the call that ends it is answered last."""

    def wait(self, references: Sequence[Reference], num_returns: int) -> tuple[list[Reference], list[Reference]]:
        return super().wait(sorted(references, key=lambda answer: vars(answer)["call"] == self.ends), num_returns)


def test_a_lost_node_costs_a_task_one_try(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Four actors at work, three of them done: with the fourth they all are lost. The task goes to a new one."""
    ray, run = _cluster(monkeypatch, _LateEnd([{"CPU": 4.0}])), FakeRun(range(4))
    ray.ends = ("do", 0)
    run_on_ray(making(run), FOLDER, progress=False)
    assert (run.done, run.merged) == ([1, 2, 3, 0], 1)
    assert caplog.messages == ["a worker was lost during block 0; it is done again by a new one"]


@pytest.mark.parametrize(
    ("method", "when"), [("plan", "before the first block"), ("merge", "while it merged the tables")]
)
def test_the_loss_of_a_worker_that_nobody_stands_in_for_is_explained(ray: FakeRay, method: str, when: str) -> None:
    ray.fails = {(method,): [RayTaskError(RunFolderError("its own")), DEAD]}
    with pytest.raises(RunFolderError, match=r"^its own$"):
        run_on_ray(making(FakeRun([0])), FOLDER, progress=False)
    with pytest.raises(
        RunFolderError, match=rf"^a worker was lost {when} \(The actor died. class: _Worker\). .*run the same"
    ):
        run_on_ray(making(FakeRun([0])), FOLDER, progress=False)
