"""`seesaw-cf labels`: tasks for raters who work in Label Studio, and their answers back as tables."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from seesaw_cf.cli.actions import Actions, add_actions, run_action
from seesaw_cf.cli.options import seed_option
from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import output_folder, source
from seesaw_cf.cli.types import one_of, positive, share

if TYPE_CHECKING:
    from seesaw_cf.texts.label_studio.projects import Project

KINDS = ("flaws", "survey", "claims", "failures")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add both actions and their options."""
    add_actions(parser, _ACTIONS)


def run(args: argparse.Namespace) -> None:
    """Run one action."""
    run_action(args, _ACTIONS)


def _export_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("kind", **one_of(*KINDS), help="what raters are asked")
    add("folder", type=source, metavar="RUN", help="run folder of `seesaw-cf leme run`")
    add("--out", type=output_folder, required=True, help="folder for tasks.json, config.xml and key.json")
    add("--sample", type=positive, help="only this many pairs, drawn evenly over relations (flaws)")
    add("--duplicates", type=share, default=0.1, help="share of pairs that are rated twice (flaws; default: 0.1)")
    add("--hide-edit", action="store_true", help="do not tell raters what was edited (flaws)")
    add("--wording", type=source, metavar="FILE", help="JSON or YAML with other words, such as the papers' own (flaws)")
    add("--overwrite", action="store_true", help="replace files that are there")
    seed_option(parser, "pairs, their order and the order of texts")


def _import_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("results", type=source, metavar="RESULTS", help="the project exported as JSON")
    add("--key", type=source, required=True, help="the key.json that was written with the tasks")
    add("--out", type=output_folder, required=True, help="folder for the Parquet tables")
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
    from seesaw_cf.base.errors import RecordError, RunFolderError
    from seesaw_cf.base.tables import read_table
    from seesaw_cf.base.text import read_json
    from seesaw_cf.texts.flaws.rating_sheets import SheetOptions, edit_sentences
    from seesaw_cf.texts.label_studio import projects
    from seesaw_cf.texts.rate.survey import survey_samples
    from seesaw_cf.texts.tables import PASSAGES
    from seesaw_cf.texts.wording import read_wording
    from seesaw_cf.texts.write.claims import claim_pairs
    from seesaw_cf.texts.write.pairs import passage_pairs, sample_pairs
    from seesaw_cf.texts.write.passages import records_of_run
    from seesaw_cf.texts.write.writing import EDITS

    passages = read_table(args.folder / "passages.parquet", PASSAGES)
    if args.kind == "flaws":
        file = args.folder / "edits.parquet"
        edits = edit_sentences(read_table(file, EDITS)) if file.exists() and not args.hide_edit else None
        how = SheetOptions((), args.seed, args.duplicates, read_wording(args.wording))
        return projects.flaw_project(sample_pairs(passage_pairs(passages)[0], args.sample, args.seed), how, edits)
    records = records_of_run(read_json(args.folder / "manifest.json", error=RunFolderError), passages)
    coupled = [record for record in records if "subject_entity" in record]
    case_ids = {record["case_id"] for record in coupled}
    texts = passages.filter([case in case_ids for case in passages["case_id"].to_pylist()])
    if args.kind == "claims":
        project = projects.claim_project(claim_pairs(texts, coupled), args.seed)
    else:
        make = {"survey": projects.survey_project, "failures": projects.failure_project}[args.kind]
        project = make(survey_samples(texts, coupled), args.seed)
    if not project.items:
        raise RecordError(f"{args.folder}: no texts for {args.kind}. Expected a run with a coupled config.")
    return project


def _import(args: argparse.Namespace) -> None:
    from seesaw_cf.base.files import write_new
    from seesaw_cf.base.tables import table_bytes
    from seesaw_cf.texts.label_studio.projects import tables_of

    tables = tables_of(args.results, args.key)
    written = [(args.out / f"{name}.parquet", table_bytes(table)) for name, table in tables.items()]
    write_new(written, overwrite=args.overwrite)
    for name, table in tables.items():
        raters = set(table.column("annotator" if "annotator" in table.column_names else "rater").to_pylist())
        say(f"{name}.parquet: {table.num_rows} rows by {len(raters)} raters")


_ACTIONS: Actions = {
    "export": ("tasks and labelling configuration from the texts of a run", _export_options, _export),
    "import": ("a JSON export of Label Studio back into tables", _import_options, _import),
}
