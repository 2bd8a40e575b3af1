"""`seesaw-cf import`: released record files into a dataset folder."""

from __future__ import annotations

import argparse

from seesaw_cf.base.terminal import markdown_for_terminal
from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import own_folder, source


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf import`."""
    add = parser.add_argument
    add("paths", nargs="+", metavar="PATH", type=source, help="JSON, JSON-lines or Parquet file, or a folder of them")
    add("--out", required=True, type=own_folder, metavar="DIR", help="dataset folder to make")
    add("--skip-bad", action="store_true", help="leave malformed records out and count them")
    add("--force", action="store_true", help="move aside what already lies at DIR (to DIR.before-import)")


def run(args: argparse.Namespace) -> None:
    """Import the files and print what is in them."""
    from seesaw_cf.records import import_files

    summary = import_files(args.paths, args.out, force=args.force, skip_bad=args.skip_bad)
    say(markdown_for_terminal(summary.to_markdown()))
    say("\n".join(["", *summary.left_out()]))
    if summary.moved_aside is not None:
        say(f"\nWhat lay there before is now {summary.moved_aside}.")
    configs = " ".join(f"--config {file.name}" for file in summary.files)
    say(f"\nWritten to {summary.out}. Use it with: seesaw-cf audit --data {summary.out} {configs} ...")
