"""lm_eval on this package's engine against lm_eval's own `hf`: BBQ, of a base alone, and of a base with eight edits.

    python -m benchmarks.harness_speed --bbq BBQ/data --turns 2
    python -m benchmarks.harness_speed --bbq BBQ/data --model seesaw-tiny --layer 1 --turns 2 --each

needs the extra harness and writes its part of benchmarks/results/harness_speed.json. All are asked the same requests
of lm_eval. Times are those of its `loglikelihood`, tokens and sorting included. `hf` is timed at the better of two
batch sizes. It is asked of the base and counted nine times for nine models, or with `--each` of all nine. Where there
are fewer items than asked for, all of them are copied again and again, and each copy of the whole begins with a number
of its own. Items share a beginning within a copy, as BBQ's four forms of a scene do, and not between copies.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

from benchmarks.engine import delta
from benchmarks.scoring_work import cpu_or_wall
from benchmarks.turns import in_turn, ratios
from seesaw_cf.base.files import write_text
from seesaw_cf.harnesses.ability import SharingLM
from seesaw_cf.harnesses.lm_eval_model import SeesawLM
from seesaw_cf.logs.bias_items import read_bias_items
from seesaw_cf.models import load_model
from seesaw_cf.models.weights import WeightDelta

__all__ = ["main"]

RESULTS = Path(__file__).parent / "results"
EDITS = 8
BATCHES = (8, 32)


def _requests(folder: Path, count: int) -> list[Instance]:
    items = read_bias_items("bbq", folder)
    copies = (divmod(at, len(items)) for at in range(count))
    asked = [(f"{copy}. {items[at].context}" if copy else items[at].context, items[at].choices) for copy, at in copies]
    pairs = [(context, f" {choice}") for context, choices in asked for choice in choices]
    return [Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=0) for pair in pairs]


def _of_all(lm: SharingLM, requests: Sequence[Instance]) -> list[Any]:
    """Answers of every model, from nothing."""
    for known in lm.answers.values():
        known.clear()
    answers = []
    for name in lm.answers:
        lm.turn_to(name)
        answers.append(lm.loglikelihood(requests, disable_tqdm=True))
    return answers


def _of_each(lm: HFLM, changes: Sequence[WeightDelta], requests: Sequence[Instance]) -> list[Any]:
    """Answers of lm_eval's own model for the base and each of its edited versions."""
    answers = []
    for change in (WeightDelta(), *changes):
        with change.applied(lm.model):
            answers.append(lm.loglikelihood(requests, disable_tqdm=True))
    return answers


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bbq", type=Path, required=True)
    parser.add_argument("--model", default="smollm2-135m-q4")
    parser.add_argument("--items", type=int, default=160)
    parser.add_argument("--layer", type=int, default=8, help="first edited one of three")
    parser.add_argument("--each", action="store_true", help="ask `hf` of all models, not of the base nine times over")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model, tokenizer = load_model(args.model, device="cpu")
    requests = _requests(args.bbq, args.items)
    layers = tuple(range(args.layer, args.layer + 3))
    changes = [delta(model, layers, n) for n in range(EDITS)]
    sharing = SharingLM(model, tokenizer, {f"edit {n}": change for n, change in enumerate(changes)})
    answers: dict[str, Any] = {}

    def timed(name: str, ask: Callable[[], Any], _: int = 0) -> float:
        return cpu_or_wall(lambda: answers.__setitem__(name, ask()), model)

    own, part = SeesawLM(model, tokenizer), requests[: len(requests) // 4]
    batches = {size: HFLM(model, tokenizer=tokenizer, batch_size=size) for size in BATCHES}
    trial = {size: timed("trial", partial(lm.loglikelihood, part, disable_tqdm=True)) for size, lm in batches.items()}
    best = min(trial, key=trial.__getitem__)
    ways = {
        "hf": partial(batches[best].loglikelihood, requests, disable_tqdm=True),
        "seesaw": partial(own.loglikelihood, requests, disable_tqdm=True),
        "seesaw, base and edits": partial(_of_all, sharing, requests),
    }
    if args.each:
        ways["hf, nine models"] = partial(_of_each, batches[best], changes, requests)
    times = in_turn({name: partial(timed, name, ask) for name, ask in ways.items()}, 0, args.turns)
    if not args.each:
        answers["hf, nine models"] = [answers["hf"]]
        times["hf, nine models"] = [(1 + EDITS) * seconds for seconds in times["hf"]]
    asked_alike = zip(answers["hf, nine models"], answers["seesaw, base and edits"])
    pairs = [(answers["hf"], answers["seesaw"]), *asked_alike]
    record = {
        "model": args.model,
        "torch": torch.__version__,
        "items": args.items,
        "requests": len(requests),
        "edited layers": layers,
        "batch of hf": best,
        "nine models of hf": "all asked" if args.each else "nine times the base",
        "cpu_seconds": {name: statistics.median(taken) for name, taken in times.items()},
        "times_faster_base": ratios(times, "seesaw")["hf"],
        "times_faster_base_and_edits": ratios(times, "seesaw, base and edits")["hf, nine models"],
        "max_difference_nats": max(abs(a[0] - b[0]) for theirs, ours in pairs for a, b in zip(theirs, ours)),
    }
    file = RESULTS / "harness_speed.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    write_text(file, json.dumps(known | {args.model: record}, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
