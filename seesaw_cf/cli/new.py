"""`seesaw-cf new`: the files of an editor of your own, which work as they are written."""

from __future__ import annotations

import argparse
import importlib.util
import keyword
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import atomic_folder
from seesaw_cf.cli.actions import command
from seesaw_cf.cli.output import say
from seesaw_cf.cli.paths import own_folder

_TEMPLATES = Path(__file__).with_name("templates")
_NAME = re.compile(r"[a-z][a-z0-9]*")


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="small letters and digits")
    parser.add_argument("--out", type=own_folder, help="the new folder (default: NAME, here)")


def _write(kind: str, args: argparse.Namespace) -> None:
    """Write the files of a kind under a name, and say what to do with them.

    Raises:
        RecordError: The name is none, or that of an installed module, an editor or a word of Python.
        StorageError: The folder holds something already.
    """
    from seesaw_cf.editors import EDITORS
    from seesaw_cf.editors.control_names import CONTROLS

    name: str = args.name
    taken = keyword.iskeyword(name) or name in EDITORS or name in CONTROLS
    if taken or not _NAME.fullmatch(name) or importlib.util.find_spec(name) is not None:
        raise RecordError(
            f"new {kind}: the name is {name!r}, expected small letters and digits that name no installed module, "
            "editor or word of Python, such as mine2. Choose another."
        )
    folder = args.out or Path(name)
    with atomic_folder(folder) as place:
        for file in sorted((_TEMPLATES / kind).glob("*.txt")):
            text = file.read_text(encoding="utf-8").replace("MINE", name.capitalize())
            target = place / file.stem.replace("mine", name)
            target.write_text(re.sub(r"\bmine\b|(?<=test_)mine\b", name, text), encoding="utf-8")
    say(f"{folder}: " + ", ".join(sorted(file.name for file in folder.iterdir())))
    say(f"It works as it is: {folder}/README.md has the commands. Put yours in the place of what {name}.py does.")


def _action(kind: str, about: str) -> tuple[str, Callable[..., None], Callable[[argparse.Namespace], None]]:
    return f"{about}, with its test", _configure, partial(_write, kind)


configure, run = command(
    {
        "editor": _action("editor", "an editing method"),
    }
)
