"""`seesaw-cf bias`: bias benchmarks before and after a change of the model."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.options import load, model_options, quiet_option, report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import name_or_source, output_folder

_BENCHMARKS = ("bbq", "crows_pairs", "winogender", "winobias", "stereoset")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf bias`."""
    model_options(parser)
    add = parser.add_argument
    benchmark = f"NAME=WHERE: files of its authors, or a data set on the Hub; {', '.join(_BENCHMARKS)}. Repeatable"
    add("--benchmark", type=name_or_source, action="append", required=True, metavar="NAME=WHERE", help=benchmark)
    changed = "NAME=WHERE: changed model, as for `seesaw-cf run --changed`. Repeatable"
    add("--changed", type=name_or_source, action="append", required=True, metavar="NAME=WHERE", help=changed)
    add("--out", type=output_folder, required=True, metavar="DIR", help="for the logs and the report")
    report_options(parser, pictures=False)
    quiet_option(parser)


def run(args: argparse.Namespace) -> None:
    """Score, write a log of every model, and compare them."""
    from seesaw_cf.logs.bias import BiasJob, bias_comparison, bias_items

    job = BiasJob(bias_items(args.benchmark), tuple(args.changed), args.out)
    comparison = bias_comparison(job, *load(args))
    say(comparison.report().write(args.out / "report", full=args.full))
    show(args, args.out / "report" / "report.html")
