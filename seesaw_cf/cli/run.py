"""`seesaw-cf run`: the main job."""

from __future__ import annotations

import argparse

from seesaw_cf.base.retrying import stages
from seesaw_cf.base.tracking import TRACKERS, tracking
from seesaw_cf.cli.from_fields import options_from
from seesaw_cf.cli.options import job_of, output_options, report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import output_folder
from seesaw_cf.cli.types import at_least_zero, one_of, positive
from seesaw_cf.run.explain import explain
from seesaw_cf.run.jobs import Job


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf run`."""
    add = parser.add_argument
    options_from(parser, Job)
    add("--engine", **one_of("local", "ray"), default="local", help="local also runs under torchrun (default: local)")
    add("--actors", type=positive, help="ray: number of actors (default: one per GPU, else per CPU)")
    add("--gpus", type=at_least_zero, help="ray: GPUs of one actor, such as 0.5 (default: 1 where there are any)")
    add("--ray-address", help="ray: a running cluster, or 'auto' (default: start one here)")
    exchange = "storage where machines without a common disk exchange what is done, such as s3://bucket/run"
    add("--exchange", metavar="URL", help=exchange)
    add("--track", **one_of(*TRACKERS), help="log the numbers there too, while they come about (extra of that name)")
    add("--explain", action="store_true", help="say how each block of edits is scored, and what it costs")
    output_options(parser)
    add("--report", type=output_folder, help="folder for tables and pictures (default: OUT/report)")
    report_options(parser)
    add("--keep-deltas", action="store_true", help="save every edit below OUT/deltas, for `seesaw-cf share`")


def run(args: argparse.Namespace) -> None:
    """Run the job that the options describe and print its conclusion, or all its tables."""
    job = job_of(args)  # names are checked before anything heavy is imported
    from seesaw_cf.run.job import run_job

    if args.explain:
        explain()
    with tracking(args.track, args.out.name, {"model": job.model, "editors": list(job.names)}):
        options = {name: getattr(args, name) for name in ("keep_deltas", "engine", "actors", "gpus", "exchange")}
        if not run_job(job, args.out, progress=not args.quiet, address=args.ray_address, **options):
            return
        from seesaw_cf.report import write_report

        with stages("tables", 6, silent=args.quiet):
            screen = write_report(args.out, args.report, pictures=args.pictures, full=args.full)
    say(screen)
    show(args, (args.report or args.out / "report") / "report.html")
