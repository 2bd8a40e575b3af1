"""`seesaw-cf export`: a run in the form of another collection of evaluations."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import output_folder, source
from seesaw_cf.cli.types import one_of, positive


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf export`."""
    add = parser.add_argument
    add("source", type=source, metavar="RUN", help="finished run")
    add("--out", type=output_folder, required=True, metavar="DIR", help="folder below which data/ is written")
    add("--organisation", required=True, help="who evaluated")
    kinds = ("first_party", "third_party", "collaborative", "other")
    add("--relationship", **one_of(*kinds), default="third_party", help="of who evaluated to who made the model")
    add("--when", type=positive, metavar="SECONDS", help="time of the record since 1970 (default: now)")


def run(args: argparse.Namespace) -> None:
    """Write the records of Every Eval Ever and name them."""
    from seesaw_cf.sharing.every_eval import export_run

    files = export_run(args.source, args.out, args.organisation, relationship=args.relationship, when=args.when)
    say("Written, each with its samples beside it:\n" + "\n".join(map(str, files)))
