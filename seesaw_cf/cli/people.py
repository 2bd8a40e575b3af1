"""`seesaw-cf people`: tasks for raters who work in Label Studio or a spreadsheet, and their answers back as tables."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.actions import command
from seesaw_cf.cli.options import seed_option, wording_option
from seesaw_cf.cli.output import say, say_left_out
from seesaw_cf.cli.paths import output_folder, source
from seesaw_cf.cli.types import one_of, positive, share

_KINDS = ("flaws", "survey", "claims", "failures", "writing")


def _export_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("kind", **one_of(*_KINDS), help="what raters do")
    add(
        "folder",
        type=source,
        metavar="RUN",
        help="run of `leme run`; flaws: also passages, rated pairs, released CSV",
    )
    add("--out", type=output_folder, required=True, help="folder for tasks, configuration, sheet and key")
    add("--sample", type=positive, help="only this many texts, drawn evenly over relations")
    add("--duplicates", type=share, default=0.1, help="share of pairs that are rated twice (flaws; default: 0.1)")
    add("--hide-edit", action="store_true", help="do not tell raters what was edited")
    protocol = "flaws; published: raters know which text is from after the edit (default: blind)"
    add("--protocol", **one_of("blind", "published"), default="blind", help=protocol)
    add("--passage", nargs="+", default=["free", "guided"], help="flaws: which kinds of passages to pair")
    wording_option(parser)
    add("--overwrite", action="store_true", help="replace files that are there, filled or not")
    seed_option(parser, "sample, order of tasks and order of texts")


def _import_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("results", type=source, metavar="RESULTS", help="JSON export of Label Studio, or a filled sheet (.csv)")
    add("--key", type=source, required=True, help="the key.json that was written with the tasks")
    add("--out", type=output_folder, required=True, help="folder for the Parquet tables")
    rater = "who filled the sheet; of Label Studio: what raters are called, before their number (default: LS)"
    add("--rater", default="", metavar="WORD", help=rater)
    add("--overwrite", action="store_true", help="replace files that are there")


def _export(args: argparse.Namespace) -> None:
    from seesaw_cf.texts.people.files import export_people
    from seesaw_cf.texts.people.tasks import TaskOptions
    from seesaw_cf.texts.wording import read_wording

    options = TaskOptions(
        args.hide_edit, tuple(args.passage), args.protocol, args.duplicates, read_wording(args.wording), args.seed
    )
    result = export_people(args.folder, args.kind, args.out, options, args.sample, overwrite=args.overwrite)
    say_left_out(dict(result.left_out))
    say(f"{result.tasks} tasks in {args.out}. Label Studio: import tasks.json, and paste config.xml into the labelling")
    say("interface. A spreadsheet: give raters sheet.csv and instructions.txt. Keep key.json from them.")


def _import(args: argparse.Namespace) -> None:
    from seesaw_cf.base.files import write_new
    from seesaw_cf.base.tables import table_bytes
    from seesaw_cf.texts.people.files import import_people

    tables = import_people(args.results, args.key, args.rater)
    written = [(args.out / f"{name}.parquet", table_bytes(table)) for name, table in tables.items()]
    write_new(written, overwrite=args.overwrite)
    for name, table in tables.items():
        column = next((name for name in ("annotator", "rater") if name in table.column_names), "sample")
        raters = len(set(table.column(column).to_pylist()))
        missing = 0 if "status" not in table.column_names else table.column("status").to_pylist().count("not rated")
        say(f"{name}.parquet: {table.num_rows} rows by {raters} raters" + (f", {missing} not rated" if missing else ""))


configure, run = command(
    {
        "export": ("tasks from the texts of a run, for Label Studio or a spreadsheet", _export_options, _export),
        "import": ("what people answered, as the tables that judges write", _import_options, _import),
    }
)
