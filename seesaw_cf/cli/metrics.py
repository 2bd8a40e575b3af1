"""`seesaw-cf metrics`: the metrics of a finished run, in one form of score, on the screen and as JSON."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from seesaw_cf.base.types import JsonObject
from seesaw_cf.cli.options import json_option, seed_option
from seesaw_cf.cli.output import say, write_numbers
from seesaw_cf.cli.paths import source
from seesaw_cf.cli.types import AXES, SCORES, one_of

if TYPE_CHECKING:
    from seesaw_cf.effects.groups import BiasMode
    from seesaw_cf.report import Results


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf metrics`."""
    add = parser.add_argument
    add("folder", metavar="RUN", type=source, help="run folder that `seesaw-cf run --out` wrote")
    add("--axis", action="append", **one_of(*AXES), help="give it again for more (default: all three)")
    scores = "form of D_d; normalised: per token, as the papers (default: summed)"
    add("--score", **one_of(*SCORES), default="summed", help=scores)
    add("--paper", action="store_true", help="the papers' tests and substring match, bootstrap over cases as interval")
    seed_option(parser, "the bootstrap of --paper")
    json_option(parser)


def run(args: argparse.Namespace) -> None:
    """Compute and print the metrics."""
    from seesaw_cf.report import read_results, terminal_report

    mode: BiasMode = "paper" if args.paper else "crossed"
    results = read_results(args.folder, score=args.score, axes=tuple(args.axis or AXES), seed=args.seed, mode=mode)
    write_numbers(args, _tables(results, args.seed))
    say(terminal_report(results))


def _tables(results: Results, seed: int) -> JsonObject:
    """Return every table as a list of records, `edit_success`, and what they were computed from."""
    tables = {
        "efficacy": results.efficacy,
        "edit_bias": results.effects,
        "cross_property_accuracy": results.accuracy,
        "knowledge": results.known.facts,
        "edit_bias_known": results.known.effects,
        "cross_property_accuracy_known": results.known.accuracy,
        "unscored": results.unscored,
    }
    rows = {name: frame.to_dict("records") for name, frame in tables.items()}
    about = {"run": str(results.folder), "score": results.score, "mode": results.mode, "seed": seed}
    about |= {"n_score_rows": results.n_rows, "noise_floor": results.floor.record()}
    if results.audit is not None:
        rows["verdicts"] = results.audit.verdicts.to_dict("records")
        rows["verdicts_known"] = results.audit.known.to_dict("records")
    return about | {"manifest": results.manifest, "edit_success": dict(results.success)} | rows
