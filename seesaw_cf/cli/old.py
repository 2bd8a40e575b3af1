"""Commands that argparse still reads. One module per command, imported only when it is asked for."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys

from seesaw_cf import __version__
from seesaw_cf.base.checks import shown
from seesaw_cf.base.files import reading
from seesaw_cf.base.retrying import quiet, say_when_waiting
from seesaw_cf.cli.actions import check_names, verbose_option
from seesaw_cf.cli.option_groups import group_options
from seesaw_cf.cli.output import finish
from seesaw_cf.cli.paths import check_args

__all__ = ["COMMANDS", "GROUPS", "parser", "run"]

FIRST_LINE = 1.0  # seconds of silence

# Group -> command -> (module with `configure(parser)` and `run(args)`, one line of help).
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Data": {
        "import": ("seesaw_cf.cli.importing", "turn released record files into a dataset folder"),
        "tag": ("seesaw_cf.cli.tag", "groups, candidates and gold answers for records without"),
        "build": ("seesaw_cf.cli.build", "facts from Wikidata, another source or the sample into a dataset"),
        "publish": ("seesaw_cf.cli.publish", "a built dataset onto the Hugging Face Hub"),
    },
}

COMMANDS: dict[str, tuple[str, str]] = {name: row for group in GROUPS.values() for name, row in group.items()}


def parser(*configured: str | None) -> argparse.ArgumentParser:
    """Return the parser; of the commands only those that are named are imported and get their options.

    Args:
        *configured: Names of commands.
    """
    top = argparse.ArgumentParser(
        prog="seesaw-cf",
        description="Measures how editing a fact in a language model changes its other beliefs.",
        epilog=_groups(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"seesaw-cf {__version__}")
    top.add_argument("--debug", action="store_true", help="show the full traceback of an error")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", help="one of those below")
    for name, (module, text) in COMMANDS.items():
        sub = commands.add_parser(name, description=text)
        if name in configured:
            importlib.import_module(module).configure(sub)
            verbose_option(sub)
            group_options(sub)
    return top


def _groups() -> str:
    """List the commands, one a line, under the titles of their groups."""
    width = max(map(len, COMMANDS))
    parts = [
        f"{title}:\n" + "\n".join(f"  {name:{width}}  {text}" for name, (_, text) in group.items())
        for title, group in GROUPS.items()
    ]
    return "\n\n".join([*parts, "`seesaw-cf COMMAND --help` has the options of a command."])


def run(words: list[str]) -> None:
    """Run a command that argparse still reads."""
    command = next((word for word in words if word in COMMANDS), None)
    top = parser(command)
    _check_words(top, words)
    check_names(top, words)
    try:
        args = top.parse_args(words)
    except SystemExit:  # after --help, which may not have reached anybody
        finish()
        raise
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("seesaw_cf").setLevel(logging.INFO if getattr(args, "verbose", False) else logging.NOTSET)
    silent = getattr(args, "quiet", False)
    begins = "" if silent else f"seesaw-cf {args.command}: loading libraries and data ...\n"
    with quiet(silent), reading(check_args(top, args)), say_when_waiting(lambda: begins, FIRST_LINE, sys.stderr.write):
        importlib.import_module(COMMANDS[args.command][0]).run(args)


def _check_words(top: argparse.ArgumentParser, words: list[str]) -> None:
    """Refuse what no file, table or server could take, for any option."""
    for before, word in zip(["", *words], words):
        if word.endswith("=--"):  # argparse would hand over an empty list
            top.error(f"argument {word[:-3]}: got '--', expected a value")
        if "\0" in word or any("\ud800" <= char <= "\udfff" for char in word):
            option = f"argument {before}: " if before.startswith("-") else ""
            top.error(f"{option}got {shown(word)}, expected UTF-8 text without NUL characters")
