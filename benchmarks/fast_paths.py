"""What every fast path of the trie scorer gains: the same work with all of them, and with all but one, in turn.

    python -m benchmarks.fast_paths --model seesaw-tiny FOLDER gpt2 --cases ../shared/reference/seesaw

"gpt2" and "llama" are the random 25M-parameter models of benchmarks/scoring.py; every other name is loaded. Ratios are
seconds without a path over seconds with it, so 1.05 means that the path saves 5 %. CPU seconds, medians of turns with
quartiles. Writes benchmarks/results/fast_paths.json, where models that are not measured keep their rows.
"""

from __future__ import annotations

import argparse
import json
import statistics
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from benchmarks.scoring_work import cpu_or_wall, small_model, tokenizer, workloads
from benchmarks.turns import in_turn
from seesaw_cf.base.files import write_text
from seesaw_cf.models.load import load_model
from seesaw_cf.scoring import TrieScorer
from seesaw_cf.scoring import encode as encode_many
from seesaw_cf.scoring.fast import PATHS
from seesaw_cf.types import Cloze

RESULT = Path(__file__).parent / "results" / "fast_paths.json"


def loaded(name: str, work: list[Cloze]) -> tuple[Any, Any]:
    """A model and its tokenizer."""
    if name in ("gpt2", "llama"):
        return small_model(name), tokenizer("work", work)
    model, tokens = load_model(name)
    return model, tokens


def without(path: str) -> Any:
    """A context in which one path is not taken."""
    if path == "parts of texts":
        return mock.patch.object(encode_many, "cuts_at_spaces", return_value=False)
    return mock.patch.dict(PATHS, {key: value for key, value in PATHS.items() if key != path}, clear=True)


def measure(name: str, work: dict[str, list[Cloze]], seconds: float) -> list[dict[str, Any]]:
    """Ratios of every path for one model on every kind of work."""
    model, tokens = loaded(name, [cloze for part in work.values() for cloze in part])
    scorer = TrieScorer(model, tokens)
    _ = scorer.support
    rows = []
    for kind, clozes in work.items():

        def timed(path: str, clozes: list[Cloze] = clozes) -> float:
            with without(path):
                return cpu_or_wall(lambda: scorer.score(clozes), model)

        ways = {path: partial(lambda path, _: timed(path), path) for path in ("", *PATHS, "parts of texts")}
        times = in_turn(ways, seconds)
        base = times.pop("")
        gains = {path: [own / other for own, other in zip(taken, base, strict=True)] for path, taken in times.items()}
        rows.append(
            {
                "model": Path(name).name,
                "work": kind,
                "clozes": len(clozes),
                "turns": len(base),
                "seconds": statistics.median(base),
                "without_over_with": {
                    path: dict(zip(("low", "ratio", "high"), statistics.quantiles(found), strict=True))
                    for path, found in gains.items()
                },
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", default=["seesaw-tiny", "gpt2"])
    parser.add_argument("--cases", type=Path, help="folder of the released files (default: the embedded sample)")
    parser.add_argument("--count", type=int, default=2, help="cases")
    parser.add_argument("--clozes", type=int, help="only so many clozes of each kind (a slow model)")
    parser.add_argument("--seconds", type=float, default=60.0, help="so long turns are taken for each kind of work")
    args = parser.parse_args()
    torch.set_num_threads(1)
    source, work = workloads(args.cases, args.count)
    some = {kind: clozes[: args.clozes] for kind, clozes in work.items()}
    rows = [row for name in args.model for row in measure(name, some, args.seconds)]
    others = json.loads(RESULT.read_text(encoding="utf-8"))["paths"] if RESULT.exists() else []
    rows += [row for row in others if row["model"] not in {Path(name).name for name in args.model}]
    write_text(RESULT, json.dumps({"source": source, "torch": torch.__version__, "paths": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
