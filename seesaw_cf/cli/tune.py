"""`seesaw-cf tune`: an editor's settings for a model, found on edits that are not evaluated."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.from_fields import options_from, values_of
from seesaw_cf.cli.options import CORPUS, DATA, MODEL, job_of, output_options, report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import source
from seesaw_cf.editors.spaces import SPACES
from seesaw_cf.run.jobs import Job, TunePlan


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf tune`."""
    add = parser.add_argument
    options_from(parser, Job, (*MODEL, *CORPUS, "moments", *DATA, "seed", "threads"))
    add("--editor", required=True, help=f"editing method, out of {', '.join(SPACES)}; others need --space")
    add("--space", type=source, help='JSON file in place of the declared space: {"learning_rate": [0.1, 0.5], ...}')
    options_from(parser, TunePlan, ("trials", "first_edits", "finalists", "final_edits"))
    output_options(parser, "folder of the search")
    report_options(parser, pictures=False)


def run(args: argparse.Namespace) -> None:
    """Search, and write the settings and the page."""
    args.editors = [args.editor]
    job = job_of(args)  # names are checked before anything heavy is imported
    from seesaw_cf.base.text import read_json
    from seesaw_cf.report.tune import write_tune_report
    from seesaw_cf.run.tune import run_tune

    space = read_json(args.space, expected='{"learning_rate": [0.1, 0.5]}') if args.space else None
    plan = TunePlan(**values_of(TunePlan, args) | {"space": space})
    run_tune(job, plan, args.out, progress=not args.quiet)
    say(write_tune_report(args.out, full=args.full))
    show(args, args.out / "report" / "report.html")
