"""Scoring: the published loop, lm_eval, this engine and the bound, interleaved in one process.

    python benchmarks/scoring.py --cases ../shared/reference/seesaw --count 20

writes benchmarks/results/scoring.json. Times are CPU seconds, since others may share the machine, and all ways take
turns. Two tokenizers stand for all, see `scoring_work.tokenizer`. The slow ways are timed on a part of the work: the
published loop and plain batches on every nth prompt (`--part`, others in each turn), scaled by the number of prompts;
lm_eval on the first cases (`--harness-part`; whole cases, so that its own sharing is kept), scaled by the number of
tokens, at the fastest of three batch sizes.
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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.scoring_work import (
    beside_bound,
    bound_flops,
    cpu_or_wall,
    lm_eval_scores,
    published_loop,
    small_model,
    tokenizer,
    workloads,
)
from benchmarks.turns import in_turn, ratios
from seesaw_cf.base.files import atomic_path
from seesaw_cf.scoring import HFScorer, TrieScorer
from seesaw_cf.types import Cloze

RESULTS = Path(__file__).parent / "results"


def measure(model: Any, tokens: Any, name: str, work: list[Cloze], args: argparse.Namespace) -> dict[str, Any]:
    """Every way on one kind of work, in turn; the slow ways on another part of it in each turn."""
    together = 2 if name == "cross-subject" else 1
    step = max(1, round(1 / args.part))
    parts = [
        [work[at + k] for at in range(offset * together, len(work), step * together) for k in range(together)]
        for offset in range(step)
    ]
    facts: dict[str, Any] = {"work": name, **bound_flops(model, tokens, work)}
    first = fresh(model, tokens)
    first.score(work)
    facts["fed"] = {"tokens": first.counts.tokens, "forwards": first.counts.forwards}
    answers: dict[Cloze, float] = {}
    bounds: list[float] = []

    def beside(_: int) -> float:
        scorer = fresh(model, tokens)
        seconds, bound = beside_bound(model, facts, partial(scorer.score, work), first.counts.forwards)
        bounds.append(bound)
        return seconds

    def loop(number: int) -> float:
        part = parts[number % step]
        found: list[float] = []
        seconds = cpu_or_wall(lambda: found.extend(published_loop(model, tokens, part, together)), model)
        answers.update(zip(part, found, strict=True))
        return seconds * len(work) / len(part)

    def plain(number: int) -> float:
        part = parts[number % step]
        return cpu_or_wall(lambda: HFScorer(model, tokens).score(part), model) * len(work) / len(part)

    ways: dict[str, Callable[[int], float]] = {
        "engine": beside,
        "bound": lambda _: bounds[-1],
        "loop": loop,
        "plain": plain,
    }
    if importlib.util.find_spec("lm_eval") is not None:
        cases = work[: int(len(work) * args.harness_part)]
        scale = facts["naive_tokens"] / bound_flops(model, tokens, cases)["naive_tokens"]
        harness = partial(lm_eval_scores, model, tokens, cases)
        sizes = {size: cpu_or_wall(partial(harness, size), model) for size in (32, 64, 128)}
        best = facts["lm_eval_batch"] = min(sizes, key=sizes.__getitem__)
        ways["lm_eval"] = lambda _: scale * cpu_or_wall(partial(harness, best), model)
    times = in_turn(ways, args.seconds)
    facts["seconds"] = {way: statistics.median(taken) for way, taken in times.items()}
    facts["gflops_per_second"] = facts["flops"] / facts["seconds"]["bound"] / 1e9
    facts["times_the_engine"] = ratios(times, "engine")
    facts["engine_over_bound"] = ratios(times, "bound")["engine"]
    return facts | agreement(model, tokens, answers)


def fresh(model: Any, tokens: Any) -> TrieScorer:
    """An engine with nothing kept from earlier, that knows how this model is fed."""
    scorer = TrieScorer(model, tokens)
    _ = scorer.support
    return scorer


def agreement(model: Any, tokens: Any, loop: dict[Cloze, float]) -> dict[str, float]:
    """How far the engine's answers are from the loop's and from plain batches'."""
    mine, plain = (kind(model, tokens).score(list(loop)) for kind in (TrieScorer, HFScorer))
    return {
        "compared": len(loop),
        "max_difference_nats": max(abs(own.logprob - other) for own, other in zip(mine, loop.values(), strict=True)),
        "greedy_agreement": statistics.mean(own.greedy == other.greedy for own, other in zip(mine, plain, strict=True)),
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
            scorer = fresh(model, tokens)
            seconds = cpu_or_wall(partial(scorer.score, asked), model)
            size = len(asked) if name == "candidates" else len({cloze.context for cloze in asked})
            found.setdefault(name, []).append({name: size, "tokens": scorer.counts.tokens, "seconds": seconds})
    return found


def main() -> None:
    """Runs and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, help="folder of the released files (default: the embedded sample)")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0, help="so long turns are taken for each kind of work")
    parser.add_argument("--part", type=float, default=0.01, help="part of the prompts for the slow ways in each turn")
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
        "note": "CPU seconds, medians of turns; ratios: geometric means over turns, with 95 % intervals",
        "parts": {"loop and plain, in each turn": args.part, "lm_eval": args.harness_part},
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


if __name__ == "__main__":
    main()
