"""Does torch.compile pay on a CPU? One MLP of the 25M-parameter models, compiled, as the library has it, and as scored.

    python -m benchmarks.compiled

Only a block's MLP can be compiled: the rest of a block changes with every pass (masks, attention by window) and every
edit (hooks). Passes of different lengths, one thread, CPU seconds, in turn; compilation is wall time, since it happens
in other processes. Needs a C++ compiler. Writes benchmarks/results/compiled.json.
"""

from __future__ import annotations

import copy
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.scoring_work import small_model
from seesaw_cf.base.files import write_text
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.scoring.fast.activations import fused_activations

RESULT = Path(__file__).parent / "results" / "compiled.json"
LENGTHS = (1000, 980, 1010, 890, 764)
ROUNDS = 12


def spent(do: Callable[[torch.Tensor], Any], given: list[torch.Tensor]) -> float:
    """CPU seconds of one call for each input."""
    start = time.process_time()
    for values in given:
        do(values)
    return time.process_time() - start


def measure(kind: str) -> dict[str, Any]:
    """Medians over rounds of the three ways, and what compiling costs."""
    model = small_model(kind)
    parts = model_parts(model)
    mlp: Any = parts.block(0).mlp
    compiled = torch.compile(copy.deepcopy(mlp), dynamic=True)
    given = [torch.randn(1, length, int(model.config.hidden_size)) for length in LENGTHS]
    with torch.inference_mode():
        start = time.perf_counter()
        for values in given:
            compiled(values)
        compilation = time.perf_counter() - start
        rows = []
        for _ in range(ROUNDS):
            row = {"compiled": spent(compiled, given), "library": spent(mlp, given)}
            with fused_activations(model):
                row["scored"] = spent(mlp, given)
            rows.append(row)
        difference = max(float((compiled(values) - mlp(values)).abs().max()) for values in given)
    seconds = {way: statistics.median(row[way] for row in rows) for way in rows[0]}
    ratios = {way: statistics.median(row["compiled"] / row[way] for row in rows) for way in ("library", "scored")}
    quartiles = {way: statistics.quantiles(row["compiled"] / row[way] for row in rows)[::2] for way in ratios}
    return {
        "model": kind,
        "rounds": ROUNDS,
        "seconds": seconds,
        "compiled_over": ratios,
        "quartiles": quartiles,
        "compilation_seconds": compilation,
        "max_difference": difference,
    }


def main() -> None:
    """Measures both shapes."""
    torch.set_num_threads(1)
    rows = [measure(kind) for kind in ("gpt2", "llama")]
    write_text(RESULT, json.dumps({"torch": torch.__version__, "lengths": LENGTHS, "mlp": rows}, indent=1) + "\n")
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
