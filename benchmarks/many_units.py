"""What does a run of very many edits take before it edits: seconds for finished units, memory for questions?

    python -m benchmarks.many_units [--units 100000] [--edits 20000] [--people 175]

Two runs of invented records, of seesaw-tiny and FT, each looked at in a process of its own.

Units: all of them are finished but the last eight, one person is asked about each. It prints the seconds until the run
knows what is open, and all seconds of that process (imports, records, model), without scoring before any edit.

Questions: two answers for each person of each edit, drawn from 12 million, with invented scores. It prints the peak
memory of the process (Linux) while the records are read, and while one block after the other is scored.

Writes benchmarks/results/many_units.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.editors_common import RESULTS, ROOT, machine, reset_peak, resident
from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import SCORES
from seesaw_cf.records import CASES, cases_to_table
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.runner import Run
from seesaw_cf.types import AttributePrompt, Case, Cloze, ClozeScore, EditRequest, Entity

RELATIONS = {"P19": "{} was born in", "P27": "{} is a citizen of", "P101": "{} works in the field of"}
POOL, ANSWERS = 20_000, 200
"""People that are asked about, and answers of a relation."""
MANY_UNITS = "SEESAW_CF_MANY_UNITS"


def write_records(file: Path, edits: int, people: int) -> None:
    """Write cases about so many people each, drawn with seed 0."""
    rng = np.random.default_rng(0)
    asked = {
        relation: [
            AttributePrompt(
                prompt.format(f"Person {n}"), Entity(f"Q{n}", f"Person {n}"), f"{relation}-01", "target_new"
            )
            for n in range(POOL)
        ]
        for relation, prompt in RELATIONS.items()
    }
    file.parent.mkdir(parents=True)
    with pq.ParquetWriter(file, CASES, compression="zstd") as writer:
        for start in range(0, edits, 1000):
            numbers = range(start, min(start + 1000, edits))
            writer.write_table(cases_to_table(_case(number, people, asked, rng) for number in numbers))


def _case(number: int, people: int, asked: dict[str, list[AttributePrompt]], rng: np.random.Generator) -> Case:
    relation = [*RELATIONS][number % len(RELATIONS)]
    new, true = (Entity(None, f"Answer {n}") for n in rng.choice(ANSWERS, 2, replace=False))
    prompts = tuple(asked[relation][place] for place in rng.choice(POOL, people, replace=False))
    return Case(
        number,
        EditRequest(RELATIONS[relation], f"Subject {number}", relation, new, true),
        attribute_prompts=prompts,
        extra={"subject_id": f"S{number}"},
    )


class Invented:
    """Scores without a model."""

    def score(self, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        """Return scores that depend on the texts alone."""
        return [
            ClozeScore(-crc32(f"{c.context} {c.target}".encode()) / 2**28, 1, False, n_greedy=0, first=(5,))
            for c in clozes
        ]


def a_run(folder: Path) -> Run:
    """Return the run of the records in a folder."""
    job = Job("seesaw-tiny", ("ft",), ("none",), data=str(folder / "records"))
    return replace(make_run(job, folder / "run"), scorer=Invented())


def finish(run: Run) -> None:
    """Write the shard of every unit but the last eight."""
    run.store.claim()
    for unit in run.units[:-8]:
        run.store.write(("ft", unit.key), pa.Table.from_pylist([], SCORES), edits=[])


def start(run: Run) -> dict[str, float]:
    """Return the seconds until it is known what is open; everything else is before."""
    begun = time.perf_counter()
    run.store.claim()
    still_open = sum(map(run.is_open, run.blocks))
    return {"open_tasks": still_open, "seconds_until_open_is_known": time.perf_counter() - begun}


def score_all(run: Run) -> dict[str, float]:
    """Return the number of blocks, and GB at most while each of them is scored."""
    peaks = []
    for block in run.blocks:
        reset_peak()
        run.before.of(block.units)
        peaks.append(resident("VmHWM") / 1e9)
    return {"blocks": len(peaks), "peak_GB_first_block": peaks[0], "peak_GB_any_block": max(peaks)}


def in_a_process(what: str, folder: Path) -> dict[str, float]:
    """Return what `finish`, `start` or `score_all` find in a process of its own, with its seconds."""
    given = {MANY_UNITS: json.dumps([what, str(folder)]), "SEESAW_CF_CACHE": str(folder / "cache")}
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.many_units"],
        check=True, cwd=ROOT, env={**os.environ, **given}, stdout=subprocess.PIPE,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found | {"seconds": time.perf_counter() - begun}


def work(what: str, folder: Path) -> None:
    """Print what one process finds."""
    begun = time.perf_counter()
    run = a_run(folder)
    found = {"seconds_until_made": time.perf_counter() - begun, "peak_GB_reading": resident("VmHWM") / 1e9}
    print(json.dumps(found | ({"finish": finish, "start": start, "score_all": score_all}[what](run) or {})))


def main() -> None:
    """Measure and write."""
    if MANY_UNITS in os.environ:
        what, folder = json.loads(os.environ[MANY_UNITS])
        work(what, Path(folder))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--edits", type=int, default=20_000)
    parser.add_argument("--people", type=int, default=175)
    given = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    for name, edits, people, steps in (
        ("units", given.units, 1, ("finish", "start")),
        ("questions", given.edits, given.people, ("score_all",)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            write_records(Path(folder) / "records" / "cross_subject" / "test.parquet", edits, people)
            for step in steps:
                found[name] = in_a_process(step, Path(folder))
                print(name, step, json.dumps(found[name]), flush=True)
    record = {"settings": vars(given), **machine(), **found}
    write_text(RESULTS / "many_units.json", json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
