"""How the dataset builder grows with the world: invented worlds, a store on disk, the papers' build, a replay.

    python benchmarks/builder_scale.py --people 10000 100000 1000000 [--edits EFF.json ...] [--work DIR]

writes benchmarks/results/builder_scale.json and .md. With the released files of CounterFact edits as --edits the build
has the papers' 2,108 cross-subject and 2,266 cross-property edits; without them it draws those edits too. Every step is
a process of its own, so that its time, processor time and peak memory are its own. Nothing is asked of any network.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seesaw_cf.builder_scripts.statistics import markdown
from seesaw_cf.files import write_text

RESULTS = Path(__file__).parent / "results"
BUILD = "import sys; from seesaw_cf.cli import main; sys.exit(main(sys.argv[1:]))"
LOAD = "import sys, pyoxigraph as ox; s = ox.Store(sys.argv[1]); s.bulk_load(path=sys.argv[2]); s.flush()"


def measure(command: Sequence[str]) -> dict[str, Any]:
    """Runs a command: wall and processor seconds, peak memory in MiB, its output."""
    with tempfile.TemporaryFile("w+") as out:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - started
        out.seek(0)
        text = out.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{text}")
    return {
        "wall_s": round(wall, 1),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mib": round(usage.ru_maxrss / 1024),
        "text": text,
    }


def numbers(pattern: str, text: str) -> list[int]:
    """The numbers that a pattern's groups find, without separators."""
    match = re.search(pattern, text)
    assert match, (pattern, text)
    return [int(group.replace(",", "")) for group in match.groups()]


def same(first: Path, second: Path) -> bool:
    """Both folders hold the same files with the same bytes."""
    names = [
        [str(path.relative_to(root)) for path in sorted(root.rglob("*")) if path.is_file()] for root in (first, second)
    ]
    return names[0] == names[1] and filecmp.cmpfiles(first, second, names[0], shallow=False)[1:] == ([], [])


def one(people: int, edits: Sequence[str], work: Path) -> dict[str, Any]:
    """One world: generated, loaded, built from, built again out of the cache."""
    world, store = work / f"{people}.nt", work / f"{people}.db"
    given = ["--edits", *edits] if edits else []
    make = ["-m", "seesaw_cf.builder_scripts.worlds", "--people", str(people), "--out", str(world), *given]
    steps = {"world": measure([sys.executable, *make])}
    (triples,) = numbers(r"([\d,]+) triples", steps["world"]["text"])
    steps["load"] = measure([sys.executable, "-c", LOAD, str(store), str(world)])
    for name in ("build", "replay"):
        words = ["build", "--source", str(store), "--paper", "--cache", str(work / "cache"), "--out", str(work / name)]
        steps[name] = measure([sys.executable, "-c", BUILD, *words, *given])
    card = (work / "build" / "README.md").read_text(encoding="utf-8")
    cloze, subject_edits = numbers(r"([\d,]+) cloze prompts about holders of the new.*over ([\d,]+) edits", card)
    pairs, scored, opened = numbers(r"([\d,]+) cross-property cases with ([\d,]+) .*; ([\d,]+) open-ended", card)
    asked, _ = numbers(r"([\d,]+) queries asked, ([\d,]+) answered", steps["build"]["text"])
    return {
        "people": people,
        "triples": triples,
        "store_mib": round(sum(path.stat().st_size for path in store.iterdir()) / 2**20),
        "load_triples_per_cpu_s": round(triples / steps["load"]["cpu_s"]),
        "queries": asked,
        "cross_subject_edits": subject_edits,
        "cloze_prompts": cloze,
        "cross_property_cases": pairs,
        "prompt_candidate_pairs": scored,
        "open_ended_prompts": opened,
        "prompts_per_cpu_s": round(cloze / steps["build"]["cpu_s"]),
        "replay_identical": "yes" if same(work / "build", work / "replay") else "NO",
        **{f"{name}_{key}": step[key] for name, step in steps.items() for key in ("wall_s", "cpu_s", "peak_mib")},
    }


def main() -> None:
    """Runs all sizes; the results so far are written after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--edits", nargs="*", default=[])
    parser.add_argument("--work", type=Path, help="folder for worlds and stores (a temporary one)")
    args = parser.parse_args()
    work = args.work or Path(tempfile.mkdtemp())
    rows = []
    for people in args.people:
        folder = work / str(people)
        folder.mkdir(parents=True)
        rows.append(one(people, args.edits, folder) | {"cores": os.cpu_count(), "load_average": os.getloadavg()[0]})
        shutil.rmtree(folder)
        write_text(RESULTS / "builder_scale.json", json.dumps(rows, indent=1) + "\n")
        table = [[name, *(row[name] for row in rows)] for name in rows[0]]
        write_text(
            RESULTS / "builder_scale.md", markdown(["Builder", *(f"{row['people']:,}" for row in rows)], table) + "\n"
        )
        print((RESULTS / "builder_scale.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
