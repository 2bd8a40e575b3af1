"""How soon `report.html` of a large run can be used in headless Chromium beside that of a small one, and its size.

    python -m benchmarks.page_load --prompts 100000 --rows 1000000 --repeats 15

Runs are invented (`benchmarks.synthetic_run`): editors with a control, five relations, three axes of groups. Each
opening is a new page of one browser, small and large pages in turn. Interactive means: the prompts of the first view
are in the table, a choice from its first list has been answered with other rows, and the main thread is idle since.
Seconds are the browser's own, from the start of the navigation; without --keep the runs are deleted.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.synthetic_run import EDITORS, write_synthetic_run
from benchmarks.turns import in_turn, ratios
from seesaw_cf.base.files import write_text
from seesaw_cf.report.results import read_results
from seesaw_cf.report.write import run_report
from seesaw_cf.stats.plain import json_text

RESULT = Path("benchmarks/results/page_load.json")
SMALL = 1_000
MANY = ("memit", "ft", "rome", "mend", "random(memit)", "random(ft)")
# What the page must hold at once: seconds until it can be used, bytes for 100,000 prompts and for any run.
LIMITS = {"seconds": 2.0, "bytes": 5_000_000, "bytes_of_any": 10_000_000}
# Before anything else runs in the page: the ends of tasks that kept the main thread for 50 ms or more.
_WATCH = """
window.busy = 0;
new PerformanceObserver(list => { for (const one of list.getEntries()) window.busy = one.startTime + one.duration })
  .observe({ type: "longtask", buffered: true });
"""
# The first list is used as a reader would; then the main thread has to be free for two frames and an idle moment.
_USE = """async () => {
  const rows = document.querySelector("table[id$=-rows]"), list = document.querySelector(".look select");
  while (!rows.tBodies[0].rows.length) await new Promise(requestAnimationFrame);
  const shown = performance.now(), before = rows.tBodies[0].textContent;
  list.value = [...list.options].at(-1).value;
  list.dispatchEvent(new Event("change"));
  while (rows.tBodies[0].textContent === before) await new Promise(requestAnimationFrame);
  const chosen = performance.now();
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => requestIdleCallback(done))));
  return { shown, filter: chosen - shown, interactive: Math.max(performance.now(), window.busy) };
}"""


def make(folder: Path, prompts: int, editors: Sequence[str]) -> dict[str, Any]:
    """A run and its page; what they are, and the CPU seconds that the report took."""
    rows = write_synthetic_run(folder, prompts, editors)
    start = time.process_time()
    results = read_results(folder)
    read = time.process_time()
    html = run_report(results).pages["report.html"]
    written = time.process_time()
    write_text(folder / "report.html", html)
    return {
        "prompts": 0 if results.prompts is None else len(results.prompts),
        "score_rows": rows,
        "bytes": (folder / "report.html").stat().st_size,
        "read_cpu_s": round(read - start, 2),
        "page_cpu_s": round(written - read, 2),
    }


def opened(browser: Any, file: Path) -> dict[str, float]:
    """Milliseconds of one opening."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(_WATCH)
    page.goto(file.as_uri(), wait_until="commit")
    page.wait_for_load_state("domcontentloaded")
    found: dict[str, float] = page.evaluate(_USE)
    context.close()
    return found


def interval(values: Sequence[float]) -> dict[str, float]:
    """Mean with its 95 % interval (Student's t), smallest and largest, and n."""
    half = float(stats.t.ppf(0.975, len(values) - 1)) * float(stats.sem(values)) if len(values) > 1 else float("nan")
    mean = float(np.mean(values))
    ends = {"low": mean - half, "high": mean + half, "smallest": min(values), "largest": max(values)}
    return {name: round(one, 4) for name, one in {"mean": mean, **ends}.items()} | {"n": len(values)}


def measure(files: Mapping[str, Path], repeats: int) -> dict[str, Any]:
    """Opens the pages in turn; the first turn, in which the browser warms up, is left out."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    kept: dict[str, list[dict[str, float]]] = {name: [] for name in files}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])

        def one(name: str, file: Path) -> float:
            kept[name].append({key: value / 1000 for key, value in opened(browser, file).items()})
            return kept[name][-1]["interactive"]

        def way(name: str) -> Any:
            return lambda turn: one(name, files[name])

        times = in_turn({name: way(name) for name in files}, 0, repeats + 1)
        version = browser.version
        browser.close()
    seconds = {
        name: {key: interval([one[key] for one in found[1:]]) for key in found[0]} for name, found in kept.items()
    }
    own = {name: found[1:] for name, found in times.items()}
    return {"seconds": seconds, "times_of_small": ratios(own, "small"), "chromium": version}


def main() -> None:
    """Prints and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=1_000_000, help="score rows of the largest run; 0 for none")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--keep", type=Path, help="folder for the runs")
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        sizes: dict[str, tuple[int, Sequence[str]]] = {"small": (SMALL, EDITORS), "large": (args.prompts, EDITORS)}
        sizes |= {"largest": (args.rows // 4, MANY)} if args.rows else {}
        made = {name: make(folder / name, *size) for name, size in sizes.items()}
        found = measure({name: folder / name / "report.html" for name in made}, args.repeats)
    worst = max(one["bytes"] for one in made.values())
    held = {
        "interactive": found["seconds"]["large"]["interactive"]["high"] <= LIMITS["seconds"],
        "bytes": made["large"]["bytes"] <= LIMITS["bytes"],
        "bytes_of_any": worst <= LIMITS["bytes_of_any"],
    }
    sizes_ratio = {name: round(one["bytes"] / made["small"]["bytes"], 3) for name, one in made.items()}
    where = {"cores": os.cpu_count(), "load": [round(one, 1) for one in os.getloadavg()], "machine": _machine()}
    all_found = {"runs": made, "bytes_times_of_small": sizes_ratio, **found, "limits": LIMITS, "held": held, **where}
    write_text(args.out, json_text(all_found))
    sys.stdout.write(json_text(all_found))


def _machine() -> str:
    """Platform and, on Linux, the processor's name."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8").splitlines() if facts.exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return ", ".join(filter(None, (platform.platform(), name)))


if __name__ == "__main__":
    main()
