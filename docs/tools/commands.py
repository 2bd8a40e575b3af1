"""The command reference, from the parsers that read the commands."""

from __future__ import annotations

import argparse
import html
from collections.abc import Iterator

from seesaw_cf.cli import COMMANDS, parser
from seesaw_cf.cli.actions import subcommands

HEAD = """# Command reference

`seesaw-cf COMMAND --help` prints the same in a terminal. `seesaw-cf --version` prints the version, `--debug` before any
command shows the full traceback of an error. Commands exit with 0 on success, 1 after an error, 2 when an option is
wrong, and 130 after Ctrl-C; what was finished is kept, and the same command continues. No command writes onto what it
reads or what another command made; `--json FILE` replaces only a file that the same command wrote.

"""


def commands() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command and every command below one, such as "flaws export", with its parser."""
    for name in COMMANDS:
        yield from _below(name, subcommands(parser(name))[name])


def _below(name: str, found: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, found
    for word, lower in subcommands(found).items():
        yield from _below(f"{name} {word}", lower)


def options(found: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """(title of its group, action) of every option and argument, without `--help` and what is hidden."""
    for group in found._action_groups:
        for action in group._group_actions:
            hidden = action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction)
            if not hidden and "--help" not in action.option_strings:
                yield group.title or "", action


def command_page() -> str:
    """Markdown: one section per command, in the order of `seesaw-cf --help`."""
    return HEAD + "\n".join(_section(name, found) for name, found in commands())


def _section(name: str, found: argparse.ArgumentParser) -> str:
    lines = ["#" * (2 + name.count(" ")) + f" {name}", "", f"{html.escape(found.description or '')}", ""]
    usage = found.format_usage().strip().removeprefix("usage: ")
    lines += ["```text", usage.replace("\n" + " " * len("usage: "), "\n"), "```", ""]
    title = None
    for group, action in options(found):
        if group != title and group not in ("options", "positional arguments"):
            lines += [f"**{group[:1].upper()}{group[1:]}**", ""]
        title = group
        lines += [f"`{_words(action)}`", f":   {_help(found, action)}", ""]
    return "\n".join(lines)


def _words(action: argparse.Action) -> str:
    """`--model MODEL`, or the name of an argument."""
    name = action.metavar or action.dest.upper()
    value = name if isinstance(name, str) else " ".join(name)
    if not action.option_strings:
        return value
    return ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {value}")


def _help(found: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = found._get_formatter()._expand_help(action).rstrip(".") if action.help else ""
    parts = ["**Required.**"] if action.option_strings and action.required else []
    parts += [html.escape(text, quote=False).replace("*", r"\*").replace("_", r"\_") + "."] if text else []
    if action.choices:
        parts.append("One of " + ", ".join(f"`{choice}`" for choice in action.choices) + ".")
    if action.default not in (None, "", [], False, argparse.SUPPRESS) and "default" not in text:
        parts.append(f"Default: `{action.default}`.")
    return " ".join(parts) or "No further help."
