"""`seesaw-cf compare`: logs of evaluation harnesses, before and after a change of the model."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.options import report_options
from seesaw_cf.cli.output import say, show
from seesaw_cf.cli.paths import output_folder, source
from seesaw_cf.cli.types import above_zero, inside, one_of, seed, whole


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf compare`."""
    from seesaw_cf.base.checks import MOST_DRAWS

    log = "log of lm_eval or inspect_ai, a folder of one model's logs, or a table"
    parser.add_argument("base", metavar="BASE", type=source, help=f"the model before: {log}")
    parser.add_argument("changed", metavar="CHANGED", type=source, nargs="+", help="the same of changed models")
    add = parser.add_argument
    add("--out", type=output_folder, required=True, metavar="DIR", help="for the report")
    group = "field of items with the names of groups, such as gender, beside those of known benchmarks. Repeatable"
    add("--group", dest="groups", action="append", metavar="FIELD", help=group)
    cluster = "field that names what items share, such as passage; two cross (default: of known benchmarks)"
    add("--cluster", dest="clusters", action="append", metavar="FIELD", help=cluster)
    mapping = "CSV or Parquet with a column item, and groups or clusters in others"
    add("--mapping", type=source, metavar="FILE", help=mapping)
    metric = "metric to test (default: the first of a task with values from -1 to 1). Repeatable"
    add("--metric", dest="metrics", action="append", metavar="NAME", help=metric)
    add("--margin", type=above_zero, default=0.02, help="smaller changes of scores do not matter (default: 0.02)")
    nats = "the same of log-probabilities, nats, and other values (default: 0.1)"
    add("--margin-log-odds", type=above_zero, default=0.1, help=nats)
    add("--alpha", type=inside, default=0.05, help="level of each family of tests (default: 0.05)")
    flips = "flips of clusters, for p and correction; 0: Holm over p of t (default: 1999)"
    add("--permutations", type=whole(0, MOST_DRAWS), default=1999, metavar="N", help=flips)
    add("--seed", type=seed, default=0, help="of the flips (default: 0)")
    allow = "difference of the logs that is not refused. Repeatable"
    add("--allow", action="append", **one_of(*_ALLOWED), help=allow)
    errors = "how items with an error or without a score count: left-out, or wrong, as 0 (default: left-out)"
    add("--errors", **one_of("left-out", "wrong"), default="left-out", help=errors)
    report_options(parser, pictures=False)


def run(args: argparse.Namespace) -> None:
    """Compare and write the report."""
    from seesaw_cf.cli.from_fields import values_of
    from seesaw_cf.logs import CompareSettings, compare_logs

    settings = CompareSettings(**values_of(CompareSettings, args))
    comparison = compare_logs(args.base, args.changed, settings)
    comparison.write(args.out)
    say(comparison.terminal(args.out))
    show(args, args.out / "report.html")


_ALLOWED = ("version", "shots", "seeds", "template", "generation", "arguments", "epochs", "content", "cut")
