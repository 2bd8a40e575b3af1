"""`seesaw-cf flaws`: rate flaws in pairs of texts, validate judges against people, report ratings."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.actions import command
from seesaw_cf.cli.flaws_judge import judge, judge_options
from seesaw_cf.cli.flaws_sheets import export_options, export_sheets, import_options, import_sheets
from seesaw_cf.cli.options import report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import output_folder, source
from seesaw_cf.cli.types import finite, positive


def _validate_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("tables", type=source, nargs="+", metavar="TABLE", help="Parquet files of ratings, of people and of the judge")
    add("--judge", required=True, help="which rater is the judge")
    add("--out", type=output_folder, required=True, help="folder for page and tables")
    report_options(parser, pictures=False)


def _report_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("tables", type=source, nargs="+", metavar="TABLE", help="Parquet files of ratings, or folders of them")
    add("--out", type=output_folder, required=True, help="folder for page and tables")
    report_options(parser, pictures=False)
    add("--judge", action="append", default=[], help="which rater is a model, not a person; give it again for more")
    effect = "mean rating that a study should find, for its size; give it again for more (default: 0.1)"
    add("--effect", type=finite, action="append", help=effect)
    add("--per-rater", type=positive, help="edits that one rater takes, for the size of a study (default: as here)")


def _validate(args: argparse.Namespace) -> None:
    from seesaw_cf.base.tables import read_table
    from seesaw_cf.texts.report.collected import joined
    from seesaw_cf.texts.report.validity_page import write_validity_report
    from seesaw_cf.texts.tables import FLAWS

    table = joined("flaws", {path: read_table(path, FLAWS) for path in args.tables})
    say(write_validity_report(args.out, table, args.judge, full=args.full))
    show(args, args.out / "report.html")


def _report(args: argparse.Namespace) -> None:
    from seesaw_cf.texts.report.collected import collect
    from seesaw_cf.texts.report.flaw_page import write_flaw_report

    how = {"effects": args.effect or (0.1,), "per_rater": args.per_rater}
    say(write_flaw_report(args.out, collect(args.tables, ["flaws"]), args.judge, full=args.full, **how))
    show(args, args.out / "report.html")


configure, run = command(
    {
        "export": ("write a blind sheet for human raters", export_options, export_sheets),
        "import": ("read a filled sheet back", import_options, import_sheets),
        "judge": ("let a language model rate", judge_options, judge),
        "validate": ("compare a judge with people", _validate_options, _validate),
        "report": ("the papers' tables from people's ratings, with judges beside them", _report_options, _report),
    }
)
