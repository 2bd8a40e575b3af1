"""Many edited models: one batch with shared lower blocks against apply, score, restore for one edit after the other.

    python benchmarks/engine.py --cases ../shared/reference/seesaw

writes benchmarks/results/engine.json. Both ways score before and after each edit with the same trie scorer; one after
the other means before and after for each edit, as the published programs do.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.scoring_work import cpu_or_wall, gender, small_model, tokenizer, workloads
from benchmarks.turns import in_turn, ratios
from seesaw_cf.base.files import atomic_path
from seesaw_cf.models.weights import LowRank, WeightDelta, applied
from seesaw_cf.scoring import EditedScorer, TrieScorer
from seesaw_cf.types import Cloze

RESULTS = Path(__file__).parent / "results"
# The same prompts are gender prompts with two answers, the different ones are about places.
# Name -> (edits, prompts of each, the same prompts for all, edited layers of 14).
SETTINGS = {
    "8 early-layer edits x 100 prompts": (8, 100, True, (2, 3, 4)),
    "8 mid-layer edits x 100 prompts": (8, 100, True, (6, 7, 8)),
    "8 late-layer edits x 100 prompts": (8, 100, True, (12, 13)),
    "48 early-layer edits x 2 prompts": (48, 2, False, (2, 3, 4)),
    "48 late-layer edits x 2 prompts": (48, 2, False, (12, 13)),
    "8 early-layer edits x 40 different prompts": (8, 40, False, (2, 3, 4)),
}


def delta(model: Any, layers: tuple[int, ...], seed: int) -> WeightDelta:
    """A rank-1 edit of the MLP's output projections, of relative norm 0.03."""
    generator = torch.Generator().manual_seed(seed)
    updates = {}
    for layer in layers:
        name = next(
            n
            for n, _ in model.named_parameters()
            if n.endswith(tuple(f".{layer}.mlp.{last}.weight" for last in ("c_proj", "down_proj", "fc_out")))
        )
        weight = model.get_parameter(name).detach()
        left, right = (torch.randn(size, generator=generator) for size in ((weight.shape[0], 1), (1, weight.shape[1])))
        scale = 0.03 * weight.float().norm().item() / (left.norm() * right.norm())
        updates[name] = LowRank((scale * left).to(weight), right.to(weight))
    return WeightDelta(updates)


def one_after_the_other(scorer: TrieScorer, jobs: list[tuple[WeightDelta, list[Cloze]]]) -> list[Any]:
    """Before and after for each edit, weights written and restored."""
    found = []
    for change, clozes in jobs:
        scorer.score(clozes)
        with applied(scorer.model, change):
            found.append(scorer.score(clozes))
    return found


def together(scorer: TrieScorer, jobs: list[tuple[WeightDelta, list[Cloze]]]) -> list[Any]:
    """Everything that is asked before any edit once, every edit in the same batch."""
    before = sorted({cloze for _, clozes in jobs for cloze in clozes})
    return EditedScorer(scorer, "together").score([(WeightDelta(), before), *jobs])[1:]


def compare(scorer: TrieScorer, jobs: list[tuple[WeightDelta, list[Cloze]]], seconds: float) -> dict[str, Any]:
    """Both ways in turn, and the largest difference of their answers in nats."""
    found: dict[str, list[Any]] = {}

    def timed(way: Callable[..., list[Any]], _: int) -> float:
        return cpu_or_wall(lambda: found.__setitem__(way.__name__, way(scorer, jobs)), scorer.model)

    times = in_turn({way.__name__: partial(timed, way) for way in (together, one_after_the_other)}, seconds)
    pairs = (pair for own, other in zip(*found.values(), strict=True) for pair in zip(own, other, strict=True))
    return {
        "seconds": {way: statistics.median(taken) for way, taken in times.items()},
        "times_faster": ratios(times, "together")["one_after_the_other"],
        "max_difference_nats": max(abs(a.logprob - b.logprob) for a, b in pairs),
        "plan": asdict(EditedScorer(scorer).plan(jobs)),
    }


def growth(scorer: TrieScorer, clozes: list[Cloze]) -> list[dict[str, float]]:
    """How time grows with the number of late-layer edits that ask the same."""
    jobs = [(delta(scorer.model, (12, 13), n), clozes) for n in range(16)]
    counts = (1, 2, 4, 8, 16)
    return [{"edits": n, "seconds": cpu_or_wall(partial(together, scorer, jobs[:n]), scorer.model)} for n in counts]


def main() -> None:
    """Runs and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0, help="so long turns are taken in each setting")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--model", nargs="+", default=["gpt2", "llama"])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    source, work = workloads(args.cases, 20)
    clozes = list(dict.fromkeys(work["cross-subject"]))
    same = gender(args.cases)
    tokens = tokenizer("work", [*clozes, *same])
    rows, curves = [], {}
    for kind in args.model:
        model = small_model(kind, 14, 384)
        scorer = TrieScorer(model, tokens)
        _ = scorer.support
        for name, (edits, prompts, shared, layers) in SETTINGS.items():
            size = 2 * prompts
            asked = [same[:size] if shared else clozes[size * n : size * (n + 1)] for n in range(edits)]
            jobs = [(delta(model, layers, n), own) for n, own in enumerate(asked)]
            rows.append({"model": kind, "setting": name, **compare(scorer, jobs, args.seconds)})
            print(json.dumps(rows[-1]), flush=True)
        curves[kind] = growth(scorer, same[:100])
    record = {
        "source": source,
        "threads": args.threads,
        "torch": torch.__version__,
        "note": "CPU seconds, medians of turns; ratios: geometric means over turns, with 95 % intervals",
        "edits": rows,
        "growth": curves,
    }
    with atomic_path(RESULTS / "engine.json") as file:
        file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
