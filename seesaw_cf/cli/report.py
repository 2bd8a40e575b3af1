"""`seesaw-cf report`: tables and pictures from a finished run."""

from __future__ import annotations

import argparse
from pathlib import Path

from seesaw_cf.cli.options import above_zero, at_least_zero, fields_of, inside, one_of, path
from seesaw_cf.cli.output import say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `seesaw-cf report`."""
    parser.add_argument("folder", metavar="RUN", type=path, help="run folder that `seesaw-cf run --out` wrote")
    add = parser.add_argument
    add("--out", type=path, metavar="DIR", help="folder for the files (default: RUN/report)")
    add(
        "--margin", type=above_zero, default=0.02, help="smaller contrasts of probability do not matter (default: 0.02)"
    )
    add(
        "--margin-log-odds",
        type=above_zero,
        default=0.1,
        help="the same in log-odds (nats), which decide where the answers' probabilities are too small (default: 0.1)",
    )
    add("--alpha", type=inside, default=0.05, help="level of tests (default: 0.05)")
    corrections = "for many tests, over each declared family (default: holm)"
    add("--correction", **one_of("holm", "bh", "by"), default="holm", help=corrections)
    add("--family", default="editor,relation,axis", help="columns whose values name a family (default: %(default)s)")
    methods = "where errors come from; mixed: a mixed model, needs statsmodels (default: clustered)"
    add("--method", **one_of("clustered", "mixed"), default="clustered", help=methods)
    floor = "effects of probability up to this are noise (default: what the run measured)"
    add("--noise-floor", type=at_least_zero, help=floor)
    add("--noise-floor-log-odds", type=at_least_zero, help="the same in log-odds, nats")
    add(
        "--noise-run", type=path, metavar="RUN2", help="measure the floor against the pre-edit scores of this other run"
    )
    add("--dose-run", type=path, metavar="DIR", help="also show the curves of a `seesaw-cf dose` folder")


def run(args: argparse.Namespace) -> None:
    """Writes the report and prints its tables."""
    from seesaw_cf.report import AuditSettings, write_report

    settings = fields_of(AuditSettings, args)
    settings["family"] = tuple(name.strip() for name in args.family.split(",") if name.strip())
    if args.noise_run is not None:
        settings |= _measured(args.folder, args.noise_run)
    say(write_report(args.folder, args.out, settings=AuditSettings(**settings), dose=args.dose_run))


def _measured(folder: Path, again: Path) -> dict[str, float]:
    """The noise floors in probability and log-odds: pre-edit scores of two runs that differ in batch size or dtype."""
    from seesaw_cf.effects import noise_floor
    from seesaw_cf.tables import SCORES, read_table

    first, second = (read_table(run / "scores.parquet", SCORES) for run in (folder, again))
    in_log_odds = noise_floor(first, second, score="log_odds")
    return {"noise_floor": noise_floor(first, second), "noise_floor_log_odds": in_log_odds}
