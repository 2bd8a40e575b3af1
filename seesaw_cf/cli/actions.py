"""Commands with actions, such as `seesaw-cf flaws judge`: one table says what each is called, takes and does."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TypeVar

_Does = TypeVar("_Does")
Table = Mapping[str, tuple[str, Callable[[argparse.ArgumentParser], None], _Does]]
Actions = Table[Callable[[argparse.Namespace], object]]
"""Action -> (one line of help, its options, what it does)."""


def add_actions(parser: argparse.ArgumentParser, actions: Table[_Does]) -> list[argparse.ArgumentParser]:
    """Adds actions and their options; the parser of each, in order."""
    known = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    found = []
    for name, (text, configure, _) in actions.items():
        found.append(known.add_parser(name, help=text, description=text))
        configure(found[-1])
    return found


def run_action(args: argparse.Namespace, actions: Actions) -> None:
    """Runs the action that was given."""
    actions[args.action][2](args)
