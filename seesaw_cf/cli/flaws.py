"""`seesaw-cf flaws`: rate flaws in pairs of texts, and report ratings of people and judges."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.actions import command
from seesaw_cf.cli.flaws_judge import judge, judge_options
from seesaw_cf.cli.options import report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import output_folder, source


def _report_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    tables = "ratings: Parquet files, folders of them, or CSV files as the SEESAW-CF authors released them"
    add("tables", type=source, nargs="+", metavar="TABLE", help=tables)
    add("--out", type=output_folder, required=True, help="folder for page and tables")
    report_options(parser)
    add("--judge", action="append", default=[], help="which rater is a model, not a person; give it again for more")


def _report(args: argparse.Namespace) -> None:
    from seesaw_cf.texts.report.write import report_people

    say(report_people(args.tables, args.out, judges=args.judge, pictures=args.pictures))
    show(args, args.out / "report.html")


configure, run = command(
    {
        "judge": ("let a language model rate", judge_options, judge),
        "report": ("the papers' tables from ratings of people and judges", _report_options, _report),
    }
)
