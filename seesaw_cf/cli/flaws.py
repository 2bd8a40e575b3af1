"""`seesaw-cf flaws`: rate flaws in pairs of texts, validate judges against people, report ratings."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.actions import command
from seesaw_cf.cli.flaws_judge import judge, judge_options
from seesaw_cf.cli.options import report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import output_file, output_folder, source
from seesaw_cf.cli.types import finite, one_of, positive


def _import_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", type=source, metavar="FILE", help="one rater's file as the SEESAW-CF authors released them")
    codings = "halves: 1, 1.5, 2; signed: -1, 0, 1 (default: auto)"
    add("--coding", **one_of("auto", "halves", "signed"), default="auto", help=codings)
    like = "ratings of another rater of the same study, as imported: the file must be about the same pairs"
    add("--like", type=source, metavar="TABLE", help=like)
    blank = "what an empty cell means (default: equal)"
    add("--blank", **one_of("equal", "missing"), default="equal", help=blank)
    add("--overwrite", action="store_true", help="replace files that are there")
    add("--rater", required=True, help="who rated")
    what = "Parquet file for the ratings; what is said of the edit goes to NAME.reflected"
    add("--out", type=output_file, required=True, help=what)


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


def _import(args: argparse.Namespace) -> None:
    from seesaw_cf.base.files import write_new
    from seesaw_cf.base.tables import read_table, table_bytes
    from seesaw_cf.texts.flaws.released import released_work
    from seesaw_cf.texts.tables import FLAWS

    like = read_table(args.like, FLAWS) if args.like else None
    work = released_work(args.file, args.rater, blank=args.blank, coding=args.coding, like=like)
    tables = {"": work.table, ".reflected": work.reflected}
    files = [(args.out.with_suffix(f"{name}{args.out.suffix}"), table_bytes(table)) for name, table in tables.items()]
    write_new(files, overwrite=args.overwrite)
    missing = work.table.column("change").null_count
    repeats = f" {work.known} rows repeat others word for word and count once." if work.known else ""
    say(f"{work.table.num_rows - missing} ratings by {args.rater}, {missing} left empty.{repeats}")


def _validate(args: argparse.Namespace) -> None:
    from seesaw_cf.base.tables import read_table
    from seesaw_cf.texts.report.collected import joined
    from seesaw_cf.texts.report.validity_page import write_validity_report
    from seesaw_cf.texts.tables import FLAWS

    table = joined("flaws", {path: read_table(path, FLAWS) for path in args.tables})
    say(write_validity_report(args.out, table, args.judge))
    show(args, args.out / "report.html")


def _report(args: argparse.Namespace) -> None:
    from seesaw_cf.texts.report.collected import collect
    from seesaw_cf.texts.report.flaw_page import write_flaw_report

    how = {"effects": args.effect or (0.1,), "per_rater": args.per_rater}
    say(write_flaw_report(args.out, collect(args.tables, ["flaws"]), args.judge, **how))
    show(args, args.out / "report.html")


configure, run = command(
    {
        "import": (
            "ratings as released with SEESAW-CF, as the table that judges write",
            _import_options,
            _import,
        ),
        "judge": ("let a language model rate", judge_options, judge),
        "validate": ("compare a judge with people", _validate_options, _validate),
        "report": ("the papers' tables from people's ratings, with judges beside them", _report_options, _report),
    }
)
