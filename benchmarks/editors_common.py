"""What the editor benchmarks share: a model with random weights (speed does not depend on weights), edits, timing."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq
import torch
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.files import write_text
from seesaw_cf.records import table_to_cases
from seesaw_cf.types import EditRequest

ROOT = Path(__file__).resolve().parents[1]
TINY = ROOT / "seesaw_cf" / "models" / "seesaw-tiny"
RESULTS = Path(__file__).parent / "results"
TEMPLATES = (
    "{}",
    "The story goes on. {}",
    "Therefore it was late. {}",
    "Because of that. {}",
    "I think so. {}",
    "You. {}",
)


def gpt2(layers: int = 14, width: int = 384, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """A GPT-2 with random weights and a vocabulary of 16,384."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "n_layer": layers,
        "n_head": width // 64,
        "n_embd": width,
        "vocab_size": 16_384,
        "n_positions": 256,
    }
    config = GPT2Config(**shape, bos_token_id=0, eos_token_id=0)
    model: PreTrainedModel = GPT2LMHeadModel(config).eval()
    torch.nn.Module.to(model, dtype)
    return model


def tokenizer() -> PreTrainedTokenizerBase:
    """The embedded model's tokenizer."""
    found: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(TINY)
    return found


def requests(n: int) -> list[EditRequest]:
    """Edits of the embedded sample, spread over its relations."""
    table = pq.read_table(ROOT / "seesaw_cf" / "data" / "cross_subject")
    cases = table_to_cases(table)
    return [case.request for case in cases[:: max(1, len(cases) // n)]][:n]


def interleaved(variants: dict[str, Callable[[], Any]], rounds: int) -> dict[str, dict[str, float]]:
    """Runs the variants in rotating order; median wall and processor seconds of each."""
    names = list(variants)
    wall: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    for index in range(rounds):
        for name in names[index % len(names) :] + names[: index % len(names)]:
            started, used = time.perf_counter(), time.process_time()
            variants[name]()
            wall[name].append(time.perf_counter() - started)
            cpu[name].append(time.process_time() - used)
    return {name: {"wall_s": median(wall[name]), "cpu_s": median(cpu[name])} for name in names}


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    facts = {"threads": torch.get_num_threads(), "cpus": os.cpu_count(), "machine": platform.machine()}
    return {**facts, "torch": torch.__version__, "python": platform.python_version()}


def report(name: str, settings: dict[str, Any], times: dict[str, Any], slow: str, fast: str, **facts: Any) -> None:
    """Writes benchmarks/results/<name>.json and prints it."""
    ratios = {kind: times[slow][kind] / times[fast][kind] for kind in ("wall_s", "cpu_s")}
    found = {"settings": settings, "times": times, "speedup": ratios, **facts, **machine()}
    text = json.dumps(found, indent=1)
    write_text(RESULTS / f"{name}.json", text + "\n")
    print(text)


def relative(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> list[float]:
    """Relative differences in norm."""
    return [float((a.double() - b.double()).norm() / b.double().norm()) for a, b in zip(found, expected)]


def resident(what: str) -> int:
    """VmRSS (now) or VmHWM (highest since the last reset) of this process, bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(what))


def reset_peak() -> None:
    """Let `resident("VmHWM")` begin again."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
