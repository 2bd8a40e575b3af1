"""What `--help` prints: the ways in, and of a command its options, one a line, the rarely needed ones at the end."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from seesaw_cf.base.fields import OneOf, Role
from seesaw_cf.base.terminal import description_list, wrap

if TYPE_CHECKING:
    from cyclopts.argument import Argument

WAYS_IN = """Measures what a change of a language model did to its other beliefs, for whom.

You have                           Do
a fine-tune, merge, adapter or     seesaw-cf audit BASE --changed mine=FOLDER
  quantised model
an editing method of your own      seesaw-cf new mine, then check and audit it
a known editing method             seesaw-cf audit MODEL --editor memit
two logs of lm_eval or inspect     seesaw-cf compare BASE CHANGED --group gender
nothing yet                        seesaw-cf audit seesaw-tiny --editor memit \\
                                       --limit 8

`seesaw-cf --help` lists the commands, `seesaw-cf COMMAND --help` its options."""

# Options that a command lists at its end by name: the documentation and `--help -v` explain them.
RARE = """--block --cache --contact --control-model --control-seeds --corpus-limit --dtype --engine
--examples --fail-if --gpus --ignore-damage --include --key-env --language --margin-log-odds --memory --moments --open
--answers --overwrite --people-per-edit --permutations --pictures --plain --public --quiet --repeats
--revision --save-checkpoints --seed --skip-bad --threads --timeout --topic-method --trust-remote-code"""
_METAVARS = {int: "N", float: "X", Path: "PATH"}
_NAMED = {"--out": "DIR", "--number": "RELATION=N", "--editor-config": "FILE"}
_NAMED |= dict.fromkeys(("--repo", "--space", "--push", "--base-model"), "ORG/NAME")
_NAMED |= dict.fromkeys(("--changed", "--control-model"), "NAME=WHERE")
_WIDEST = 30  # columns of options


@dataclass(frozen=True)
class Option:
    """One option or argument, as help and documentation show it.

    Attributes:
        label: With what it takes.
        text: What it does, with its default.
        name: "--limit", or "MODEL".
        required: It must be given.
    """

    label: str
    text: str
    name: str
    required: bool

    @property
    def rare(self) -> bool:
        """It is listed at the end."""
        return self.name in RARE.split()


def options(function: Callable[..., None]) -> Iterator[Option]:
    """Yield the arguments and options of a command."""
    from seesaw_cf.cli.parse import arguments

    for one in arguments(function):
        first = one.index is not None
        name = one.name.strip("-").upper() if first else one.name
        takes = "" if one.hint is bool else _NAMED.get(name) or _takes(one.field_info.annotation)
        several = "..." if get_origin(_plain(one.hint)) is tuple else ""
        label = f"{name}{several}" if first else f"{name} {takes}{several}".strip()
        yield Option(label, _text(one), name, one.required)


def command_help(name: str, about: str, function: Callable[..., None], *, everything: bool = False) -> str:
    """Return the help of a command: at most 40 lines unless `everything` explains the rarely needed options too."""
    found = [*options(function)]
    first = [one for one in found if not one.name.startswith("-")]
    usual = [one for one in found if one.name.startswith("-") and (everything or not one.rare)]
    rare = [one.label for one in found if one.rare and not everything]
    needed = [one.label for one in found if one.required]
    usage = ["seesaw-cf", name, *needed, *(one.label for one in first if not one.required), "[options]"]
    rows = [(one.label, one.text) for one in (*first, *usual)]
    parts = [wrap(" ".join(usage), "    "), wrap(f"{about[:1].upper()}{about[1:]}."), _aligned(rows)]
    if rare:
        names = textwrap.fill(", ".join(label.replace(" ", "\0") for label in rare), 78, break_on_hyphens=False)
        names = textwrap.indent(names.replace("\0", " "), "  ")
        parts.append(f"Rarely needed (--help -v explains them):\n{names}")
    return "\n\n".join(parts)


def commands_help(groups: dict[str, dict[str, str]]) -> str:
    """Return the list of commands under the titles of their groups, and the options of all."""
    parts = ["seesaw-cf COMMAND [options]"]
    for title, group in groups.items():
        parts.append(f"{title}:\n{description_list([*group.items()], indent='  ')}")
    every = "--version; of every command -h, --help; -v, --verbose: say more; --debug: full traceback of an error"
    return "\n\n".join([*parts, wrap(every)])


def _aligned(rows: list[tuple[str, str]]) -> str:
    """Return labels and texts in two columns; a label that is too wide has a line of its own."""
    lines = []
    width = max((len(label) for label, _ in rows if len(label) <= _WIDEST), default=0)
    for label, text in rows:
        body = textwrap.wrap(text, 80 - width - 4) or [""]
        if len(label) > width:
            lines.append(f"  {label}")
            label = ""
        lines += [f"  {label:{width}}  {body[0]}".rstrip(), *(" " * (width + 4) + line for line in body[1:])]
    return "\n".join(lines)


def _plain(hint: Any) -> Any:
    """Return an annotation without None and without conditions."""
    parts = [part for part in get_args(hint) if part is not type(None)] if get_origin(hint) is not tuple else []
    return _plain(parts[0]) if parts else hint


def marks_of(hint: Any) -> Iterator[Any]:
    """Yield the conditions in an annotation, such as what a path is for."""
    yield from getattr(hint, "__metadata__", ())
    for part in get_args(hint):
        yield from marks_of(part)


def _takes(hint: Any) -> str:
    marks = [*marks_of(hint)]
    choices = next((mark.names for mark in marks if isinstance(mark, OneOf)), ())
    if choices and len("|".join(choices)) <= 16:
        return "|".join(choices)
    if Role.FOLDER in marks or Role.OWN in marks:
        return "DIR"
    inner = _plain(hint)
    inner = _plain(get_args(inner)[0]) if get_origin(inner) is tuple else inner
    if inner is int and "all" in str(hint):
        return "N|all"
    return _METAVARS.get(inner, "NAME")


def _text(one: Argument) -> str:
    """Return the line of a field, the first letter small and no full stop, with its default."""
    from seesaw_cf.cli.parse import option_name

    text = " ".join((one.parameter.help or "").split()).rstrip(".")
    text = re.sub("`([a-z_]+)`", lambda word: f"--{option_name(word[1])}", text)
    first = text.split(" ")[0]
    text = text[:1].lower() + text[1:] if first[1:] == first[1:].lower() else text
    default = one.field_info.default
    if one.required or default in (None, (), "", False, one.field_info.empty) or "(default" in text:
        return text
    return f"{text} (default: {', '.join(default) if isinstance(default, tuple) else default})"
