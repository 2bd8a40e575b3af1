"""`seesaw-cf report`: tables and pictures from a finished run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from seesaw_cf.base.checks import MOST_DRAWS
from seesaw_cf.base.retrying import stages
from seesaw_cf.cli.from_fields import values_of
from seesaw_cf.cli.options import paper_option, report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import output_folder, source
from seesaw_cf.cli.types import above_zero, at_least_zero, inside, one_of, seed, whole

if TYPE_CHECKING:
    from seesaw_cf.effects.audit import AuditSettings
    from seesaw_cf.effects.groups import BiasMode


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf report`."""
    runs = "run folder that `seesaw-cf run --out` wrote; several are compared, paired where they share cases"
    parser.add_argument("folders", metavar="RUN", type=source, nargs="+", help=runs)
    add = parser.add_argument
    add("--out", type=output_folder, metavar="DIR", help="for the files (default: RUN/report; needed for several)")
    smaller = "smaller contrasts of probability, below 0.25, do not matter (default: 0.02)"
    add("--margin", type=above_zero, default=0.02, help=smaller)
    add(
        "--margin-log-odds",
        type=above_zero,
        default=0.1,
        help="the same in log-odds (nats), which decide where the answers' probabilities are too small (default: 0.1)",
    )
    add("--alpha", type=inside, default=0.05, help="level of tests (default: 0.05)")
    corrections = "for many tests, over each declared family (default: holm)"
    add("--correction", **one_of("holm", "bh", "by"), default="holm", help=corrections)
    families = "columns whose values name a family, or report: all contrasts are one (default: %(default)s)"
    add("--family", default="editor", help=families)
    permutations = (
        "of people's labels, for p and correction; 0: Holm over p of t, safe and weak (default: 1999, more where a "
        "family has too many tests to call any equivalent)"
    )
    add("--permutations", type=whole(0, MOST_DRAWS), metavar="N", help=permutations)
    add("--seed", type=seed, default=0, help="of the permutations (default: 0)")
    floor = "effects of probability up to this are noise (default: what the run measured)"
    add("--noise-floor", type=at_least_zero, help=floor)
    add("--noise-floor-log-odds", type=at_least_zero, help="the same in log-odds, nats")
    again = "measure the floor against the pre-edit scores of this other run"
    add("--noise-run", type=source, metavar="RUN2", help=again)
    add("--dose-run", type=source, metavar="DIR", help="also show the curves of a `seesaw-cf dose` folder")
    paper_option(parser)
    report_options(parser)


def run(args: argparse.Namespace) -> None:
    """Write the report and print its conclusion, or all its tables."""
    from seesaw_cf.base.errors import RecordError
    from seesaw_cf.report import AuditSettings, write_report

    settings = values_of(AuditSettings, args)
    family = "" if args.family.strip() == "report" else args.family
    settings["family"] = tuple(name.strip() for name in family.split(",") if name.strip())
    folder = args.folders[0]
    if len(args.folders) > 1:
        _compare(args, AuditSettings(**settings))
    elif args.paper:
        raise RecordError(
            "report: --paper is about papers.md of several runs. Name more, or use "
            f"`seesaw-cf metrics {folder} --paper`."
        )
    else:
        settings |= {} if args.noise_run is None else _measured(folder, args.noise_run)
        declared = AuditSettings(**settings)
        forms = {"pictures": args.pictures, "full": args.full}
        with stages("tables", 6):
            screen = write_report(folder, args.out, settings=declared, dose=args.dose_run, **forms)
        say(screen)
    show(args, (args.out or folder / "report") / "report.html")


def _compare(args: argparse.Namespace, settings: AuditSettings) -> None:
    """Write the comparison of several runs and print how their edits took."""
    from seesaw_cf.base.errors import RecordError
    from seesaw_cf.study.write import compare_runs

    alone = [name for name in ("noise_run", "dose_run") if getattr(args, name)]
    if alone or args.out is None:
        wrong = f"--{alone[0].replace('_', '-')} is about one run" if alone else "--out is missing"
        raise RecordError(
            f"report: got {len(args.folders)} runs to compare, and {wrong}. "
            + ("Leave it out, or report each run alone." if alone else "Name a folder for the comparison with --out.")
        )
    mode: BiasMode = "paper" if args.paper else "crossed"
    say(compare_runs(args.folders, args.out, settings, mode=mode, pictures=args.pictures, full=args.full))


def _measured(folder: Path, again: Path) -> dict[str, float]:
    """Return the noise floors in probability and log-odds, of two runs' pre-edit scores (other batch size or dtype)."""
    from seesaw_cf.base.tables import SCORES, read_table
    from seesaw_cf.effects import noise_floor

    first, second = (read_table(run / "scores.parquet", SCORES) for run in (folder, again))
    in_log_odds = noise_floor(first, second, score="log_odds")
    return {"noise_floor": noise_floor(first, second), "noise_floor_log_odds": in_log_odds}
