"""`seesaw-cf report`: tables and pictures from a finished run."""

from __future__ import annotations

import argparse
from pathlib import Path

from seesaw_cf.cli.output import say

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `seesaw-cf report`."""
    parser.add_argument("folder", metavar="RUN", type=Path, help="run folder that `seesaw-cf run --out` wrote")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the files (default: RUN/report)")


def run(args: argparse.Namespace) -> None:
    """Writes the report and prints its tables."""
    from seesaw_cf.report import write_report

    say(write_report(args.folder, args.out))
