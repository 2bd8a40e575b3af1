"""`seesaw-cf labels`: tasks for raters who work in Label Studio, and their answers back as tables."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from seesaw_cf.cli.actions import command
from seesaw_cf.cli.options import seed_option, wording_option
from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import output_folder, source
from seesaw_cf.cli.types import one_of, positive, share

if TYPE_CHECKING:
    from seesaw_cf.texts.label_studio.projects import Project

KINDS = ("flaws", "survey", "claims", "failures")


def _export_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("kind", **one_of(*KINDS), help="what raters are asked")
    add("folder", type=source, metavar="RUN", help="run folder of `seesaw-cf leme run`")
    add("--out", type=output_folder, required=True, help="folder for tasks.json, config.xml and key.json")
    add("--sample", type=positive, help="only this many texts, drawn evenly over relations")
    add("--duplicates", type=share, default=0.1, help="share of pairs that are rated twice (flaws; default: 0.1)")
    add("--hide-edit", action="store_true", help="do not tell raters what was edited")
    wording_option(parser)
    add("--overwrite", action="store_true", help="replace files that are there")
    seed_option(parser, "pairs, their order and the order of texts")


def _import_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("results", type=source, metavar="RESULTS", help="the project exported as JSON")
    add("--key", type=source, required=True, help="the key.json that was written with the tasks")
    add("--out", type=output_folder, required=True, help="folder for the Parquet tables")
    add("--raters", default="LS", metavar="WORD", help="what raters are called, before their number (default: LS)")
    add("--overwrite", action="store_true", help="replace files that are there")


def _export(args: argparse.Namespace) -> None:
    from seesaw_cf.base.files import write_new

    project = _project(args)
    files = {
        "tasks.json": json.dumps(project.tasks(), ensure_ascii=False, indent=1) + "\n",
        "config.xml": project.config,
        "key.json": json.dumps(project.key(), ensure_ascii=False, indent=1) + "\n",
    }
    write_new([(args.out / name, text) for name, text in files.items()], overwrite=args.overwrite)
    (args.out / "key.json").chmod(0o600)
    say(f"{len(project.items)} tasks in {args.out / 'tasks.json'}; paste {args.out / 'config.xml'} into the project's")
    say(f"labelling interface, and keep {args.out / 'key.json'} from raters.")


def _project(args: argparse.Namespace) -> Project:
    from seesaw_cf.base.errors import RecordError
    from seesaw_cf.texts.label_studio.projects import KINDS, project_of
    from seesaw_cf.texts.people.design import sampled
    from seesaw_cf.texts.people.making import Settings
    from seesaw_cf.texts.runs import RunTexts
    from seesaw_cf.texts.wording import read_wording

    settings = Settings(args.hide_edit, wording=read_wording(args.wording))
    material = KINDS[args.kind][0].make(RunTexts(args.folder), settings)
    if not material.items:
        raise RecordError(f"{args.folder}: no texts for {args.kind}. Expected a run with a coupled config.")
    items = sampled(material.items, min(args.sample or len(material.items), len(material.items)), args.seed)
    return project_of(args.kind, replace(material, items=items), args.seed, args.duplicates)


def _import(args: argparse.Namespace) -> None:
    from seesaw_cf.base.files import write_new
    from seesaw_cf.base.tables import table_bytes
    from seesaw_cf.texts.label_studio.projects import tables_of

    tables = tables_of(args.results, args.key, args.raters)
    written = [(args.out / f"{name}.parquet", table_bytes(table)) for name, table in tables.items()]
    write_new(written, overwrite=args.overwrite)
    for name, table in tables.items():
        raters = set(table.column("annotator" if "annotator" in table.column_names else "rater").to_pylist())
        say(f"{name}.parquet: {table.num_rows} rows by {len(raters)} raters")


configure, run = command(
    {
        "export": ("tasks and labelling configuration from the texts of a run", _export_options, _export),
        "import": ("a JSON export of Label Studio back into tables", _import_options, _import),
    }
)
