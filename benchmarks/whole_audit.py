"""A whole audit, from reading to report: seconds of each part beside what its operations need on this machine.

    python -m benchmarks.whole_audit [--model MODEL] [--limit 8] [--moments FOLDER]

runs `seesaw-cf audit --editor memit --control random` and its report on `sample` twice, each in a process of its
own on one thread: once timed, once with the operations of products and of attention counted by torch. Between the parts
the timed one multiplies matrices of the model's own shapes. A part's bound is its operations over the rate of those
products; the ratio is its CPU seconds over its bound. Scores before the edit are computed, second moments are taken
from the cache.

writes benchmarks/results/whole_audit.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from transformers import PreTrainedModel

from benchmarks.editors_common import RESULTS, machine
from benchmarks.flops import flop_counter
from benchmarks.real_model import real_model
from seesaw_cf.base.files import cache_folder, write_text
from seesaw_cf.models.corpus import sample_corpus
from seesaw_cf.models.load import load_model
from seesaw_cf.report import report
from seesaw_cf.run import edits, job, jobs, runner

TEXTS = 400
ROWS = (64, 1024)
"""Rows of the products: a pass of an editor's packed texts, and one of scoring."""


def write_report(folder: Path) -> None:
    """Write the report of a finished run."""
    report(folder).write(folder / "report")


# Part -> where the function that does it is looked up; a part within another counts for itself alone.
PARTS: dict[str, tuple[Any, str]] = {
    "reading and noise floor": (job, "make_run"),
    "scores before": (edits.ScoresBefore, "_score"),
    "second moments": (runner.Run, "fit"),
    "editing": (runner, "edit_units"),
    "scores after": (runner, "score_edits"),
    "shards and tables": (runner.Run, "complete"),
    "report": (sys.modules[__name__], "write_report"),
}


@dataclass
class Meter:
    """CPU seconds, or operations, of each part.

    Attributes:
        now: Reads the clock or the counter.
        spent: Part -> what it took.
        between: Called before each part.
    """

    now: Callable[[], float]
    between: Callable[[], None]
    spent: Counter[str] = field(default_factory=Counter)
    within: list[str] = field(default_factory=list)
    since: float = 0.0

    def turn(self) -> None:
        """Book what was spent since the last turn on the part that is under way."""
        if self.within:
            self.spent[self.within[-1]] += self.now() - self.since  # type: ignore[assignment]
        self.between()
        self.since = self.now()

    def metered(self, part: str, do: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, booked on its part."""

        def inside(*args: Any, **kwargs: Any) -> Any:
            self.turn()
            self.within.append(part)
            try:
                return do(*args, **kwargs)
            finally:
                self.turn()
                self.within.pop()

        return inside


class Products:
    """Matrix products of a model's shapes, some at a time."""

    def __init__(self, model: PreTrainedModel) -> None:
        shapes = Counter(tuple(part.weight.shape) for part in model.modules() if isinstance(part, torch.nn.Linear))
        self.pairs = [
            (torch.randn(rows, shape[1]), torch.randn(shape).T) for shape, n in shapes.items() if n > 1 for rows in ROWS
        ]
        self.operations = sum(2.0 * left.shape[0] * right.numel() for left, right in self.pairs)
        self.last, self.rates = 0.0, list[float]()

    def sample(self) -> None:
        """Measure the rate, unless it was measured less than 10 CPU seconds ago."""
        start = time.process_time()
        if self.rates and start - self.last < 10:
            return
        for _ in range(4):
            for left, right in self.pairs:
                torch.mm(left, right)
        self.rates.append(4 * self.operations / (time.process_time() - start))
        self.last = time.process_time()


def audit(args: argparse.Namespace) -> dict[str, Any]:
    """Run the audit in this process: seconds and rates, or operations."""
    torch.set_num_threads(1)
    real, model = cache_folder(), args.model or str(real_model())
    counter = flop_counter()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        cache, out, texts = (Path(folder, name) for name in ("cache", "out", "texts.txt"))
        cache.mkdir()
        for kept in ("models", "second_moments"):
            (real / kept).mkdir(parents=True, exist_ok=True)
            (cache / kept).symlink_to(real / kept)
        texts.write_text("\n".join(" ".join(text.split()) for text in sample_corpus(TEXTS)), encoding="utf-8")
        stack.enter_context(mock.patch.dict(os.environ, SEESAW_CF_CACHE=str(cache)))
        products = Products(load_model(model, device="cpu", progress=False)[0])
        if args.count:
            stack.enter_context(counter)
            meter = Meter(lambda: float(counter.get_total_flops()), lambda: None)
        else:
            products.sample()
            meter = Meter(time.process_time, products.sample)
        for part, (owner, name) in PARTS.items():
            stack.enter_context(mock.patch.object(owner, name, meter.metered(part, getattr(owner, name))))
        what = jobs.Job(
            model,
            editors=(args.editor,),
            controls=(args.control,),
            data="sample",
            configs=("cross_subject", "cross_property"),
            limit=args.limit,
            moments=args.moments,
            corpus=None if args.moments else texts,
            control_seeds=1,
        )
        job.make_run(what, out).complete()
        write_report(out)
    return {"spent": dict(meter.spent), "rates": products.rates}


def one(args: list[str]) -> dict[str, Any]:
    """Run the audit in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.whole_audit", *args]
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Runs both, prints the table and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="default: that of benchmarks.real_model")
    parser.add_argument("--editor", default="memit")
    parser.add_argument("--control", default="random")
    parser.add_argument("--limit", type=int, default=8, help="cases of each config")
    parser.add_argument("--moments", help="a folder of `seesaw-cf share --moments` in place of texts of the sample")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--count", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.alone:
        print(json.dumps(audit(args)))
        return
    given = [*sys.argv[1:], "--alone"]
    timed, counted = one(given), one([*given, "--count"])
    rate = sum(timed["rates"]) / len(timed["rates"])
    rows = {
        part: {"seconds": timed["spent"].get(part, 0.0), "operations": counted["spent"].get(part, 0.0)}
        for part in PARTS
    }
    rows["all"] = {key: sum(row[key] for row in rows.values()) for key in ("seconds", "operations")}
    print(f"{rate / 1e9:.0f} GFLOP/s on one core\n\n{'part':26}{'CPU s':>9}{'10^12':>9}{'bound, s':>10}{'ratio':>8}")
    for part, row in rows.items():
        row["bound"] = row["operations"] / rate
        row["ratio"] = row["seconds"] / row["bound"] if row["bound"] else float("nan")
        print(
            f"{part:26}{row['seconds']:9.1f}{row['operations'] / 1e12:9.2f}{row['bound']:10.1f}{row['ratio']:8.2f}",
            flush=True,
        )
        row["ratio"] = row["ratio"] if row["bound"] else None  # type: ignore[assignment]
    options = {key: value for key, value in vars(args).items() if key not in ("alone", "count")}
    record = {**options, "rate": rate, "rates": timed["rates"], "parts": rows, **machine()}
    write_text(RESULTS / "whole_audit.json", json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
