"""One run on several processes: `torchrun` on one node, Ray actors on many.

Workers share nothing but the run folder. Each writes the shards of whole tasks, which are the same bytes on any machine
of one type with one number of threads, so a task that is done twice or begun by a worker that died does no harm. What
all need, scores before any edit and what editors are fitted with, each makes a part of or waits for, in the cache.
Whoever merges reads all shards in the order of the plan: the tables are those of a single process.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RunFolderError, ServiceError, need
from seesaw_cf.base.retrying import Bar
from seesaw_cf.run.explain import Line, announce, capture_log, log_lines

if TYPE_CHECKING:
    from seesaw_cf.run.runner import Run

T = TypeVar("T")
log = logging.getLogger(__name__)

_PATIENCE = 600.0  # seconds
_TRIES = 3
_START = -1  # stands for the number of a task while an actor starts


def rank_and_world() -> tuple[int, int]:
    """Return this process's number and the number of processes, as `torchrun` sets them; (0, 1) without it."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def local_device(device: str) -> str:
    """Return the device; "auto" under `torchrun` with GPUs is the one of this process's number on its node."""
    import torch

    if device == "auto" and "LOCAL_RANK" in os.environ and torch.cuda.is_available():
        return f"cuda:{int(os.environ['LOCAL_RANK']) % torch.cuda.device_count()}"
    return device


def run_share(run: Run, rank: int, world: int, first_failed: Callable[[], object] | None = None) -> bool:
    """Do one worker's share of a run; the first worker stays until all is done and merges.

    Args:
        run: The same run in every worker.
        rank, world: From `rank_and_world`.
        first_failed: Says whether the first worker has given up. The others wait for it to write the manifest, an hour
            at most, ten minutes when None.

    Returns:
        True in the worker that wrote the merged tables.

    Raises:
        RunFolderError: The folder belongs to another run, or the first worker has not come in time.
        SeesawError: What the work itself raises.
    """
    _ = run.tasks
    _claim(run, rank, first_failed)
    run.do_open(rank, world)
    if rank == 0:
        run.merge()
    return rank == 0


def _claim(run: Run, rank: int, first_failed: Callable[[], object] | None) -> None:
    """Make the folder the run's own; all workers but the first wait for it and check."""
    start = time.monotonic()
    while rank and not run.store.claimed():
        waited = time.monotonic() - start
        if waited > (_PATIENCE if first_failed is None else 6 * _PATIENCE) or (first_failed and first_failed()):
            raise RunFolderError(
                f"{run.out}: worker {rank} waited {waited:.0f} s for the first worker to write manifest.json. "
                "Is the folder, or --exchange, one that all workers share? Did the first worker fail?"
            )
        time.sleep(0.2)
    run.store.claim()


class _Worker:
    """What a Ray actor holds: one run, made where the actor lives. Lines of the log go with the answers."""

    def __init__(self, make: Callable[[], Run]) -> None:
        self.make = make

    @cached_property
    def run(self) -> Run:
        """Not made before it is asked for: an error of `__init__` would reach the driver as a dead actor."""
        run = self.make()
        run.store.claim()  # each where it lives: nodes may have no common disk
        return run

    def ready(self) -> list[Line]:
        """Return the log as soon as the actor has its place and its model."""
        with capture_log() as lines:
            _ = self.run
        return lines

    def open_tasks(self) -> tuple[list[int], list[Line]]:
        """Make the folder the run's own, and say what is to be done."""
        with capture_log() as lines:
            announce([*self.run.manifest.notes, *self.run.notes])
            numbers = [number for number, task in enumerate(self.run.tasks) if self.run.is_open(task)]
        return numbers, lines

    def do(self, number: int) -> list[Line]:
        """Do one task."""
        with capture_log() as lines:
            if self.run.is_open(self.run.tasks[number]):
                self.run.do(self.run.tasks[number])
        return lines

    def merge(self) -> None:
        """Write the merged tables; where nodes have no common disk, the driver fetches them."""
        self.run.merge()
        for file in self.run.out.glob("*.parquet"):
            self.run.store.send(file)


def run_on_ray(
    make: Callable[[], Run],
    *,
    actors: int | None = None,
    gpus: float | None = None,
    address: str | None = None,
    progress: bool = True,
) -> bool:
    """Run on Ray Core actors, one model each; the shard of a dead actor is done again by a new one.

    Args:
        make: Builds the run; called once in every actor. Must be picklable.
        actors: How many, fewer where the cluster has no place for them; None = as many as it has place for.
        gpus: GPUs of one actor, also parts such as 0.5; None = one where the cluster has any, else none.
        address: Of a running cluster ("auto" finds it); None starts one on this machine for the run.
        progress: Show one progress bar over all nodes.

    Returns:
        True: the merged tables are written.

    Raises:
        MissingExtraError: Ray is not installed.
        ServiceError: The cluster has no place for a single actor.
        RunFolderError: The folder belongs to another run, or a task killed its actor three times.
        SeesawError: What the work itself raises.
    """
    with _cluster(address, actors, gpus) as (ray, options, count):
        remote = ray.remote(**options)(_Worker).remote
        first = remote(make)
        todo, lines = _get_or_fail(ray, first.open_tasks.remote(), "before the first task")
        log_lines(lines)
        if todo:
            first = _drive(ray, lambda: remote(make), first, todo, min(count, len(todo)), progress)
        _get_or_fail(ray, first.merge.remote(), "while it merged the tables")
    return True


@contextmanager
def _cluster(
    address: str | None, actors: int | None, gpus: float | None
) -> Iterator[tuple[Any, dict[str, float], int]]:
    """Yield Ray, what an actor takes of a node, and how many actors there is place for."""
    with need("ray", extra="ray", what_for="--engine ray", otherwise="Or use torchrun on one node."):
        import ray
        import ray.exceptions
    ours = not ray.is_initialized()
    if ours:
        try:
            where = address or os.environ.get("RAY_ADDRESS") or "local"  # without one ray joins whatever runs here
            ray.init(address=where, log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
        except (ValueError, ConnectionError) as error:
            raise ServiceError(
                f"ray: no cluster at {shown(address)} ({shown(str(error))}). Expected HOST:PORT or 'auto'; leave "
                "--ray-address out to start one here."
            ) from error
    try:
        share = (1.0 if ray.cluster_resources().get("GPU") else 0.0) if gpus is None else gpus
        yield ray, {"num_cpus": 1, "num_gpus": share}, _count_actors(ray.nodes(), share, actors)
    finally:
        if ours:
            ray.shutdown()


class RayNode(TypedDict):
    """What is read of a node as `ray.nodes()` lists it."""

    Alive: bool
    Resources: dict[str, float]


def _count_actors(nodes: Sequence[RayNode], share: float, actors: int | None) -> int:
    """Return how many actors of one CPU and `share` GPUs to start: those asked for that find a place on a node."""
    resources = [node["Resources"] for node in nodes if node["Alive"]]
    cpus, gpus = ([has.get(kind, 0.0) for has in resources] for kind in ("CPU", "GPU"))
    # 1 / 0.1 places on a GPU are 10, whatever way the quotient is rounded.
    fit = sum(int(min(cpu, gpu / share + 1e-6 if share else cpu)) for cpu, gpu in zip(cpus, gpus, strict=True))
    if not fit:
        raise ServiceError(
            f"the cluster has {sum(gpus):g} GPUs and {sum(cpus):g} CPUs, an actor wants {share:g} GPUs and 1 CPU "
            "of one node; use --gpus 0, or add a node."
        )
    if actors is not None and actors > fit:
        log.warning("the cluster has place for %d actors, not for %d; going on with %d", fit, actors, fit)
    return min(actors or fit, fit)


def _get(ray: Any, reference: object) -> Any:
    """Return what an actor answers; raise its own error, not Ray's wrapping of it."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None


def _get_or_fail(ray: Any, reference: object, when: str) -> Any:
    """Return the answer of an actor that no other can stand in for."""
    try:
        return _get(ray, reference)
    except _loss_errors(ray) as error:
        raise _lost_error(when, error) from None


def _loss_errors(ray: Any) -> tuple[type[Exception], ...]:
    """Return the errors of a lost actor; one that is killed for its memory has a separate error."""
    return ray.exceptions.RayActorError, ray.exceptions.OutOfMemoryError


def _lost_error(when: str, error: Exception) -> RunFolderError:
    return RunFolderError(
        f"a worker was lost {when} ({' '.join(str(error).split())}). Finished tasks are kept; look at memory "
        "(--memory, --max-tokens) and at the nodes (`ray status`), and run the same command again."
    )


def _drive(ray: Any, start: Callable[[], Any], first: Any, todo: list[int], count: int, progress: bool) -> Any:
    """Keep up to `count` actors busy until every task is done, replace dead ones, and answer one that is left.

    An actor is given a task when it has answered `ready`: one that never finds a place in the cluster holds none up.
    """
    waiting, tries, idle = list(reversed(todo)), Counter[int](), [first]
    busy: dict[Any, tuple[Any, int]] = {}
    starting = _request_ready(start() for _ in range(count - 1))
    with Bar[object](total=len(todo), desc="edit, score, restore", unit="block", disable=not progress) as bar:
        while waiting or busy:
            while waiting and idle:
                actor, number = idle.pop(), waiting.pop()
                busy[actor.do.remote(number)] = actor, number
            (ready,), _ = ray.wait([*busy, *starting], num_returns=1)
            actor, number = busy.pop(ready) if ready in busy else (starting.pop(ready), _START)
            try:
                log_lines(_get(ray, ready))
            except _loss_errors(ray) as error:
                _record_loss(tries, number, error)
                idle = _find_live(ray, idle)
                starting |= _request_ready([start()])
                waiting += [number] if number != _START else []
            else:
                tries[number] = 0
                idle.append(actor)
                bar.update(number != _START)
    return idle[-1]


def _request_ready(actors: Iterable[Any]) -> dict[Any, Any]:
    return {actor.ready.remote(): actor for actor in actors}


def _find_live(ray: Any, actors: Iterable[Any]) -> list[Any]:
    """Return the actors that still answer: a node that is lost takes all of its actors, the idle ones too."""
    alive = []
    for actor in actors:
        with suppress(*_loss_errors(ray)):
            _get(ray, actor.ready.remote())
            alive.append(actor)
    return alive


def _record_loss(tries: Counter[int], number: int, error: Exception) -> None:
    """Count the workers that a task, or starting, has cost."""
    work = "the start" if number == _START else f"task {number}"
    tries[number] += 1
    if tries[number] >= _TRIES:
        raise RunFolderError(
            f"{work} killed its worker {_TRIES} times ({error}). Finished tasks are kept; look at memory "
            "(--memory, --max-tokens) and run the same command again."
        ) from error
    log.warning("a worker was lost during %s; it is done again by a new one", work)
