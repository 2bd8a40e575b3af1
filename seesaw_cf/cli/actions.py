"""Commands with actions, such as `seesaw-cf flaws judge`: one table gives the name, options and work of each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from seesaw_cf.base.errors import unknown_name
from seesaw_cf.cli import gone

_Does = TypeVar("_Does")
Table = Mapping[str, tuple[str, Callable[[argparse.ArgumentParser], None], _Does]]
Actions = Table[Callable[[argparse.Namespace], object]]
"""Action -> (one line of help, its options, what it does)."""


def add_actions(parser: argparse.ArgumentParser, actions: Table[_Does]) -> list[argparse.ArgumentParser]:
    """Add actions and their options; the parser of each, in order."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    parsers = []
    for name, (text, configure, _) in actions.items():
        parsers.append(commands.add_parser(name, help=text, description=text))
        configure(parsers[-1])
        verbose_option(parsers[-1])
    return parsers


def verbose_option(parser: argparse.ArgumentParser) -> None:
    """Add `-v`; without a default, so that an action does not undo what its command was given."""
    about = "say more about what is done"
    parser.add_argument("-v", "--verbose", action="store_true", default=argparse.SUPPRESS, help=about)


def command(actions: Actions) -> tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], None]]:
    """Return `configure` and `run` of a command that has actions."""

    def configure(parser: argparse.ArgumentParser) -> None:
        add_actions(parser, actions)

    def run(args: argparse.Namespace) -> None:
        actions[args.action][2](args)

    return configure, run


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return name -> parser of what may follow; argparse has no public way to ask."""
    lists = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {name: lower for choices in lists for name, lower in choices.items()}


def check_names(parser: argparse.ArgumentParser, words: Sequence[str], within: str = "") -> None:
    """Exit with status 2 at the first unknown command or option: say what replaces a removed one, or suggest near ones.

    argparse tells about a missing option first, and never suggests. As there, a prefix of an option stands for it, a
    word with a space is a value, and `--` ends the options.
    """
    commands = subcommands(parser)
    options = [name for name in parser._option_string_actions if name.startswith("--")]
    for place, word in enumerate(words):
        name = word.partition("=")[0]
        if word == "--":
            return
        if word.startswith("--") and " " not in word and not any(option.startswith(name) for option in options):
            removed = gone.instead("option", name, gone.OPTIONS)
            parser.error(removed or str(unknown_name("option", name, options)))
        path = f"{within} {word}".strip()
        removed = gone.instead("command", path, gone.COMMANDS) if commands or place == 0 else None
        if removed:
            parser.error(removed)
        if commands and not word.startswith("-"):
            if word not in commands:
                parser.error(str(unknown_name("command", word, commands)))
            check_names(commands[word], words[place + 1 :], path)
            return
