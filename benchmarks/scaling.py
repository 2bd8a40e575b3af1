"""How many workers can a run use: two on two cores are measured, 8, 64 and 512 simulated from the times of one.

    python -m benchmarks.scaling [--model smollm2-135m-q4] [--editor ft] [--limit 120]

runs an editor with its random control in this process and with `--engine ray` on two CPUs, without what a report costs,
each with a cache of its own. It prints the ratio of seconds, that without loading and merging, and that of the
simulation, in which every worker loads the model, scores blocks of questions before any edit that nobody else is at,
waits for the last one and takes the next task whenever it is free, and one merges. For the published number of cases,
times of blocks and tasks are drawn from the measured ones (seed 0); loading is that of one process, merging grows with
the tasks.

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
from seesaw_cf.run.jobs import Job, Workers
from seesaw_cf.run.runner import Run
from seesaw_cf.run.workers import _Actors
from seesaw_cf.scoring import pre_scores

WORKERS = (1, 2, 8, 64, 512)
CASES = 3_516
"""Of the published study."""
BLOCK = 2
"""Edits of a task, with as many of the control."""


def work(what: dict[str, Any]) -> None:
    """Do the run in this process or on Ray, and write the seconds of its parts that this process sees."""
    torch.set_num_threads(1)
    spent: defaultdict[str, list[float]] = defaultdict(list)

    def timed(owner: Any, name: str, kind: str) -> Any:
        inner: Callable[..., Any] = getattr(owner, name)

        def outer(*given: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return inner(*given, **options)
            finally:
                spent[kind].append(time.perf_counter() - start)

        return mock.patch.object(owner, name, outer)

    sample: dict[str, Any] = {"data": "sample", "limit": what["limit"], "block": BLOCK, "control_seeds": 1}
    chosen = Job(what["model"], editors=(what["editor"],), controls=("random",), threads=1, **sample)
    parts = (
        (pre_scores, "_score", "block"),
        (Run, "do", "task"),
        (Run, "merge", "merge"),
        (Run, "do_open", "work"),
        (_Actors, "drive", "work"),
    )
    with ExitStack() as stack:
        for part in parts:
            stack.enter_context(timed(*part))
        run_job(chosen, Path(what["out"]), progress=False, workers=Workers(engine=what["engine"]))
    write_text(Path(what["out"]) / "seconds.json", json.dumps(spent))


def measured(engine: str, folder: Path, what: dict[str, Any]) -> tuple[float, dict[str, list[float]]]:
    """Return the seconds of a clock, imports included, and those of the parts."""
    out, cache = folder / engine, folder / f"cache-{engine}"
    cache.mkdir(parents=True)
    (cache / "models").symlink_to(cache_folder() / "models")
    told = json.dumps(what | {"out": str(out), "engine": engine})
    variables = {"SEESAW_CF_CACHE": str(cache), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "benchmarks.scaling", "--work", told]
    start = time.perf_counter()
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **variables}, stderr=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    return wall, json.loads((out / "seconds.json").read_text(encoding="utf-8"))


def simulated(world: int, load: float, blocks: Sequence[float], tasks: Sequence[float], merge: float) -> float:
    """Return the seconds of a run with so many workers, see above."""
    ends = [load] * world
    for block in blocks:
        heapq.heapreplace(ends, ends[0] + block)
    ends = [max(ends)] * world
    for task in tasks:
        heapq.heapreplace(ends, ends[0] + task)
    return max(ends) + merge


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


def facts(walls: dict[str, tuple[float, dict[str, list[float]]]]) -> dict[str, Any]:
    """Return the figures of a run, and of its simulation."""
    (wall, seconds), (ray_wall, ray) = walls["local"], walls["ray"]
    work_seconds = seconds.pop("work")[0]
    seconds["load"] = [wall - sum(map(sum, seconds.values()))]
    parts = (seconds["load"][0], seconds["block"], seconds["task"], seconds["merge"][0])
    return {
        "seconds": {"1": wall, "2": ray_wall},
        "ratio": wall / ray_wall,
        # Of Ray's workers the second one still loads its model while the first one begins.
        "ratio_without_loading": work_seconds / ray["work"][0],
        "simulated_ratio": simulated(1, *parts) / simulated(2, *parts),
        "parts": {name: {"n": len(own), "seconds": sum(own)} for name, own in seconds.items()},
        "published": ratios(seconds),
    }


def main() -> None:
    """Measure, simulate and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m-q4")
    parser.add_argument("--editor", default="ft")
    parser.add_argument("--limit", type=int, default=120)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(json.loads(given.work))
        return
    what = {"model": given.model, "editor": given.editor, "limit": given.limit}
    with tempfile.TemporaryDirectory() as folder:
        record = {
            "settings": what,
            **facts({n: measured(n, Path(folder), what) for n in ("local", "ray")}),
            **machine(),
        }
    write_text(RESULTS / "scaling.json", json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
