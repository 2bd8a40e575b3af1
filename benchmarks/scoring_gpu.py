"""The scoring engine on a GPU: GPT-J-6B and Llama-2-7B shapes with random weights, built on the device in bfloat16.

    PYTHONPATH=. python benchmarks/scoring_gpu.py --out scoring_gpu.json

needs torch, transformers and numpy only. `--cases FOLDER` takes the released files, otherwise clozes are made up.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, GPTJConfig, LlamaConfig, PreTrainedModel

from benchmarks.engine import delta, one_after_the_other, together
from benchmarks.scoring_work import (
    bound_flops,
    bound_seconds,
    cpu_or_wall,
    invented,
    published_loop,
    released,
    tokenizer,
)
from seesaw_cf.models.weights import LowRank, WeightDelta
from seesaw_cf.scoring import HFScorer, TrieScorer
from seesaw_cf.scoring.noise import measure_noise
from seesaw_cf.types import Cloze

SHAPES: dict[str, Any] = {
    "gpt-j-6b": GPTJConfig(bos_token_id=0, eos_token_id=0),
    "llama-2-7b": LlamaConfig(bos_token_id=0, eos_token_id=0),
    "tiny": LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=4,
        num_attention_heads=2,
        vocab_size=8000,
        bos_token_id=0,
        eos_token_id=0,
    ),
}


def build(shape: str, device: str, dtype: torch.dtype) -> PreTrainedModel:
    """Random weights made where they stay."""
    torch.manual_seed(0)
    with torch.device(device):
        model: PreTrainedModel = AutoModelForCausalLM.from_config(SHAPES[shape], dtype=dtype)
    model.train(False)
    return model


def scoring(model: Any, tokens: Any, name: str, work: list[Cloze], rounds: int) -> dict[str, Any]:
    """Engine, plain batches and the published loop on one kind of work."""
    pair = 2 if name == "cross-subject" else 1
    few = work[: 100 * pair]
    facts: dict[str, Any] = {"work": name, **bound_flops(model, tokens, work)}
    scorer = TrieScorer(model, tokens)
    scorer.score(few)
    facts["layout"] = scorer.describe()
    times = []
    for _ in range(rounds):
        torch.cuda.reset_peak_memory_stats() if model.device.type == "cuda" else None
        row = {"bound": bound_seconds(model, facts, 8192), "engine": cpu_or_wall(lambda: scorer.score(work), model)}
        row["loop"] = cpu_or_wall(lambda: published_loop(model, tokens, few, pair), model) * len(work) / len(few)
        row["plain"] = cpu_or_wall(lambda: HFScorer(model, tokens, 16_384).score(work[:2000]), model)
        row["plain"] *= len(work) / len(work[:2000])
        times.append(row)
    facts["seconds"] = {key: statistics.median(row[key] for row in times) for key in times[0]}
    facts["tflops_per_second"] = facts["flops"] / facts["seconds"]["bound"] / 1e12
    facts["tokens_fed"] = scorer.counts.tokens
    if model.device.type == "cuda":
        facts["peak_gib_with_model"] = torch.cuda.max_memory_allocated() / 2**30
    return facts


def block_of_edits(model: Any, tokens: Any, work: list[Cloze], layers: tuple[int, ...], edits: int) -> dict[str, Any]:
    """Edits in one batch against one after the other."""
    scorer = TrieScorer(model, tokens)
    size = len(work) // edits
    jobs = [(change(model, layers, n), work[n * size : (n + 1) * size]) for n in range(edits)]
    together(scorer, jobs)
    first = cpu_or_wall(lambda: together(scorer, jobs), model)
    second = cpu_or_wall(lambda: one_after_the_other(scorer, jobs), model)
    return {"edits": edits, "layers": layers, "clozes_each": size, "together": first, "one_after_the_other": second}


def change(model: Any, layers: tuple[int, ...], seed: int) -> WeightDelta:
    """A rank-1 edit for either shape."""
    if model.config.model_type != "gptj":
        return delta(model, layers, seed)
    torch.manual_seed(seed)
    updates = {}
    for layer in layers:
        weight = model.get_parameter(f"transformer.h.{layer}.mlp.fc_out.weight").detach()
        left, right = (torch.randn(size, device=weight.device) for size in ((weight.shape[0], 1), (1, weight.shape[1])))
        updates[f"transformer.h.{layer}.mlp.fc_out.weight"] = LowRank(
            0.03 * weight.float().norm() / (left.norm() * right.norm()) * left, right
        )
    return WeightDelta(updates)


def main() -> None:
    """Runs and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", nargs="+", default=["gpt-j-6b", "llama-2-7b"], choices=SHAPES)
    parser.add_argument("--out", type=Path, default=Path("scoring_gpu.json"))
    args = parser.parse_args()
    work = released(args.cases, args.count) if args.cases else invented(args.count)
    tokens = tokenizer("work", [cloze for part in work.values() for cloze in part])
    record: dict[str, Any] = {"torch": torch.__version__, "device": args.device}
    if args.device == "cuda":
        record["gpu"] = torch.cuda.get_device_name()
    for shape in args.shape:
        model = build(shape, args.device, torch.bfloat16)
        last = model.config.num_hidden_layers - 1
        record[shape] = {
            "scoring": [scoring(model, tokens, name, part, args.rounds) for name, part in work.items()],
            "edits": [
                block_of_edits(model, tokens, work["cross-subject"][: 48 * 4], (last // 4,), 48),
                block_of_edits(model, tokens, work["cross-subject"][: 48 * 4], (last - 1, last), 48),
                block_of_edits(model, tokens, work["cross-subject"][:1600], (last // 4,), 8),
            ],
            "noise": measure_noise(TrieScorer(model, tokens), work["cross-subject"][:200]).record(),
        }
        print(shape, json.dumps(record[shape]), flush=True)
        args.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        del model
        if args.device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
