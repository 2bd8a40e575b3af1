"""Time and memory of `edit_bias` on a million score rows with 2,000 bootstrap draws.

    python -m benchmarks.edit_bias_speed

times `evaluate.load("metrics/edit_bias").compute` on the 250,000 prompts behind a million score rows, and apart from it
the library on the score table; writes benchmarks/results/edit_bias_speed.json.
"""

from __future__ import annotations

import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import evaluate
import numpy as np
import pyarrow as pa

from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import SCORES
from seesaw_cf.effects import group_effects, prompt_effects

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


def columns(rows: int, seed: int = 0) -> dict[str, list[Any]]:
    """The columns of `edit_bias` for the prompts of `rows` score rows."""
    rng = np.random.default_rng(seed)
    prompts = rows // 4
    case, person = rng.integers(0, CASES, prompts), rng.integers(0, PEOPLE, prompts)
    race = rng.integers(0, len(RACES), PEOPLE)[person]
    found: dict[str, list[Any]] = {
        "case_id": case.tolist(),
        "prompt": [f"prompt {number} is a citizen of" for number in range(prompts)],
        "subject": [f"Q{number}" for number in person.tolist()],
        "groups": [RACES[r] for r in race],
    }
    for side in ("pre_new", "pre_true", "post_new", "post_true"):
        found[side] = (-rng.exponential(2, prompts)).tolist()
    return found


def peak_gb() -> float:
    """Largest resident memory of this process so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)


def through_evaluate() -> dict[str, Any]:
    """Seconds and memory of the metric module as a user calls it."""
    given = columns(ROWS)
    metric = evaluate.load(str(Path(__file__).parents[1] / "metrics" / "edit_bias"))
    start, cpu = time.perf_counter(), time.process_time()
    result = metric.compute(**given, axis="race", reference="white", draws=DRAWS)
    seconds = {"seconds": round(time.perf_counter() - start, 2), "cpu_seconds": round(time.process_time() - cpu, 2)}
    return seconds | {"groups": len(result["groups"]), "peak_memory_gb": peak_gb()}


def through_library() -> dict[str, Any]:
    """Seconds of pairing a score table and of the effects of its groups on three axes."""
    scores = table(ROWS)
    start = time.perf_counter()
    prompts = prompt_effects(scores)
    middle = time.perf_counter()
    effects = group_effects(prompts, draws=DRAWS)
    seconds = {"seconds_pairing": middle - start, "seconds_groups": time.perf_counter() - middle}
    return {name: round(value, 2) for name, value in seconds.items()} | {"groups": len(effects)}


def main() -> None:
    """Times both and writes the result."""
    result: dict[str, Any] = {
        "score_rows": ROWS,
        "prompts": ROWS // 4,
        "cases": CASES,
        "people": PEOPLE,
        "draws": DRAWS,
    }
    result |= {"evaluate": through_evaluate(), "library": through_library(), "peak_memory_gb": peak_gb()}
    result |= {"cores": os.cpu_count(), "load_average": [round(x, 1) for x in os.getloadavg()]}
    write_text(RESULTS / "edit_bias_speed.json", json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
