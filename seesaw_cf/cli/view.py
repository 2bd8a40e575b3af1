"""`seesaw-cf view RUN`: every prompt of a run in the browser."""

from __future__ import annotations

import argparse
import math

from seesaw_cf.base.errors import need
from seesaw_cf.cli.output import open_address, say
from seesaw_cf.cli.paths import source
from seesaw_cf.cli.types import seconds, whole

_LAST_PORT = 65_535


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf view`."""
    add = parser.add_argument
    add("folder", metavar="RUN", type=source, help="finished run")
    port = "of 127.0.0.1, 0 for any that is free (default: 8421)"
    add("--port", type=whole(0, _LAST_PORT), default=8421, metavar="N", help=port)
    add("--idle", type=seconds, metavar="SECONDS", help="stop when nobody has asked for so long (default: never)")
    add("--private", action="store_true", help="answer only who has the printed address: other people use this machine")
    add("--open", action="store_true", help="open it in the browser")


def run(args: argparse.Namespace) -> None:
    """Read the run and answer until Ctrl-C."""
    from seesaw_cf.report.view.prompts import open_prompts

    with need("starlette", extra="view", what_for="seesaw-cf view", otherwise="report.html needs nothing"):
        import starlette  # noqa: F401
    with need("uvicorn", extra="view", what_for="seesaw-cf view", otherwise="report.html needs nothing"):
        import uvicorn  # noqa: F401
    from seesaw_cf.report.view.server import PageServer

    with open_prompts(args.folder) as prompts, PageServer(prompts, args.port, args.private) as server:
        say(f"{prompts.total:,} prompts of {args.folder} at {server.url} (this machine only). Ctrl-C ends it.")
        if args.open:
            open_address(server.url)
        try:
            server.serve(math.inf if args.idle is None else args.idle)
        except KeyboardInterrupt:
            say("\nEnded; nothing was written.")
