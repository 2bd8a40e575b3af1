"""`seesaw-cf leme`: what edited models write at length, and the instruments that rate it."""

from __future__ import annotations

import argparse
from pathlib import Path

from seesaw_cf.base.text import read_json
from seesaw_cf.cli.actions import command
from seesaw_cf.cli.from_fields import options_from, values_of
from seesaw_cf.cli.options import output_options, report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import name_or_source, output_folder, source
from seesaw_cf.cli.train import train, training_options
from seesaw_cf.texts.job import LemeJob


def _configure_run(parser: argparse.ArgumentParser) -> None:
    output_options(parser)
    report_options(parser)
    options_from(parser, LemeJob)


def _configure_report(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", metavar="RUN", type=source, nargs="?", help="run folder that `seesaw-cf leme run --out` wrote")
    add("--out", type=output_folder, metavar="DIR", help="for the report (default: RUN/report)")
    raters = "people's answers: folders, Parquet files, CSV as released; beside those of RUN when it is given"
    add("--raters", type=source, nargs="+", default=[], metavar="TABLE", help=raters)
    scores = "run folder of `seesaw-cf audit` with the same model, editors and edits: the short form"
    add("--scores", type=source, metavar="RUN2", help=scores)
    measures = "nli:MODEL, bertscore:ENCODER or perplexity:MODEL, each a Hub id or folder; repeatable"
    add("--measure", action="append", type=name_or_source, default=[], metavar="NAME:MODEL", help=measures)
    references = "texts about new targets for the reference score, as CounterFact's attribute_snippets.json"
    add("--references", type=source, metavar="FILE", help=references)
    report_options(parser)


def _report(args: argparse.Namespace) -> None:
    from seesaw_cf.base.errors import RecordError
    from seesaw_cf.texts.report.write import report_people, report_run

    if args.folder is None and not (args.raters and args.out):
        raise RecordError("leme report: give RUN, or --raters TABLE with --out DIR, or both.")
    out: Path = args.out or args.folder / "report"
    if args.folder is not None:
        extras = {"scores": args.scores, "measures": args.measure, "references": args.references}
        say(report_run(args.folder, out, **extras, pictures=args.pictures))
    if args.raters:
        where = out if args.folder is None else out / "people"
        say(report_people(args.raters, where, args.folder, pictures=args.pictures))
    show(args, out / "report.html")


def _run(args: argparse.Namespace) -> None:
    from seesaw_cf.texts.run import run_leme

    changes = values_of(LemeJob, args)
    if "editor_config" in changes:
        changes["editor_config"] = read_json(changes["editor_config"])
    say(run_leme(LemeJob(**changes), args.out, progress=not args.quiet, pictures=args.pictures))
    show(args, args.out / "report" / "report.html")


configure, run = command(
    {
        "run": ("write passages before and after edits, rate and annotate them, report", _configure_run, _run),
        "report": (
            "the papers' tables of a finished run, with its short form, measures that need a model, reference texts",
            _configure_report,
            _report,
        ),
        "train-annotator": (
            "supports, neutral or contradicts: train on annotated passages, measured on unseen samples",
            training_options,
            train,
        ),
        "train-rater": (
            "ratings from 1 to 7: train on rated passages, measured on unseen samples",
            training_options,
            train,
        ),
    }
)
