"""`seesaw-cf dose`: effects against the number of facts edited together."""

from __future__ import annotations

import argparse
from pathlib import Path

from seesaw_cf.cli.options import count, fields_of, job_of, job_options, open_option, output_options, positive
from seesaw_cf.cli.output import open_page, say
from seesaw_cf.cli.paths import source


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `seesaw-cf dose`."""
    job_options(parser)
    add = parser.add_argument
    add(
        "--dose",
        type=positive,
        action="append",
        help="edits made together; repeatable (default: 1, 10, 100, while facts last)",
    )
    add("--repeats", type=positive, default=5, help="samples drawn for each dose (default: 5)")
    add(
        "--pair",
        action="append",
        type=_pair,
        help="two relations to mix, such as P27,P101, each also alone; repeatable",
    )
    add("--people", type=count, default=5, help="prompts about other people for each edit (default: 5)")
    add("--text", type=source, help="text file, one text a line, whose perplexity is watched (default: embedded texts)")
    output_options(parser)
    open_option(parser)


def _pair(value: str) -> tuple[str, str]:
    parts = value.split(",")
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f"{value!r} is no pair of relations; expected something like P27,P101")
    return parts[0].strip(), parts[1].strip()


def run(args: argparse.Namespace) -> None:
    """Runs, and writes tables and pictures."""
    from seesaw_cf.report.dose import write_dose_report
    from seesaw_cf.run.dose import DosePlan, run_dose

    plan = fields_of(DosePlan, args) | {
        "doses": tuple(args.dose or ()),
        "pairs": tuple(args.pair or ()),
        "texts": _texts(args.text),
    }
    run_dose(job_of(args), DosePlan(**plan), args.out, progress=not args.quiet)
    say(write_dose_report(args.out))
    if args.open:
        open_page(args.out / "report.html")


def _texts(file: Path | None) -> tuple[str, ...]:
    from seesaw_cf.io.text import read_text
    from seesaw_cf.models.load import sample_corpus

    if file is None:
        return tuple(sample_corpus(20, seed=0))
    return tuple(line for line in read_text(file).splitlines() if line.strip())
