"""`seesaw-cf submit RUN --to ORG/NAME`: a verified run onto a leaderboard."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import source


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `seesaw-cf submit`."""
    add = parser.add_argument
    add("source", type=source, metavar="RUN", help="the folder that `seesaw-cf run` wrote, whole")
    board = "leaderboard, a data set on the Hub; made when it does not exist, private without --public"
    add("--to", required=True, metavar="ORG/NAME", help=board)
    add("--public", action="store_true", help="make a new leaderboard public")
    add("--dry-run", action="store_true", help="verify the run, print the rows and stop")


def run(args: argparse.Namespace) -> None:
    """Verifies the run, publishes its rows and prints the address."""
    from seesaw_cf.io.hub import check_repo
    from seesaw_cf.sharing.leaderboard_rows import rows_text
    from seesaw_cf.sharing.submit import submission, submit

    check_repo(args.to)
    if args.dry_run:
        file, rows = submission(args.source)
        say(f"{rows_text(rows)}\nVerified: {rows[0].checked}. Would be {file} of {args.to}; nothing was published.")
        return
    url, rows = submit(args.source, args.to, public=args.public)
    editors = ", ".join(row.editor for row in rows)
    say(f"Verified: {rows[0].checked}. Published: {editors} on {rows[0].model}, run {rows[0].run[:12]}.\n{url}")
