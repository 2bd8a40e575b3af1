"""`seesaw-cf report`: the report of a finished run, or of several side by side."""

from __future__ import annotations

import argparse
from pathlib import Path

from seesaw_cf.base.checks import MOST_DRAWS
from seesaw_cf.base.retrying import stages
from seesaw_cf.cli.from_fields import values_of
from seesaw_cf.cli.options import paper_option, report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import output_folder, source
from seesaw_cf.cli.types import above_zero, at_least_zero, inside, seed, whole


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf report`."""
    runs = "run folder that `seesaw-cf run --out` wrote; several are reported side by side"
    parser.add_argument("folders", metavar="RUN", type=source, nargs="+", help=runs)
    add = parser.add_argument
    add("--out", type=output_folder, metavar="DIR", help="for the files (default: RUN/report; needed for several)")
    smaller = "smaller differences of probability, below 0.25, do not matter (default: 0.02)"
    add("--margin", type=above_zero, default=0.02, help=smaller)
    nats = "the same in log-odds (nats), which decide where the answers' probabilities are small (default: 0.1)"
    add("--margin-log-odds", type=above_zero, default=0.1, help=nats)
    add("--alpha", type=inside, default=0.05, help="level of tests (default: 0.05)")
    families = "columns whose values name a family of tests, or report: all are one (default: %(default)s)"
    add("--family", default="editor", help=families)
    permutations = "of people's labels; 0: Holm over p of t, safe and weak (default: 1999, more for many tests)"
    add("--permutations", type=whole(0, MOST_DRAWS), metavar="N", help=permutations)
    add("--seed", type=seed, default=0, help="of the permutations (default: 0)")
    floor = "effects of probability up to this are noise (default: what the run measured)"
    add("--noise-floor", type=at_least_zero, help=floor)
    add("--noise-floor-log-odds", type=at_least_zero, help="the same in log-odds, nats")
    paper_option(parser)
    report_options(parser)


def run(args: argparse.Namespace) -> None:
    """Write the report and print its first screen."""
    from seesaw_cf.base.errors import RecordError
    from seesaw_cf.report import AuditSettings, report
    from seesaw_cf.report.several import report_several

    settings = values_of(AuditSettings, args)
    family = "" if args.family.strip() == "report" else args.family
    settings["family"] = tuple(name.strip() for name in family.split(",") if name.strip())
    declared = AuditSettings(**settings)
    if len(args.folders) > 1 and args.out is None:
        raise RecordError(
            f"report: got {len(args.folders)} runs, and --out is missing. Name a folder for their report with --out."
        )
    out: Path = args.out or args.folders[0] / "report"
    with stages("report", 6):
        if len(args.folders) > 1:
            made = report_several(args.folders, declared)
        else:
            made = report(args.folders[0], declared)
        made.write(out, pictures=args.pictures, paper=args.paper)
    say(made.terminal(out))
    show(args, out / "report.html")
