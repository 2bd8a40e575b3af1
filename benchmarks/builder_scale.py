"""How the dataset builder grows with the world: invented worlds, a store on disk, the papers' build, a replay.

    python benchmarks/builder_scale.py --people 10000 100000 1000000 [--edits EFF.json ...] [--work DIR]

writes benchmarks/results/builder_scale.json and .md and benchmarks/figures/builder_scale.png. With the released files
of CounterFact edits as --edits the build has the papers' 2,108 cross-subject and 2,266 cross-property edits; without
them it draws those edits too. Every step is a process of its own, so that its time, processor time and peak memory are
its own. Nothing is asked of any network.
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
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from seesaw_cf.base.files import write_text
from seesaw_cf.builder_scripts.dataset.statistics import markdown
from seesaw_cf.builder_scripts.source.sources import QUERIES

HERE = Path(__file__).parent
RESULTS, FIGURE = HERE / "results", HERE / "figures" / "builder_scale.png"
BUILD = "import sys; from seesaw_cf.cli import main; sys.exit(main(sys.argv[1:]))"
# Without optimize() every look-up of a large store goes through all the sorted runs that the load has left.
LOAD = """import sys, pyoxigraph as ox
store = ox.Store(sys.argv[1])
store.bulk_load(path=sys.argv[2])
store.optimize()"""
# Zipf's exponent over fields, places, countries and languages at which, with the papers' rules and the released edits,
# a world of one million people has about as many cloze prompts as the papers (734,620). At 1.4 there are 970,000: the
# released files have fewer because their sampling kept 63 of every 100 people.
SKEW = 1.78
STEPS = ("world", "load", "build", "replay")
CAVEAT = (
    "Wall times are of a machine that other jobs use at the same time (see load_average, cores); processor times are "
    "the ones to compare."
)


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


def query_times(cache: Path) -> dict[str, str]:
    """Query file -> how often it was asked, and for how many seconds, out of the kept replies."""
    names = {file.read_text(encoding="utf-8").splitlines()[0]: file.stem for file in QUERIES.glob("*.rq")}
    counts, seconds = Counter[str](), Counter[str]()
    for file in cache.rglob("*.json"):
        kept = json.loads(file.read_text(encoding="utf-8"))
        name = names[kept["query"].splitlines()[0]]
        counts[name] += 1
        seconds[name] += kept["seconds"]
    return {f"query_{name}": f"{counts[name]} in {total:.1f} s" for name, total in seconds.most_common()}


def contents(folder: Path) -> dict[str, int]:
    """Edits and prompts of a built folder, out of its card and its open-ended prompts."""
    card = (folder / "README.md").read_text(encoding="utf-8")
    cloze, edits = numbers(r"([\d,]+) cloze prompts about holders of the new.*over ([\d,]+) edits", card)
    pairs, scored = numbers(r"([\d,]+) cross-property cases with ([\d,]+) ", card)
    configs = pq.read_table(folder / "data" / "open_ended", columns=["config"])["config"]
    opened = pc.sum(pc.equal(configs, "cross_subject")).as_py()  # pyright: ignore
    return {
        "cross_subject_edits": edits,
        "cloze_prompts": cloze,
        "open_ended_prompts": opened,
        "cross_property_cases": pairs,
        "prompt_candidate_pairs": scored,
        "open_ended_prompts_of_pairs": len(configs) - opened,
    }


def one(people: int, edits: Sequence[str], work: Path) -> dict[str, Any]:
    """One world: generated, loaded, built from, built again out of the cache."""
    world, store = work / f"{people}.nt", work / f"{people}.db"
    given = ["--edits", *edits] if edits else []
    size = ["--people", str(people), "--skew", str(SKEW)]
    make = ["-m", "benchmarks.worlds", *size, "--out", str(world), *given]
    steps = {"world": measure([sys.executable, *make])}
    (triples,) = numbers(r"([\d,]+) triples", steps["world"]["text"])
    steps["load"] = measure([sys.executable, "-c", LOAD, str(store), str(world)])
    for name in ("build", "replay"):
        words = ["build", "--source", str(store), "--paper", "--cache", str(work / "cache"), "--out", str(work / name)]
        steps[name] = measure([sys.executable, "-c", BUILD, *words, *given])
    asked, _ = numbers(r"([\d,]+) queries asked, ([\d,]+) answered", steps["build"]["text"])
    found = contents(work / "build")
    return {
        "people": people,
        "triples": triples,
        "store_mib": round(sum(path.stat().st_size for path in store.iterdir()) / 2**20),
        "load_triples_per_cpu_s": round(triples / steps["load"]["cpu_s"]),
        "queries": asked,
        **found,
        "cloze_prompts_per_cpu_s": round(found["cloze_prompts"] / steps["build"]["cpu_s"]),
        "cloze_prompts_per_cpu_s_replayed": round(found["cloze_prompts"] / steps["replay"]["cpu_s"]),
        "second_run_identical": "yes" if same(work / "build", work / "replay") else "NO",
        **{f"{name}_{key}": steps[name][key] for name in STEPS for key in ("wall_s", "cpu_s", "peak_mib")},
        **query_times(work / "cache"),
        "load_average": round(os.getloadavg()[1], 1),
    }


def draw(rows: Sequence[dict[str, Any]]) -> None:
    """Processor seconds and peak memory of every step by the number of people."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    people = [row["people"] for row in rows]
    axes = figure.subplots(1, 2)
    panels = (
        ("cpu_s", "Processor time in s", (1200, "20 minutes")),
        ("peak_mib", "Peak memory in MiB", (4096, "4 GiB")),
    )
    for axis, (key, label, (limit, words)) in zip(axes, panels, strict=True):
        for name, marker in zip(STEPS, "os^v", strict=True):
            axis.plot(people, [row[f"{name}_{key}"] for row in rows], marker=marker, label=name)
        axis.axhline(limit, color="grey", linestyle=":")
        axis.annotate(words, (people[0], limit), va="bottom", fontsize=8)
        axis.set(xscale="log", yscale="log", xlabel="People in the world", ylabel=label)
    axes[0].legend(frameon=False, fontsize=8, loc="center left")
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, dpi=110, metadata={"Software": None})


def save(rows: Sequence[dict[str, Any]]) -> None:
    """Writes what is known so far as JSON, table and figure."""
    facts = {"skew": SKEW, "cores": os.cpu_count(), "caveat": CAVEAT, "worlds": rows}
    write_text(RESULTS / "builder_scale.json", json.dumps(facts, indent=1) + "\n")
    names = dict.fromkeys(name for row in rows for name in row if name != "people")
    table = [[name, *(row.get(name, "") for row in rows)] for name in names]
    text = markdown(["People", *(f"{row['people']:,}" for row in rows)], table)
    write_text(RESULTS / "builder_scale.md", f"{text}\n\n{CAVEAT} Cores: {os.cpu_count()}. Skew: {SKEW}.\n")
    draw(rows)
    print(text, flush=True)


def main() -> None:
    """Runs all sizes; the results so far are written after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--edits", nargs="*", default=[])
    parser.add_argument("--work", type=Path, help="folder for worlds and stores (a temporary one)")
    args = parser.parse_args()
    work = args.work or Path(tempfile.mkdtemp())
    rows: dict[int, dict[str, Any]] = {}
    for people in args.people:
        folder = work / str(people)
        folder.mkdir(parents=True)
        rows[people] = one(people, args.edits, folder)
        shutil.rmtree(folder)
        save([rows[size] for size in sorted(rows)])


if __name__ == "__main__":
    main()
