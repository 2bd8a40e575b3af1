"""`seesaw-cf check-editor`: does an editor keep the promises that runs, reports and sharing rest on?"""

from __future__ import annotations

import argparse

from seesaw_cf.cli.from_fields import options_from
from seesaw_cf.cli.options import CORPUS, DATA, cases_of, load, model_options
from seesaw_cf.cli.output import say_clauses
from seesaw_cf.cli.types import positive
from seesaw_cf.editors.plugins import PAGE, editor_name
from seesaw_cf.run.jobs import Job


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf check-editor`."""
    parser.add_argument("editor", help="a name of `seesaw-cf list editors`, FILE.py or package.module:Class")
    model_options(parser)
    options_from(parser, Job, (*DATA, *CORPUS, "editor_config"))
    parser.add_argument("--facts", type=positive, default=2, help="facts that are edited together (default: 2)")


def run(args: argparse.Namespace) -> None:
    """Check every clause and print it with what breaks it.

    Raises:
        RecordError: Some clause is broken.
    """
    name = editor_name(args.editor)
    from seesaw_cf.editors.contract import check_contract
    from seesaw_cf.models.corpus import corpus_of
    from seesaw_cf.run.make_editors import make_editor, read_settings, settings_of

    cases = cases_of(args)
    model, tokenizer = load(args)
    settings = settings_of(name, read_settings(args.editor_config, (name,)))
    corpus = corpus_of(args.corpus, args.model, args.corpus_limit)
    editor = make_editor(name, model, settings, corpus, cases[args.facts :])
    clauses = check_contract(editor, model, tokenizer, [case.request for case in cases[: args.facts]])
    say_clauses(name, clauses, PAGE)
