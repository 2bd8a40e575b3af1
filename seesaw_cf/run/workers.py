"""Who does a run: this process, or several, actors of Ray on this machine or on many that share a disk.

Workers share nothing but the run folder and the cache. Each writes the shards of whole blocks, which are the same bytes
on any machine of one type with one number of threads, so a block that is done twice or begun by a worker that died does
no harm. Ray starts an actor that died again and repeats what it was doing. The merge reads all shards in the order of
the plan: the tables are those of a single process.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RunFolderError, ServiceError, need
from seesaw_cf.base.retrying import Bar
from seesaw_cf.base.system import rare_collections
from seesaw_cf.run.jobs import Job, Workers

if TYPE_CHECKING:
    from seesaw_cf.run.runner import Run

log = logging.getLogger(__name__)

_TRIES = 3


def run_job(
    job: Job, out: Path, *, keep_deltas: bool = False, progress: bool = True, workers: Workers | None = None
) -> None:
    """Run a job into a run folder, continuing it when it was interrupted.

    Args:
        job: What to do.
        out: The run folder.
        keep_deltas: Also save each edit, for `seesaw-cf share`.
        progress: Show progress bars.
        workers: Who does it; this process when None.

    Raises:
        SeesawError: Any of the package's errors; what was finished is kept.
    """
    if workers is None or workers.engine == "local":
        with rare_collections():
            _make(job, out, keep_deltas, progress).complete()
        return
    make = partial(_make, job, out.resolve(), keep_deltas)
    run_on_ray(make, out, cpus=job.threads or 1, gpus=workers.gpus, address=workers.ray_address, progress=progress)


def _make(job: Job, out: Path, keep_deltas: bool, progress: bool = False) -> Run:
    """Make a run in the process that does it: one that waits for workers imports no torch, which would hold them up."""
    from seesaw_cf.run.job import make_run

    return make_run(job, out, keep_deltas=keep_deltas, progress=progress)


class _Worker:
    """Hold one run in a Ray actor, made where the actor lives."""

    def __init__(self, make: Callable[[], Run]) -> None:
        self.make = make

    @cached_property
    def run(self) -> Run:
        """Not made before it is asked for: an error of `__init__` would reach the driver as a dead actor."""
        run = self.make()
        run.store.claim()
        return run

    @rare_collections()
    def plan(self) -> tuple[list[int], list[str]]:
        """Return the numbers of the open blocks, and the notes of the run."""
        still_open = [number for number, block in enumerate(self.run.blocks) if self.run.is_open(block)]
        if self.run.is_sequence:  # orders side by side: a state goes on from the one before
            still_open.sort(key=lambda number: number % len(self.run.manifest.settings["checkpoints"]))
        return still_open, [*self.run.manifest.notes, *self.run.notes]

    @rare_collections()
    def do(self, number: int | None) -> None:
        """Do one block; None: get ready."""
        if number is None:
            _ = self.run
        elif self.run.is_open(block := self.run.blocks[number]):
            self.run.do(block)

    @rare_collections()
    def merge(self) -> None:
        """Write the merged tables."""
        self.run.merge()


def run_on_ray(
    make: Callable[[], Run],
    out: Path,
    *,
    cpus: int = 1,
    gpus: float | None = None,
    address: str | None = None,
    progress: bool = True,
) -> None:
    """Run on as many Ray actors as the cluster has place for.

    Args:
        make: Builds the run; called once in every actor. Must be picklable.
        out: The run folder, on a disk that all nodes share.
        cpus: CPUs of one actor.
        gpus: GPUs of one actor, also parts such as 0.5; None = one where the cluster has any, else none.
        address: Of a running cluster ("auto" finds it); None starts one on this machine for the run.
        progress: Show one progress bar over all nodes.

    Raises:
        MissingExtraError: Ray is not installed.
        ServiceError: There is no cluster, or it has no place for a single actor.
        RunFolderError: The folder belongs to another run or is on no common disk, or a block killed its actor three
            times.
        SeesawError: What the work itself raises.
    """
    with _cluster(address) as ray:
        share = (1.0 if ray.cluster_resources().get("GPU") else 0.0) if gpus is None else gpus
        places = _count_places([node["Resources"] for node in ray.nodes() if node["Alive"]], cpus, share)
        again = {"max_restarts": -1, "max_task_retries": _TRIES - 1}
        start = ray.remote(num_cpus=cpus, num_gpus=share, **again)(_Worker).remote
        # All load the model, and share the scores before any edit, while the first one plans. One that never finds a
        # place in the cluster holds none up: a worker gets a block when it is ready.
        worker, *more = workers = [start(make) for _ in range(places)]
        ready = [each.do.remote(None) for each in more]
        still_open, notes = _get(ray, worker.plan.remote(), "before the first block, a worker was lost")
        for note in notes:
            log.warning("%s", note)
        if not (out / "manifest.json").exists():
            raise RunFolderError(f"{out}: the workers write to another disk. Choose an --out that all nodes share.")
        waiting, done = list(reversed(still_open)), 0
        ready = [worker.do.remote(None), *ready]
        at_work = {answer: (each, None) for answer, each in zip(ready, workers, strict=True)}
        del more, workers
        with Bar[object](total=len(waiting), desc="edit, score, restore", unit="block", disable=not progress) as bar:
            while done < len(still_open):
                (answer,), _ = ray.wait(list(at_work), num_returns=1)
                worker, number = at_work.pop(answer)
                _get(ray, answer, "at the start" if number is None else f"block {number} killed its worker")
                done += number is not None
                bar.update(number is not None)
                if waiting:  # else the worker ends, and leaves its place to one that is started again
                    number = waiting.pop()
                    at_work[worker.do.remote(number)] = worker, number
        _get(ray, worker.merge.remote(), "while it merged the tables, a worker was lost")


def _get(ray: Any, answer: object, event: str) -> Any:
    """Return an answer; raise the error of the work, not Ray's wrapping of it."""
    try:
        return ray.get(answer)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except (ray.exceptions.RayActorError, ray.exceptions.OutOfMemoryError) as error:
        raise RunFolderError(
            f"{event} {_TRIES} times ({' '.join(str(error).split())}). Finished blocks are kept; look at memory "
            "(--memory) and at the nodes (`ray status`), and run the same command again."
        ) from error


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Yield Ray, connected to a cluster."""
    with need("ray", extra="ray", what_for="--engine ray"):
        import ray
        import ray.exceptions
    is_ours = not ray.is_initialized()
    if is_ours:
        try:
            where = address or os.environ.get("RAY_ADDRESS") or "local"  # without one ray joins whatever runs here
            ray.init(address=where, log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
        except (ValueError, ConnectionError) as error:
            raise ServiceError(
                f"ray: no cluster at {shown(address)} ({shown(str(error))}). Expected HOST:PORT or 'auto'; leave "
                "RAY_ADDRESS out to start one here."
            ) from error
    try:
        yield ray
    finally:
        if is_ours:
            ray.shutdown()


def _count_places(nodes: Sequence[dict[str, float]], cpus: int, gpus: float) -> int:
    """Return how many actors of so many CPUs and GPUs find a place on the nodes."""
    places = 0
    for node in nodes:
        # 1 / 0.1 places on a GPU are 10, whatever way the quotient is rounded.
        on_gpus = node.get("GPU", 0.0) / gpus + 1e-6 if gpus else float("inf")
        places += int(min(node.get("CPU", 0.0) / cpus, on_gpus))
    if not places:
        gpus_there, cpus_there = (sum(node.get(kind, 0.0) for node in nodes) for kind in ("GPU", "CPU"))
        raise ServiceError(
            f"the cluster has {gpus_there:g} GPUs and {cpus_there:g} CPUs, a worker needs {gpus:g} GPUs and {cpus} "
            "CPUs of one node; use --gpus 0, fewer --threads, or add a node."
        )
    return places
