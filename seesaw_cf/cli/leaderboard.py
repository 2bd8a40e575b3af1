"""`seesaw-cf leaderboard ORG/NAME|FOLDER`: verified rows beside each other."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.output import open_page, say
from seesaw_cf.cli.paths import name_or_source, output_file
from seesaw_cf.errors import RecordError


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `seesaw-cf leaderboard`."""
    add = parser.add_argument
    add(
        "source",
        type=name_or_source,
        metavar="ORG/NAME|FOLDER",
        help="leaderboard on the Hub, or a folder with its submissions/",
    )
    add("--revision", help="branch, tag or commit on the Hub")
    add("--out", type=output_file, metavar="FILE.html", help="also write a page that needs no network")
    add("--overwrite", action="store_true", help="replace the page when it is there")
    add("--open", action="store_true", help="open the page in the browser")


def run(args: argparse.Namespace) -> None:
    """Prints the tables, and writes the page."""
    from seesaw_cf.io.files import write_new
    from seesaw_cf.sharing.leaderboard import leaderboard_page, leaderboard_text
    from seesaw_cf.sharing.submit import fetch_leaderboard

    if args.open and args.out is None:
        raise RecordError("leaderboard: --open opens the page, which needs a name. Give it with --out FILE.html.")
    rows = fetch_leaderboard(args.source, args.revision)
    say(leaderboard_text(rows))
    if args.out is not None:
        write_new([(args.out, leaderboard_page(rows, args.source))], overwrite=args.overwrite)
        say(f"\nWritten: {args.out}")
        if args.open:
            open_page(args.out)
