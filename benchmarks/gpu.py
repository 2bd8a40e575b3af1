"""What a GPU gives: rates, scores, edits and rounding, with random weights of published shapes and with real models.

    python -m benchmarks.gpu --out gpu.json [--shape llama-3-8b] [--model Qwen/Qwen2.5-1.5B] [--device cuda]
    python -m benchmarks.gpu --out served.json --shape --server Qwen/Qwen2.5-1.5B=http://localhost:8000/v1

Shapes are built on the device in bfloat16, because speed does not depend on weights. Each way of scoring is timed
`--rounds` times and medians are written. *Plain* is transformers with padded batches, *loop* one forward pass for each
prompt, as published programs score. *Bound* is the unavoidable products of the model's own shapes. A share of the peak
is unavoidable operations over seconds and over the rate of a large product in the same dtype. The second call asks
the same of a model that vLLM or SGLang serves on the same card. The file grows part by part.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM, GPTJConfig, LlamaConfig, PreTrainedModel

from benchmarks.editors_common import machine, requests
from benchmarks.engine import delta, one_after_the_other, together
from benchmarks.scoring_work import bound_flops, bound_seconds, cpu_or_wall, published_loop, sample, tokenizer
from seesaw_cf.base.errors import SeesawError
from seesaw_cf.base.files import write_text
from seesaw_cf.base.types import JsonObject
from seesaw_cf.models.load import load_model, sample_corpus
from seesaw_cf.models.tf32 import products_of, use_tf32
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.make_editors import make_editor
from seesaw_cf.run.served import ask_base, find_served
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
    "tiny": LlamaConfig(num_hidden_layers=8, bos_token_id=0, eos_token_id=0, **TINY_SHAPE),
}
DTYPES = ("float32", "tf32", "bfloat16")
EDITS, TEXTS, SIDE, FEW, CLOZES = 8, 2000, 8192, 100, 6000


def _seconds(model: PreTrainedModel, do: Callable[[], Any], rounds: int = 1) -> float:
    return statistics.median(cpu_or_wall(do, model) for _ in range(rounds))


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
    scorer.score(work)
    if model.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    ways = {
        "engine": lambda: scorer.score(work),
        "plain": lambda: HFScorer(model, tokens, 16_384).score(work),
        "loop": lambda: published_loop(model, tokens, few, 2),
    }
    seconds = {name: _seconds(model, way, rounds) for name, way in ways.items()}
    seconds["loop"] *= len(work) / len(few)
    seconds["bound"] = bound_seconds(model, facts, 8192)
    facts |= {
        "layout": scorer.describe(),
        "seconds": seconds,
        "tokens_per_s": facts["naive_tokens"] / seconds["engine"],
    }
    facts["unique_tokens_per_s"] = facts["unique_tokens"] / seconds["engine"]
    facts["share_of_peak"] = facts["flops"] / seconds["engine"] / peak / 1e12
    if model.device.type == "cuda":
        facts["peak_gib_with_model"] = torch.cuda.max_memory_allocated() / 2**30
    return facts


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
    """Seconds of an editor's statistics and of an edit, with its share of the peak."""
    fresh: Any = make_editor(name, model, {}, sample_corpus(TEXTS))
    start, asked = time.perf_counter(), requests(EDITS)
    editor = fresh.fit(model, tokens)
    fit = time.perf_counter() - start
    editor.edit_each(model, tokens, asked)  # what only the first edits of a process do
    seconds = _seconds(model, lambda: editor.edit_each(model, tokens, asked))
    with FlopCounterMode(display=False) as counted:
        editor.edit_each(model, tokens, asked)
    flops = counted.get_total_flops()
    return {
        "editor": name,
        "edits": EDITS,
        "fit_s": fit,
        "edits_per_s": EDITS / seconds,
        "flops": flops,
        "share_of_peak": flops / seconds / peak / 1e12,
    }


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
        except (SeesawError, RuntimeError) as error:
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
            use_tf32(model)
            with products_of(model):
                facts["tf32"] = apart(TrieScorer(model, tokens).score(clozes[:400]), exact)
        return facts

    bfloat16 = peak["bfloat16"]
    return attempt(
        {name: partial(scoring, model, tokens, part, bfloat16, rounds) for name, part in work.items()}
        | {
            "blocks": lambda: blocks_of_edits(model, tokens, clozes),
            "memit": lambda: editing(model, tokens, "memit", bfloat16),
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
        model, tokens = load_model(name, device=device, dtype=dtype, progress=False)
        with products_of(model):
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


def of_server(named: str, rounds: int, limit: int = CLOZES) -> dict[str, Any]:
    """Seconds that a server takes for the clozes of `of_model`, of "TOKENIZER=http://HOST:PORT/v1"."""
    tokenizer, _, where = named.partition("=")
    if not where.startswith("http"):
        raise SystemExit(f"--server: got {named!r}, expected TOKENIZER=http://HOST:PORT/v1.")
    job = Job(where, changed=(f"it={where}",), tokenizer=tokenizer)
    model = find_served(where, "--server", job)
    assert model is not None
    work = unique(limit)["cross-subject"]
    base = ask_base(model, job, work[:24], None)
    base.scorer.score(work[:FEW])
    seconds = statistics.median(timeit.repeat(lambda: base.scorer.score(work), number=1, repeat=rounds))
    return {"pairs": len(work), "seconds": seconds, "noise": base.measured["noise"]}


def main() -> None:
    """Measure each part and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", nargs="*", default=["llama-3-8b", "gpt-j-6b"], choices=SHAPES)
    parser.add_argument("--model", action="append", default=[], help="a real model; give it again for more")
    parser.add_argument("--server", action="append", default=[], metavar="TOKENIZER=URL", help="of a served model")
    parser.add_argument("--side", type=int, default=SIDE, help="of the square product that gives the peak")
    parser.add_argument("--out", type=Path, default=Path("gpu.json"))
    given = parser.parse_args()
    peak = rates(given.device, given.side)
    record: dict[str, Any] = machine() | {"device": given.device, "peak_tflops": peak}
    if given.device != "cpu":
        record["gpu"] = torch.cuda.get_device_name()

    def write() -> None:
        write_text(given.out, json.dumps(record, indent=1, default=float) + "\n")

    for named in given.server:
        record[named] = of_server(named, given.rounds)
        write()
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
