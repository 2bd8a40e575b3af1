"""`seesaw-cf tune`: an editor's settings for a model, found on edits that are not evaluated."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.options import (
    corpus_options,
    data_options,
    job_of,
    model_options,
    moments_option,
    output_options,
    positive,
    seed_option,
    threads,
)
from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import source
from seesaw_cf.editors.spaces import SPACES


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `seesaw-cf tune`."""
    model_options(parser)
    add = parser.add_argument
    add("--editor", required=True, help=f"editing method, out of {', '.join(SPACES)}; others need --space")
    add("--space", type=source, help='JSON file in place of the declared space: {"learning_rate": [0.1, 0.5], ...}')
    add("--trials", type=positive, default=12, help="settings that are tried, the preset among them (default: 12)")
    add("--first-edits", type=positive, default=8, help="edits of each trial (default: 8)")
    add("--finalists", type=positive, default=3, help="settings that are tried again (default: 3)")
    add("--final-edits", type=positive, default=16, help="edits of each of those, and of the preset (default: 16)")
    corpus_options(parser)
    moments_option(parser)
    data_options(parser)
    seed_option(parser)
    add("--threads", type=threads, help="CPU threads; results depend on them in the last digits (default: torch's)")
    output_options(parser, "folder of the search")


def run(args: argparse.Namespace) -> None:
    """Searches, and writes the settings and the page."""
    from seesaw_cf.io.text import read_json
    from seesaw_cf.report.tune import write_tune_report
    from seesaw_cf.run.tune import TunePlan, run_tune

    space = read_json(args.space, expected='{"learning_rate": [0.1, 0.5]}') if args.space else None
    numbers = {name: getattr(args, name) for name in ("trials", "first_edits", "finalists", "final_edits", "seed")}
    plan = TunePlan(**numbers, space=space)
    args.editor, args.control = [args.editor], None
    run_tune(job_of(args), plan, args.out, progress=not args.quiet)
    say(write_tune_report(args.out))
