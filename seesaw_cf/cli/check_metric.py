"""`seesaw-cf check-metric`: can a metric of yours be computed on a run, and does it say what it rests on?"""

from __future__ import annotations

import argparse

from seesaw_cf.cli.output import say_clauses
from seesaw_cf.cli.paths import name_or_source, source


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf check-metric`."""
    parser.add_argument("metric", type=name_or_source, help="FILE.py, package.module:Class, or a name")
    parser.add_argument("folder", metavar="RUN", type=source, help="run folder that `seesaw-cf run --out` wrote")


def run(args: argparse.Namespace) -> None:
    """Check every clause and print it with what breaks it.

    Raises:
        RecordError: Some clause is broken.
    """
    from seesaw_cf.metrics.plugins import PLUGINS, check_metric

    name = PLUGINS.name(args.metric)  # before tables are read
    from seesaw_cf.report import read_results

    results = read_results(args.folder)
    tables = [table for table in (results.prompts, results.answers) if table is not None]
    say_clauses(name, check_metric(name, tables), PLUGINS.page)
