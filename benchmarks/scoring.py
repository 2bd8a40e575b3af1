"""Scoring: the published loop, lm_eval, this engine and the bound, interleaved in one process.

    python benchmarks/scoring.py --cases ../shared/reference/seesaw --count 20

writes benchmarks/results/scoring.json and scoring.png. Times are CPU seconds, since others may share the machine. The
published loop costs the same for every prompt, so it is timed on a part of the prompts and scaled (`--part`).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import resource
import statistics
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.scoring_work import (
    bound_flops,
    cpu_or_wall,
    lm_eval_scores,
    matmul_rate,
    published_loop,
    small_model,
    tokenizer,
    workloads,
)
from seesaw_cf.files import atomic_path
from seesaw_cf.scoring import HFScorer, TrieScorer
from seesaw_cf.types import Cloze

RESULTS = Path(__file__).parent / "results"


def measure(model: Any, tokens: Any, name: str, work: list[Cloze], rounds: int, part: float) -> dict[str, Any]:
    """Times of every way on one kind of work, medians of ratios over rounds."""
    together = 2 if name == "cross-subject" else 1
    step = max(1, round(1 / part))
    few = [work[start + k] for start in range(0, len(work) - together + 1, step * together) for k in range(together)]
    facts: dict[str, Any] = {"work": name, **bound_flops(model, tokens, work)}
    harness = importlib.util.find_spec("lm_eval") is not None
    times: list[dict[str, float]] = []
    for _ in range(rounds):
        scorer = TrieScorer(model, tokens)
        _ = scorer.support
        row = {"rate": matmul_rate(model)}
        row["engine"] = cpu_or_wall(partial(scorer.score, work), model)
        row["rate"] = (row["rate"] + matmul_rate(model)) / 2
        row["loop"] = cpu_or_wall(lambda: published_loop(model, tokens, few, together), model) * len(work) / len(few)
        row["plain"] = cpu_or_wall(lambda: HFScorer(model, tokens).score(few), model) * len(work) / len(few)
        if harness:
            row["lm_eval"] = cpu_or_wall(lambda: lm_eval_scores(model, tokens, work, 64), model)
        row["bound"] = facts["flops"] / row["rate"]
        times.append(row)
        facts["fed"] = {"tokens": scorer.counts.tokens, "forwards": scorer.counts.forwards}
    mine, loop = TrieScorer(model, tokens).score(few), published_loop(model, tokens, few, together)
    facts["max_difference_nats"] = max(abs(a.logprob - b) for a, b in zip(mine, loop))
    plain = HFScorer(model, tokens).score(few)
    facts["greedy_agreement"] = sum(a.greedy == b.greedy for a, b in zip(mine, plain)) / len(few)
    facts["seconds"] = {key: statistics.median(row[key] for row in times) for key in times[0] if key != "rate"}
    facts["gflops_per_second"] = statistics.median(row["rate"] for row in times) / 1e9
    facts["times_the_engine"] = {
        key: statistics.median(row[key] / row["engine"] for row in times) for key in times[0] if key != "rate"
    }
    facts["engine_over_bound"] = statistics.median(row["engine"] / row["bound"] for row in times)
    return facts


def growth(model: Any, tokens: Any, work: list[Cloze]) -> list[dict[str, float]]:
    """How tokens and time grow with the number of candidates of one prompt."""
    candidates = [cloze for cloze in work if cloze.context == work[0].context]
    found = []
    for count in sorted({1, 2, 8, 32, 128, len(candidates)} & set(range(len(candidates) + 1))):
        scorer = TrieScorer(model, tokens)
        _ = scorer.support
        seconds = min(cpu_or_wall(partial(scorer.score, candidates[:count]), model) for _ in range(3))
        tokens_fed = scorer.counts.tokens / 3
        found.append({"candidates": count, "tokens": tokens_fed, "seconds": seconds})
    return found


def figure(rows: list[dict[str, Any]], file: Path) -> None:
    """Bars: seconds of every way relative to the engine."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    ways = [way for way in ("loop", "lm_eval", "plain", "engine", "bound") if way in rows[0]["times_the_engine"]]
    drawing, axes = pyplot.subplots(figsize=(7, 3.2), layout="constrained")
    for index, way in enumerate(ways):
        places = [place + index * 0.8 / len(ways) for place in range(len(rows))]
        bars = axes.bar(places, [row["times_the_engine"][way] for row in rows], 0.75 / len(ways), label=way)
        axes.bar_label(bars, fmt="%.2g", fontsize=7)
    axes.set_yscale("log")
    axes.set_xticks([place + 0.3 for place in range(len(rows))], [f"{row['model']}\n{row['work']}" for row in rows])
    axes.set_ylabel("CPU time / engine")
    axes.legend(ncols=5, fontsize=8)
    drawing.savefig(file, dpi=150, format="png")


def main() -> None:
    """Runs and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, help="folder of the released files (default: the embedded sample)")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", type=float, default=0.05, help="part of the prompts for the slow ways")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--model", nargs="+", default=["gpt2", "llama"])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    source, work = workloads(args.cases, args.count)
    tokens = tokenizer([cloze for part in work.values() for cloze in part])
    rows, curves = [], {}
    for kind in args.model:
        model = small_model(kind)
        for name, clozes in work.items():
            rows.append({"model": kind, **measure(model, tokens, name, clozes, args.rounds, args.part)})
            print(json.dumps(rows[-1]), flush=True)
        curves[kind] = growth(model, tokens, work["cross-property"])
    record = {
        "source": source,
        "cases": args.count,
        "threads": args.threads,
        "torch": torch.__version__,
        "machine": platform.platform(),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "scoring": rows,
        "candidates": curves,
    }
    with atomic_path(RESULTS / "scoring.json") as file:
        file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    with atomic_path(RESULTS / "scoring.png") as file:
        figure(rows, file)


if __name__ == "__main__":
    main()
