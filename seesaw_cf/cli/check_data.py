"""`seesaw-cf check-data`: does a reader of records keep the promises that runs rest on?"""

from __future__ import annotations

import argparse

from seesaw_cf.cli.from_fields import options_from
from seesaw_cf.cli.output import say_clauses
from seesaw_cf.cli.paths import name_or_source
from seesaw_cf.run.jobs import Job


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf check-data`."""
    parser.add_argument("reader", type=name_or_source, help="FILE.py, package.module:function, or a name")
    options_from(parser, Job, ("configs",))


def run(args: argparse.Namespace) -> None:
    """Check every clause and print it with what breaks it.

    Raises:
        RecordError: Some clause is broken.
    """
    from seesaw_cf.records.readers import PLUGINS, check_reader

    for config in args.configs or ("cross_subject",):
        say_clauses(args.reader, check_reader(args.reader, config), PLUGINS.page)
