"""Time and memory of group effects on a million score rows with 2,000 bootstrap draws.

    python benchmarks/edit_bias_speed.py

writes benchmarks/results/edit_bias_speed.json.
"""

from __future__ import annotations

import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from seesaw_cf.effects import group_effects, prompt_effects
from seesaw_cf.files import write_text
from seesaw_cf.tables import SCORES

RESULTS = Path(__file__).parent / "results"
ROWS, CASES, PEOPLE, DRAWS = 1_000_000, 1_000, 5_000, 2_000
RACES = [["white"], ["Black"], ["East Asian"], ["Jewish", "white"], ["Latine"], []]


def table(rows: int, seed: int = 0) -> pa.Table:
    """A score table: four rows (pre and post, new and true target) per prompt."""
    rng = np.random.default_rng(seed)
    prompts = rows // 4
    case, person = rng.integers(0, CASES, prompts), rng.integers(0, PEOPLE, prompts)
    race = rng.integers(0, len(RACES), PEOPLE)[person]
    four = np.arange(rows) % 4
    each = np.repeat(np.arange(prompts), 4)
    of_prompt = {
        "case_id": case,
        "prompt_id": np.arange(prompts),
        "subject_id": np.char.add("Q", person.astype(str)),
        "gender": [[["male"], ["female"]][p % 2] for p in person],
        "race": [RACES[r] for r in race],
        "region": [[] for _ in person],
    }
    columns = {name: pa.array(column).take(pa.array(each)) for name, column in of_prompt.items()}
    columns |= {"role": pa.array(np.where(four % 2, "target_true", "target_new"))}
    columns |= {"phase": pa.array(np.where(four < 2, "pre", "post"))}
    columns |= {"logprob": pa.array(-rng.exponential(2, rows))}
    constant: dict[str, Any] = {
        "editor": "memit",
        "edit_relation": "P27",
        "effect_relation": "P27",
        "kind": "cross_subject",
    }
    constant |= {"template_id": "P27-cloze-01", "prompt": "X is a citizen of", "subject": "X", "holds": "target_new"}
    constant |= {"target": "Y", "gold": False, "n_tokens": 1, "greedy": False, "status": "ok"}
    columns |= {name: pa.array([value]).take(pa.array(np.zeros(rows, int))) for name, value in constant.items()}
    return pa.table({name: columns[name].cast(SCORES.field(name).type) for name in SCORES.names})


def main() -> None:
    """Times the two steps and writes the result."""
    scores = table(ROWS)
    start = time.perf_counter()
    prompts = prompt_effects(scores)
    middle = time.perf_counter()
    effects = group_effects(prompts, draws=DRAWS)
    end = time.perf_counter()
    result = {
        "score_rows": scores.num_rows,
        "prompts": len(prompts),
        "cases": CASES,
        "groups": len(effects),
        "draws": DRAWS,
        "seconds_pairing": round(middle - start, 2),
        "seconds_groups": round(end - middle, 2),
        "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "cores": os.cpu_count(),
    }
    write_text(RESULTS / "edit_bias_speed.json", json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
