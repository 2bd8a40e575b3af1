"""What a GPU gives: rates, scores, edits and rounding, with random weights of published shapes and with real models.

    python -m benchmarks.gpu --out gpu.json [--shape llama-3-8b] [--model Qwen/Qwen2.5-1.5B] [--device cuda]

Shapes are built on the device in bfloat16, because speed does not depend on weights. Each way of scoring is timed
`--rounds` times (the engine three times at least) and medians are written. *First* is the engine on shapes that it has
not seen, *plain* transformers with padded batches, *loop* one forward pass for each prompt, as published programs
score. *Bound* is the unavoidable products of the model's own shapes. A share of the peak is unavoidable operations over
seconds and over the rate of a large product in the same dtype. *Device* is what kernels and copies take of the
engine's, or the editor's, time. The second call asks the same of a model that vLLM or SGLang serves on the same card.
The file grows part by part.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForCausalLM, GPTJConfig, LlamaConfig, PreTrainedModel, Qwen2Config

from benchmarks.editors_common import machine, requests
from benchmarks.engine import delta, one_after_the_other, together
from benchmarks.flops import flop_counter
from benchmarks.scoring_work import bound_flops, bound_seconds, cpu_or_wall, published_loop, sample, tokenizer
from seesaw_cf.base.files import write_text
from seesaw_cf.base.types import JsonObject
from seesaw_cf.models import hooks
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.corpus import sample_corpus
from seesaw_cf.models.load import load_model
from seesaw_cf.run.make_editors import make_editor
from seesaw_cf.scoring import HFScorer, TrieScorer
from seesaw_cf.scoring.noise import measure_noise
from seesaw_cf.types import Cloze

TINY_SHAPE: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2, "vocab_size": 8000}
SHAPES: dict[str, Any] = {
    "llama-3-8b": LlamaConfig(
        hidden_size=4096,
        intermediate_size=14_336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=128_256,
        bos_token_id=0,
        eos_token_id=0,
    ),
    "gpt-j-6b": GPTJConfig(bos_token_id=0, eos_token_id=0),
    "qwen2.5-1.5b": Qwen2Config(
        hidden_size=1536,
        intermediate_size=8960,
        num_hidden_layers=28,
        num_attention_heads=12,
        num_key_value_heads=2,
        vocab_size=151_936,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
    ),
    "tiny": LlamaConfig(num_hidden_layers=8, bos_token_id=0, eos_token_id=0, **TINY_SHAPE),
}
DTYPES = ("float32", "tf32", "bfloat16")
EDITS, TEXTS, SIDE, FEW, CLOZES, LONGEST = (8, 32), 1000, 8192, 100, 6000, 12


def _seconds(model: PreTrainedModel, do: Callable[[], Any], rounds: int = 1) -> float:
    return statistics.median(cpu_or_wall(do, model) for _ in range(rounds))


def on_device(do: Callable[[], Any]) -> JsonObject:
    """Seconds of kernels and copies, how many there are, and the longest; the rest of wall time is the host's."""
    if not torch.cuda.is_available():
        return {}
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        do()
        torch.cuda.synchronize()
    kernels, longest = seen.key_averages(), Counter[str]()
    for kernel in kernels:
        longest[kernel.key[:80]] += kernel.self_device_time_total / 1e6
    return {
        "seconds": longest.total(),
        "kernels": sum(kernel.count for kernel in kernels if kernel.self_device_time_total),
        "copies": sum(kernel.count for kernel in kernels if kernel.key.startswith("Memcpy")),
        "longest": dict(longest.most_common(LONGEST)),
    }


def rates(device: str, side: int) -> dict[str, float]:
    """TFLOP/s of a large product in each dtype, the median of ten after three that warm up."""

    def rate(dtype: str) -> float:
        switch = torch.backends.cuda.matmul
        before, switch.allow_tf32 = switch.allow_tf32, dtype == "tf32"
        kind = torch.bfloat16 if dtype == "bfloat16" else torch.float32
        left, right = (torch.randn(side, side, device=device, dtype=kind) for _ in range(2))
        times = []
        for _ in range(13):
            start = time.perf_counter()
            torch.mm(left, right)
            if device != "cpu":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        switch.allow_tf32 = before
        return 2 * side**3 / statistics.median(times[3:]) / 1e12

    return {dtype: rate(dtype) for dtype in DTYPES}


def build(shape: str, device: str) -> PreTrainedModel:
    """Random weights in bfloat16, made where they stay."""
    torch.manual_seed(0)
    with torch.device(device):
        model: PreTrainedModel = AutoModelForCausalLM.from_config(SHAPES[shape], dtype=torch.bfloat16)
    model.eval()
    return model


def scoring(model: Any, tokens: Any, work: list[Cloze], peak: float, rounds: int) -> dict[str, Any]:
    """Engine, plain batches and the published loop on the same clozes."""
    facts: dict[str, Any] = bound_flops(model, tokens, work)
    scorer, few = TrieScorer(model, tokens), work[:FEW]
    tokens.pad_token = tokens.pad_token or tokens.eos_token  # the loop pads
    engine = partial(scorer.score, work)
    scorer.score(few)
    first = _seconds(model, engine)
    if model.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    ways = {
        "plain": lambda: HFScorer(model, tokens, 16_384).score(work),
        "loop": lambda: published_loop(model, tokens, few, 2),
    }
    seconds = {name: _seconds(model, way, rounds) for name, way in ways.items()}
    seconds |= {"first": first, "engine": _seconds(model, engine, max(3, rounds))}
    seconds["loop"] *= len(work) / len(few)
    seconds["bound"] = bound_seconds(model, facts, 8192)
    facts |= {
        "layout": scorer.describe(),
        "seconds": seconds,
        "tokens_per_s": facts["naive_tokens"] / seconds["engine"],
        "device": on_device(engine),
    }
    facts["unique_tokens_per_s"] = facts["unique_tokens"] / seconds["engine"]
    facts["share_of_peak"] = facts["flops"] / seconds["engine"] / peak / 1e12
    if model.device.type == "cuda":
        facts["peak_gib_with_model"] = torch.cuda.max_memory_allocated() / 2**30
    return facts


def new_shapes(model: Any, tokens: Any, work: list[Cloze]) -> dict[str, float]:
    """Seconds for shapes that were not seen, without cuDNN's attention, as this package scores, and with it."""
    scorer, most = TrieScorer(model, tokens), len(work) // 2
    scorer.score(work[:FEW])
    without = _seconds(model, lambda: scorer.score(work[:most]))
    with mock.patch.object(hooks, "without_cudnn_attention", contextlib.nullcontext):
        return {"without": without, "with": _seconds(model, lambda: scorer.score(work[: most - 1]))}


def blocks_of_edits(model: Any, tokens: Any, work: list[Cloze]) -> list[dict[str, Any]]:
    """Edits in one batch beside one after the other, in an early layer and in late ones."""
    scorer, last = TrieScorer(model, tokens), model.config.num_hidden_layers - 1
    rows = []
    for edits, layers in ((48, (last // 4,)), (48, (last - 1, last)), (8, (last // 4,))):
        size = min(200, len(work) // edits)
        jobs = [(delta(model, layers, n), work[n * size : (n + 1) * size]) for n in range(edits)]
        together(scorer, jobs)
        ways = {way.__name__: _seconds(model, partial(way, scorer, jobs)) for way in (together, one_after_the_other)}
        rows.append({"edits": edits, "layers": layers, "clozes_each": size, "seconds": ways})
    return rows


def editing(model: Any, tokens: Any, name: str, peak: float) -> dict[str, Any]:
    """Seconds of an editor's statistics and of edits made together, with their share of the peak."""
    fresh: Any = make_editor(name, model, {}, sample_corpus(TEXTS))
    start, asked = time.perf_counter(), requests(max(EDITS))
    editor = fresh.fit(model, tokens)
    fit, few = time.perf_counter() - start, asked[: min(EDITS)]
    editor.edit_each(model, tokens, few)  # what only the first edits of a process do
    seconds = {size: _seconds(model, partial(editor.edit_each, model, tokens, asked[:size])) for size in EDITS}
    with flop_counter() as counted:
        editor.edit_each(model, tokens, few)
    flops = counted.get_total_flops()
    return {
        "editor": name,
        "fit_s": fit,
        "seconds": seconds,
        "edits_per_s": {size: size / taken for size, taken in seconds.items()},
        "device": on_device(partial(editor.edit_each, model, tokens, few)),
        "flops": flops,
        "share_of_peak": flops / seconds[len(few)] / peak / 1e12,
    }


def null_space(size: int, device: str) -> dict[str, float]:
    """Seconds of the eigendecomposition that AlphaEdit needs once for a layer, in float64."""
    square = torch.randn(size, size, device=device, dtype=torch.float64)
    moment = square @ square.T
    del square
    moment[0, 0].item()  # the product is done
    start = time.perf_counter()
    torch.linalg.eigh(moment)[0][0].item()
    return {"size": size, "seconds": time.perf_counter() - start}


def apart(scores: Sequence[Any], exact: Sequence[Any]) -> dict[str, float]:
    """How far scores are from exact ones, in nats."""
    gap = np.abs(np.array([[a.logprob, b.logprob] for a, b in zip(scores, exact, strict=True)]) @ [1.0, -1.0])
    return {
        "n": len(gap),
        "rms": float(np.sqrt(np.mean(gap**2))),
        "p99": float(np.percentile(gap, 99)),
        "max": gap.max(),
    }


def noise(model: Any, tokens: Any, clozes: list[Cloze]) -> JsonObject:
    """Return how much a score moves with the shape of its batch."""
    return measure_noise(TrieScorer(model, tokens), clozes).record()


def attempt(parts: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Measure part by part; one that fails leaves its message, so that the others are still measured."""
    facts: dict[str, Any] = {}
    for name, part in parts.items():
        start = time.perf_counter()
        try:
            facts[name] = part()
        except Exception as error:
            facts[name] = {"failed": f"{type(error).__name__}: {error}"}
        print(f"  {name}: {time.perf_counter() - start:.0f} s", flush=True)
    return facts


def unique(limit: int) -> dict[str, list[Cloze]]:
    """Return both kinds of questions of the sample, each question once."""
    return {name: list(dict.fromkeys(clozes))[:limit] for name, clozes in sample(160).items()}


def of_shape(shape: str, device: str, peak: dict[str, float], rounds: int) -> dict[str, Any]:
    """All parts of one shape; rounding is measured against the same weights in float32."""
    work = unique(CLOZES)
    clozes = work["cross-subject"]
    tokens = tokenizer("work", [cloze for part in work.values() for cloze in part])
    model = build(shape, device)

    def rounding() -> dict[str, Any]:
        short = TrieScorer(model, tokens).score(clozes[:400])
        model.float()
        exact = TrieScorer(model, tokens).score(clozes[:400])
        facts = {"bfloat16": apart(short, exact)}
        if device != "cpu":
            torch.set_float32_matmul_precision("high")
            facts["tf32"] = apart(TrieScorer(model, tokens).score(clozes[:400]), exact)
            torch.set_float32_matmul_precision("highest")
        return facts

    bfloat16 = peak["bfloat16"]
    return attempt(
        {name: partial(scoring, model, tokens, part, bfloat16, rounds) for name, part in work.items()}
        | {
            "new shapes": partial(new_shapes, model, tokens, clozes),
            "blocks": lambda: blocks_of_edits(model, tokens, clozes),
            "memit": lambda: editing(model, tokens, "memit", bfloat16),
            "null space": lambda: null_space(model_parts(model).key_size(0), device),
            "noise": partial(noise, model, tokens, clozes[:200]),
            "nats": rounding,
        }
    )


def of_model(name: str, device: str, peak: dict[str, float], rounds: int) -> dict[str, Any]:
    """Scores and edits of a real model in each dtype, and how far scores are from those in float32."""
    work = unique(CLOZES)["cross-subject"]
    facts: dict[str, Any] = {}
    exact: Sequence[Any] = ()
    for dtype in DTYPES if device != "cpu" else DTYPES[::2]:
        torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
        model, tokens = load_model(name, device=device, dtype=dtype.replace("tf", "float"), progress=False)
        scores = TrieScorer(model, tokens).score(work)
        exact = exact or scores
        facts[dtype] = {"nats": apart(scores, exact)} | attempt(
            {
                "scoring": partial(scoring, model, tokens, work, peak[dtype], rounds),
                "memit": partial(editing, model, tokens, "memit", peak[dtype]),
                "ft": partial(editing, model, tokens, "ft", peak[dtype]),
                "noise": partial(noise, model, tokens, work[:200]),
            }
        )
    return facts


def main() -> None:
    """Measure each part and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", nargs="*", default=["llama-3-8b", "gpt-j-6b", "qwen2.5-1.5b"], choices=SHAPES)
    parser.add_argument("--model", action="append", default=[], help="a real model; give it again for more")
    parser.add_argument("--side", type=int, default=SIDE, help="of the square product that gives the peak")
    parser.add_argument("--out", type=Path, default=Path("gpu.json"))
    given = parser.parse_args()
    peak = rates(given.device, given.side)
    record: dict[str, Any] = machine() | {"device": given.device, "peak_tflops": peak}
    if given.device != "cpu":
        record["gpu"] = torch.cuda.get_device_name()

    def write() -> None:
        write_text(given.out, json.dumps(record, indent=1, default=float) + "\n")

    parts = [(name, of_model) for name in given.model] + [(shape, of_shape) for shape in given.shape]
    for name, part in parts:
        start = time.perf_counter()
        record[Path(name).name] = part(name, given.device, peak, given.rounds)
        record[Path(name).name]["wall_s"] = time.perf_counter() - start
        print(f"{name}: {record[Path(name).name]['wall_s']:.0f} s", flush=True)
        write()
        gc.collect()
        if given.device != "cpu":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
