"""`seesaw-cf run`: the main job."""

from __future__ import annotations

import argparse

from seesaw_cf.base.retrying import stages
from seesaw_cf.cli.from_fields import options_from, values_of
from seesaw_cf.cli.options import job_of, output_options, paper_option, report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import output_folder
from seesaw_cf.run.jobs import Job, Workers


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf run`."""
    add = parser.add_argument
    options_from(parser, Job)
    options_from(parser, Workers)
    output_options(parser)
    add("--report", type=output_folder, help="folder for tables and pictures (default: OUT/report)")
    paper_option(parser)
    report_options(parser)
    add("--keep-deltas", action="store_true", help="save every edit below OUT/deltas, for `seesaw-cf share`")


def run(args: argparse.Namespace) -> None:
    """Run the job that the options describe and print its conclusion, or all its tables."""
    job = job_of(args)  # names are checked before anything heavy is imported
    from seesaw_cf.run.job import run_job

    workers = Workers(**values_of(Workers, args))
    run_job(job, args.out, keep_deltas=args.keep_deltas, progress=not args.quiet, workers=workers)
    from seesaw_cf.report import write_report

    with stages("tables", 6, silent=args.quiet):
        screen = write_report(args.out, args.report, pictures=args.pictures, paper=args.paper)
    say(screen)
    show(args, (args.report or args.out / "report") / "report.html")
