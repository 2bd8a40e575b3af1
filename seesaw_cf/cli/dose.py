"""`seesaw-cf dose`: effects against the number of facts edited together."""

from __future__ import annotations

import argparse
from pathlib import Path

from seesaw_cf.cli.from_fields import options_from, values_of
from seesaw_cf.cli.options import EDITING, job_of, output_options, report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import source
from seesaw_cf.run.jobs import DosePlan, Job


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf dose`."""
    add = parser.add_argument
    options_from(parser, Job, EDITING, required=("editors",))
    options_from(parser, DosePlan, ("doses", "repeats", "pairs", "people"))
    add("--text", type=source, help="text file, one text a line, whose perplexity is watched (default: embedded texts)")
    output_options(parser)
    report_options(parser)


def run(args: argparse.Namespace) -> None:
    """Run, and write tables and pictures."""
    job = job_of(args)  # names are checked before anything heavy is imported
    from seesaw_cf.report.dose import write_dose_report
    from seesaw_cf.run.dose import run_dose

    plan = DosePlan(**values_of(DosePlan, args), texts=_texts(args.text))
    run_dose(job, plan, args.out, progress=not args.quiet)
    say(write_dose_report(args.out, pictures=args.pictures))
    show(args, args.out / "report" / "report.html")


def _texts(file: Path | None) -> tuple[str, ...]:
    from seesaw_cf.base.text import read_text
    from seesaw_cf.models.corpus import sample_corpus

    if file is None:
        return tuple(sample_corpus(20, seed=0))
    return tuple(line for line in read_text(file).splitlines() if line.strip())
