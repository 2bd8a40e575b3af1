"""Scoring: the published loop, lm_eval, this engine and the bound, interleaved in one process.

    python benchmarks/scoring.py --cases ../shared/reference/seesaw --count 20

writes benchmarks/results/scoring.json and benchmarks/figures/scoring.png. Times are CPU seconds, since others may share
the machine. Two tokenizers stand for all, see `scoring_work.tokenizer`. The slow ways are timed on a part of the work:
the published loop and plain batches on every nth prompt (`--part`), scaled by the number of prompts; lm_eval on the
first cases (`--harness-part`; whole cases, so that its own sharing is kept), scaled by the number of tokens, at the
fastest of three batch sizes.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import platform
import resource
import statistics
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.scoring_work import (
    bound_flops,
    bound_seconds,
    cpu_or_wall,
    lm_eval_scores,
    published_loop,
    small_model,
    tokenizer,
    workloads,
)
from seesaw_cf.files import atomic_path
from seesaw_cf.scoring import HFScorer, TrieScorer
from seesaw_cf.types import Cloze

RESULTS = Path(__file__).parent / "results"
FIGURES = Path(__file__).parent / "figures"
SECONDS = 60.0
"""Bound and engine are short and compared most closely: both are measured in turn for so long, at least three times."""


def measure(model: Any, tokens: Any, name: str, work: list[Cloze], args: argparse.Namespace) -> dict[str, Any]:
    """Times of every way on one kind of work, medians of ratios over rounds."""
    together = 2 if name == "cross-subject" else 1
    step = max(1, round(1 / args.part))
    few = [work[start + k] for start in range(0, len(work) - together + 1, step * together) for k in range(together)]
    facts: dict[str, Any] = {"work": name, **bound_flops(model, tokens, work)}
    first = work[: int(len(work) * args.harness_part)]
    scale = facts["naive_tokens"] / bound_flops(model, tokens, first)["naive_tokens"]
    harness = importlib.util.find_spec("lm_eval") is not None
    times: list[dict[str, float]] = []
    for number in range(args.rounds):
        spent: list[tuple[float, float, dict[str, int]]] = []
        while len(spent) < 3 or sum(pair[0] + pair[1] for pair in spent) < SECONDS:
            spent.append((bound_seconds(model, facts), *engine(model, tokens, work)))
        facts["ratios_to_the_bound"] = [pair[1] / pair[0] for pair in spent]
        row = {
            "bound": statistics.mean(pair[0] for pair in spent),
            "engine": statistics.mean(pair[1] for pair in spent),
        }
        row["loop"] = cpu_or_wall(lambda: published_loop(model, tokens, few, together), model) * len(work) / len(few)
        row["plain"] = cpu_or_wall(lambda: HFScorer(model, tokens).score(few), model) * len(work) / len(few)
        if harness:
            sizes = (32, 64, 128) if number == 0 else (facts["lm_eval_batch"],)
            taken = {size: cpu_or_wall(partial(lm_eval_scores, model, tokens, first, size), model) for size in sizes}
            facts["lm_eval_batch"] = min(taken, key=taken.__getitem__)
            row["lm_eval"] = min(taken.values()) * scale
        times.append(row)
        facts["fed"] = spent[-1][2]
    facts |= agreement(model, tokens, few, together)
    facts["seconds"] = {key: statistics.median(row[key] for row in times) for key in times[0]}
    facts["gflops_per_second"] = facts["flops"] / facts["seconds"]["bound"] / 1e9
    facts["times_the_engine"] = {key: statistics.median(row[key] / row["engine"] for row in times) for key in times[0]}
    facts["engine_over_bound"] = statistics.median(row["engine"] / row["bound"] for row in times)
    return facts


def engine(model: Any, tokens: Any, work: list[Cloze]) -> tuple[float, dict[str, int]]:
    """Seconds of this engine with nothing kept from earlier, and what it fed."""
    scorer = TrieScorer(model, tokens)
    _ = scorer.support
    seconds = cpu_or_wall(partial(scorer.score, work), model)
    return seconds, {"tokens": scorer.counts.tokens, "forwards": scorer.counts.forwards}


def agreement(model: Any, tokens: Any, few: list[Cloze], together: int) -> dict[str, float]:
    """How far the ways' answers are from each other."""
    mine, loop = TrieScorer(model, tokens).score(few), published_loop(model, tokens, few, together)
    plain = HFScorer(model, tokens).score(few)
    return {
        "max_difference_nats": max(abs(a.logprob - b) for a, b in zip(mine, loop)),
        "greedy_agreement": sum(a.greedy == b.greedy for a, b in zip(mine, plain)) / len(few),
    }


def growth(model: Any, tokens: Any, work: dict[str, list[Cloze]]) -> dict[str, list[dict[str, float]]]:
    """How tokens and time grow with the candidates of one prompt, and with the number of prompts."""
    prompts = work["cross-subject"]
    candidates = [cloze for cloze in work["cross-property"] if cloze.context == work["cross-property"][0].context]
    parts = {
        "candidates": [candidates[:count] for count in (1, 2, 8, 32, 128, len(candidates)) if count <= len(candidates)],
        "prompts": [prompts[: 2 * count] for count in (10, 100, 1000) if 2 * count <= len(prompts)],
    }
    found: dict[str, list[dict[str, float]]] = {}
    for name, some in parts.items():
        for asked in some:
            scorer = TrieScorer(model, tokens)
            _ = scorer.support
            seconds = cpu_or_wall(partial(scorer.score, asked), model)
            size = len(asked) if name == "candidates" else len({cloze.context for cloze in asked})
            found.setdefault(name, []).append({name: size, "tokens": scorer.counts.tokens, "seconds": seconds})
    return found


def figure(rows: list[dict[str, Any]], file: Path) -> None:
    """Bars: seconds of every way relative to the engine."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    ways = [way for way in ("loop", "lm_eval", "plain", "engine", "bound") if way in rows[0]["times_the_engine"]]
    drawing, axes = pyplot.subplots(figsize=(10, 3.4), layout="constrained")
    for index, way in enumerate(ways):
        places = [place + index * 0.8 / len(ways) for place in range(len(rows))]
        bars = axes.bar(places, [row["times_the_engine"][way] for row in rows], 0.75 / len(ways), label=way)
        axes.bar_label(bars, fmt="%.2g", fontsize=6)
    axes.set_yscale("log")
    names = [f"{row['model']}\n{row['work']}\n{row['tokenizer']}" for row in rows]
    axes.set_xticks([place + 0.3 for place in range(len(rows))], names)
    axes.set_ylabel("CPU time / engine")
    axes.legend(ncols=5, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    drawing.savefig(file, dpi=120, format="png")


def main() -> None:
    """Runs and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, help="folder of the released files (default: the embedded sample)")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", type=float, default=0.03, help="part of the prompts for the slow ways")
    parser.add_argument("--harness-part", type=float, default=0.15, help="part of the cases for lm_eval")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--model", nargs="+", default=["gpt2", "llama"])
    parser.add_argument("--tokenizer", nargs="+", default=["work", "english"])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    source, work = workloads(args.cases, args.count)
    tokenizers = {kind: tokenizer(kind, [cloze for part in work.values() for cloze in part]) for kind in args.tokenizer}
    record: dict[str, Any] = {
        "source": source,
        "cases": args.count,
        "threads": args.threads,
        "torch": torch.__version__,
        "machine": platform.platform(),
        "load_at_start": os.getloadavg()[0],
        "note": "CPU seconds; ratios are of one interleaved run",
        "parts": {"loop and plain": args.part, "lm_eval": args.harness_part},
        "scoring": [],
        "growth": [],
    }
    for kind, (vocabulary, tokens) in itertools.product(args.model, tokenizers.items()):
        model = small_model(kind)
        names = {"model": kind, "tokenizer": vocabulary}
        record["growth"].append({**names, **growth(model, tokens, work)})
        for name, clozes in work.items():
            record["scoring"].append({**names, **measure(model, tokens, name, clozes, args)})
            record["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(json.dumps(record["scoring"][-1]), flush=True)
            with atomic_path(RESULTS / "scoring.json") as file:
                file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    with atomic_path(FIGURES / "scoring.png") as file:
        figure(record["scoring"], file)


if __name__ == "__main__":
    main()
