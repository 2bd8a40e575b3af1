"""How many workers can a run use: two on two cores are measured, 8, 64 and 512 simulated from the times of one.

    python -m benchmarks.scaling [--model smollm2-135m-q4] [--editor ft] [--limit 120]

runs an editor with its random control in one process and under `torchrun` in two, without what a report costs, each
with a cache of its own. It prints the ratio of seconds, that without loading and merging, and that of the simulation,
in which every worker loads the model, scores blocks of questions before any edit that nobody else is at, waits for the
last one, makes its tasks in the order of `seesaw_cf.run.units.work_order`, and the first one merges. For the published
number of cases, times of blocks and tasks are drawn from the measured ones (seed 0); loading is that of one process,
merging grows with the tasks.

writes benchmarks/results/scaling.json
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from benchmarks.editors_common import RESULTS, ROOT, machine
from seesaw_cf.base.files import cache_folder, write_text
from seesaw_cf.run.job import run_job
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.runner import Run
from seesaw_cf.run.units import work_order
from seesaw_cf.run.workers import rank_and_world
from seesaw_cf.scoring import pre_scores

WORKERS = (1, 2, 8, 64, 512)
CASES = 3_516
"""Of the published study."""
BLOCK = 2
"""Edits of a task, with as many of the control."""
WORK = "SEESAW_CF_SCALING"


def work() -> None:
    """Do what each process does; the first one writes the seconds of its parts."""
    what: dict[str, Any] = json.loads(os.environ[WORK])
    torch.set_num_threads(1)
    spent: defaultdict[str, list[float]] = defaultdict(list)
    _run(what, spent)
    if rank_and_world()[0] == 0:
        write_text(Path(what["out"]) / "seconds.json", json.dumps(spent))


def _run(what: dict[str, Any], spent: defaultdict[str, list[float]]) -> None:
    def timed(owner: Any, name: str, kind: str) -> Any:
        inner: Callable[..., Any] = getattr(owner, name)

        def outer(*given: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return inner(*given, **options)
            finally:
                spent[kind].append(time.perf_counter() - start)

        return mock.patch.object(owner, name, outer)

    sample: dict[str, Any] = {"data": "sample-small", "limit": what["limit"], "block": BLOCK, "control_seeds": 1}
    chosen = Job(what["model"], (what["editor"],), ("random",), **sample)
    parts = ((pre_scores, "_score", "block"), (Run, "do", "task"), (Run, "merge", "merge"), (Run, "do_open", "work"))
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(timed(*part))
        run_job(chosen, Path(what["out"]), progress=False)


def measured(processes: int, folder: Path, what: dict[str, Any]) -> tuple[float, dict[str, list[float]]]:
    """Return the seconds of a clock, imports included, and those of the parts of the first process."""
    out, cache = folder / f"{processes}", folder / f"cache{processes}"
    cache.mkdir(parents=True)
    (cache / "models").symlink_to(cache_folder() / "models")
    command = [sys.executable, "-m", "benchmarks.scaling", "--work"]
    if processes > 1:
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
        command = [sys.executable, *torchrun, *command[1:]]
    variables = {"SEESAW_CF_CACHE": str(cache), "OMP_NUM_THREADS": "1", WORK: json.dumps(what | {"out": str(out)})}
    start = time.perf_counter()
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **variables}, stderr=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    return wall, json.loads((out / "seconds.json").read_text(encoding="utf-8"))


def simulated(world: int, load: float, blocks: Sequence[float], tasks: Sequence[float], merge: float) -> float:
    """Return the seconds of a run with so many workers, see above."""
    ends = [load] * world
    for block in blocks:
        heapq.heapreplace(ends, ends[0] + block)
    start, done = max(ends), dict[int, float]()
    orders = [iter(work_order(range(len(tasks)), rank, world)) for rank in range(world)]
    free, first = [(start, rank) for rank in range(world)], start
    heapq.heapify(free)
    while free:
        now, rank = heapq.heappop(free)
        number = next((task for task in orders[rank] if done.get(task, now + 1) > now), None)
        if number is not None:
            done[number] = min(done.get(number, np.inf), now + tasks[number])
            heapq.heappush(free, (now + tasks[number], rank))
        elif rank == 0:
            first = now
    return float(first + merge)


def ratios(seconds: dict[str, list[float]]) -> list[dict[str, float]]:
    """Return times as fast as one worker, and tasks of each, for the published number of cases."""
    draw, n_tasks = np.random.default_rng(0), CASES // BLOCK
    grown = n_tasks / len(seconds["task"])
    blocks = draw.choice(seconds["block"], round(len(seconds["block"]) * grown)).tolist()
    tasks = draw.choice(seconds["task"], n_tasks).tolist()
    whole = {n: simulated(n, seconds["load"][0], blocks, tasks, seconds["merge"][0] * grown) for n in WORKERS}
    return [
        {"workers": n, "seconds": whole[n], "ratio": whole[1] / whole[n], "tasks_each": n_tasks / n} for n in WORKERS
    ]


Found = dict[int, tuple[float, dict[str, list[float]]]]
"""Processes -> what `measured` returns."""


def run_facts(walls: Found) -> dict[str, Any]:
    """Return the figures of a run, and of its simulation."""
    (wall, seconds), (_, two) = walls[1], walls[2]
    works = {n: own.pop("work")[0] for n, (_, own) in walls.items()}
    seconds["load"] = [wall - sum(map(sum, seconds.values()))]
    parts = (seconds["load"][0], seconds["block"], seconds["task"], seconds["merge"][0])
    return {
        "seconds": {n: wall for n, (wall, _) in walls.items()},
        "ratio": walls[1][0] / walls[2][0],
        "ratio_without_loading": works[1] / works[2],
        "simulated_ratio": simulated(1, *parts) / simulated(2, *parts),
        "seconds_of_a_task": {1: np.mean(seconds["task"]), 2: np.mean(two["task"])},
        "parts": {name: {"n": len(own), "seconds": sum(own)} for name, own in seconds.items()},
        "published": ratios(seconds),
    }


def main() -> None:
    """Measure, simulate and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m-q4")
    parser.add_argument("--editor", default="ft")
    parser.add_argument("--limit", type=int, default=120)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work()
        return
    torch.set_num_threads(1)  # as those that are measured
    record = RESULTS / "scaling.json"
    what = {"model": given.model, "editor": given.editor, "limit": given.limit}
    with tempfile.TemporaryDirectory() as folder:
        facts = {"settings": what, **run_facts({n: measured(n, Path(folder), what) for n in (1, 2)})}
    write_text(record, json.dumps(facts | machine(), indent=1) + "\n")
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
