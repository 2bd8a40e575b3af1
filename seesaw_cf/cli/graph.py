"""`seesaw-cf graph run` and `graph compare`: stereotype knowledge graphs, before and after an edit."""

from __future__ import annotations

import sys

from seesaw_cf.base.errors import SeesawError
from seesaw_cf.base.fields import OutputFolder, OwnFolder
from seesaw_cf.cli.output import say
from seesaw_cf.cli.parse import Flat
from seesaw_cf.texts.graph.settings import CompareJob, GraphJob

WARNING = """\
WARNING: these commands make a language model write what it has learnt to say about groups of people. What it writes is
offensive in places, can be upsetting, and is not true of anybody. Do not use it to judge people.
"""


def run(job: Flat[GraphJob], *, out: OwnFolder, acknowledge_content: bool = False, quiet: bool = False) -> None:
    """Crawl a model, score it, write the report below `out` and print its first screen.

    Args:
        out: Crawl folder; an interrupted crawl continues.
        acknowledge_content: The warning has been read.
        quiet: No progress bars.
    """
    sys.stderr.write(WARNING)
    if not acknowledge_content:
        raise SeesawError("give --acknowledge-content when you have read the warning above.")
    from seesaw_cf.texts.graph.run import run_graph

    say(run_graph(job, out, progress=not quiet))


def compare(job: Flat[CompareJob], *, out: OutputFolder | None = None) -> None:
    """Print what an edit changed, identity by identity, against controls.

    Args:
        out: Folder of the report; it is only printed without.
    """
    sys.stderr.write(WARNING)
    from seesaw_cf.texts.graph.run import compare_graphs

    say(compare_graphs(job, out))
