"""What a path on the command line is for, and the one check that no command writes onto what is there.

An option that names a path has one of the types in `ROLES`. `main` looks at all of them before a command runs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import SeesawError, StorageError
from seesaw_cf.base.files import check_outputs, check_target
from seesaw_cf.base.text import read_json

# Of one name in a path, on every file system in use.
_LONGEST_NAME = 255
# What marks a run, a study and a dataset, and a key that one of these has.
_MARKS = ("manifest.json", "study.json", "import.json", "build.json")
_KEYS = {"protocol", "editors", "made_by"}


def source(text: str) -> Path:
    """Return the path of a file or folder to read, as the type of an option."""
    return _path(text)


def name_or_source(text: str) -> str:
    """Return what names something to read, as the type of an option: a name, or a file or folder where there is one.

    `NAME=PATH`, `NAME:PATH` and `PATH:COLUMN` are known.
    """
    return text


def output_file(text: str) -> Path:
    """Return the path of a file to write, as the type of an option. Only the command's own JSON is replaced.

    A command with `--overwrite` writes with `seesaw_cf.base.files.write_new`, which looks at the content.
    """
    return _path(text)


def output_folder(text: str) -> Path:
    """Return the path of a folder for results, as the type of an option: no run, study or dataset, nor in one."""
    return _path(text)


def own_folder(text: str) -> Path:
    """Return the path of a folder that the command makes whole or claims by its manifest, as the type of an option."""
    return _path(text)


ROLES: tuple[Callable[[str], Path | str], ...] = (source, name_or_source, output_file, output_folder, own_folder)


def maker(args: argparse.Namespace) -> str:
    """Return the command in words, as `made_by` of its JSON."""
    return " ".join(filter(None, ("seesaw-cf", args.command, getattr(args, "action", None))))


def check_paths(parser: argparse.ArgumentParser, args: argparse.Namespace) -> list[Path]:
    """Refuse to write onto what a command reads, or onto what another command made.

    Args:
        parser: The parser of all commands.
        args: What it read.

    Returns:
        The files and folders that are read.

    Raises:
        StorageError: An output is an input by any name, is named twice, or holds something else.
    """
    by_role: dict[object, list[Path]] = {role: [] for role in ROLES}
    about = list[Path]()
    for action in _chosen(parser, args):
        value = getattr(args, action.dest, None)
        for word in value if isinstance(value, list) else [value]:
            if word and action.type in by_role:
                by_role[action.type].append(word)
                about += [] if action.option_strings else [Path(word)]
    named = [Path(part) for text in map(str, by_role[name_or_source]) for part in _parts(text)]
    read = [path for path in (*by_role[source], *named) if os.path.exists(path)]
    jobs, overwrite = by_role[own_folder], getattr(args, "overwrite", None)
    check_outputs([*by_role[output_file], *by_role[output_folder], *jobs], read)
    for file in by_role[output_file]:
        _check_file(file, read, maker(args), overwrite)
    for folder in by_role[output_folder]:
        _check_folder(folder, about or read, jobs, whole=overwrite is None)
    return read


def _path(text: str) -> Path:
    long = [part for part in Path(text).parts if len(os.fsencode(part)) > _LONGEST_NAME]
    if not text or "\0" in text or long:
        expected = f"a path without NUL characters whose names have at most {_LONGEST_NAME} bytes"
        raise argparse.ArgumentTypeError(f"got {shown(text, 80)}, expected {expected}")
    return Path(text)


def _chosen(parser: argparse.ArgumentParser, args: argparse.Namespace) -> Iterator[argparse.Action]:
    """Yield the options of the command that was given, and of its action."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from _chosen(action.choices[getattr(args, action.dest)], args)
        else:
            yield action


def _parts(text: str) -> set[str]:
    """Return what may be a path in `NAME=PATH`, `NAME:PATH` or `PATH:COLUMN`."""
    return {text, text.partition("=")[2], text.partition(":")[2], text.rpartition(":")[0]} - {""}


def _check_file(file: Path, read: list[Path], made_by: str, overwrite: bool | None) -> None:
    check_target(file)
    if not file.exists() or (overwrite is None and _json(file).get("made_by") == made_by):
        return
    if overwrite is None:
        raise StorageError(
            f"could not write {file}: it exists and holds no numbers of `{made_by}`, so what it holds would be lost. "
            "Nothing was written; name another file, or delete it."
        )
    folders = [path if path.is_dir() else path.parent for path in read if path.is_dir() or _is_taken(path.parent)]
    check_outputs([file], [part for folder in folders for part in folder.rglob("*")])


def _check_folder(folder: Path, about: list[Path], jobs: list[Path], *, whole: bool) -> None:
    """Refuse a run; and, when `whole`, what lies in a run that is not what the command makes or is about, it alone."""
    if folder.exists() and not folder.is_dir():
        raise StorageError(f"could not write into {folder}: it is a file, expected a folder. Name another.")
    if not folder.exists() or not any(folder.iterdir()):
        return
    place = folder.resolve()
    used = [path.resolve() for path in jobs or about]
    runs = [run for run in (place, *(place.parents if whole else ())) if _is_taken(run)]
    for run in runs:
        if run == place or not used or not all(path.is_relative_to(run) for path in used):
            where = "it is" if run == place else f"it lies in {run},"
            raise StorageError(
                f"could not write into {folder}: {where} a run, study or dataset, whose own files could be lost. "
                "Nothing was written; name another folder."
            )


def _is_taken(folder: Path) -> bool:
    return any(_json(folder / name).keys() & _KEYS for name in _MARKS)


def _json(file: Path) -> dict[str, Any]:
    """Return what a JSON file holds; {} where there is none that can be read."""
    content: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError, SeesawError):
        content = read_json(file, any_number=True) if file.is_file() else {}
    return content
