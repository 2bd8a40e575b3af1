"""The command reference, from the declarations that read the commands."""

from __future__ import annotations

import html

from seesaw_cf.cli import COMMANDS
from seesaw_cf.cli.help import Option, options
from seesaw_cf.cli.parse import load_command

HEAD = """# Command reference

`seesaw-cf COMMAND --help -v` prints the same in a terminal. `seesaw-cf --version` prints the version, `--debug` shows
the full traceback of an error, `-v` says more about what is done. Commands exit with 0 on success, 1 after an error, 2
when a word is wrong, and 130 after Ctrl-C; what was finished is kept, and the same command continues. An option that
takes several values takes them at once or is given again. No command writes onto what it reads or what another
command made.

"""


def command_page() -> str:
    """Markdown: one section per command, in the order of `seesaw-cf --help`."""
    return HEAD + "\n".join(_section(name, target, about) for name, (target, about) in COMMANDS.items())


def _section(name: str, target: str, about: str) -> str:
    found = [*options(load_command(target))]
    needed = " ".join(one.label for one in found if one.required)
    lines = [f"## {name}", "", html.escape(f"{about[:1].upper()}{about[1:]}."), ""]
    lines += ["```text", f"seesaw-cf {name} {needed} [options]".replace("  ", " "), "```", ""]
    for title, rare in (("", False), ("**Rarely needed**", True)):
        rows = [one for one in found if one.rare is rare]
        lines += [title, ""] if title and rows else []
        for one in rows:
            lines += [f"`{one.label}`", f":   {_help(one)}", ""]
    return "\n".join(lines)


def _help(one: Option) -> str:
    text = html.escape(one.text, quote=False).replace("*", r"\*").replace("_", r"\_")
    return ("**Required.** " if one.required and one.name.startswith("-") else "") + f"{text[:1].upper()}{text[1:]}."
