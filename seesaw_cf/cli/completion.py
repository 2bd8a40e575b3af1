"""`seesaw-cf completion`: the script with which a shell completes commands, options and files."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.output import say

SHELLS = ("bash", "zsh", "tcsh")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=SHELLS, help="for example: seesaw-cf completion bash > ~/.seesaw-cf.bash")


def run(args: argparse.Namespace) -> None:
    """Print the script.

    Raises:
        MissingExtraError: The package shtab is not installed.
    """
    from seesaw_cf.base.errors import need
    from seesaw_cf.cli import COMMANDS, parser

    with need("shtab", extra="completion", what_for="completion in shells"):
        import shtab
    say(shtab.complete(parser(*COMMANDS, listed=True), shell=args.shell))
