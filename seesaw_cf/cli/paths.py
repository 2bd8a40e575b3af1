"""The one check that no command writes onto what is there: by what each of its values is for (`base.fields.Role`)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError, SeesawError, StorageError
from seesaw_cf.base.fields import Role
from seesaw_cf.base.files import check_outputs
from seesaw_cf.base.text import read_json
from seesaw_cf.cli.help import marks_of
from seesaw_cf.cli.parse import Given

# Of one name in a path, on every file system in use.
_LONGEST_NAME = 255
# What marks a run, a study and a dataset, and a key that one of these has.
_MARKS = ("manifest.json", "study.json", "import.json", "build.json")
_KEYS = {"protocol", "editors", "made_by"}


def check_paths(values: Iterable[Given]) -> list[Path]:
    """Refuse to write onto what a command reads, or onto what another command made.

    Args:
        values: What the command was given.

    Returns:
        The files and folders that are read.

    Raises:
        RecordError: A path is none.
        StorageError: An output is an input by any name, is named twice, or holds something else.
    """
    by_role: dict[Role, list[Path]] = {role: [] for role in Role}
    about, overwrite = list[Path](), None
    for entry in values:
        overwrite = entry.value if entry.name == "overwrite" else overwrite
        for role, path in _paths(entry):
            by_role[role].append(path)
            about += [path] if entry.first else []
    read = [path for path in by_role[Role.READ] if os.path.exists(path)]
    check_outputs([*by_role[Role.FOLDER], *by_role[Role.OWN]], read)
    for folder in by_role[Role.FOLDER]:
        _check_folder(folder, about or read, by_role[Role.OWN], whole=overwrite is None)
    return read


def _paths(entry: Given) -> Iterator[tuple[Role, Path]]:
    """Yield the paths of a value, each with what it is for."""
    role = role_of(entry.hint)
    values: Sequence[Any] = entry.value if isinstance(entry.value, tuple) else (entry.value,)
    for value in values:
        if isinstance(value, Path):
            yield role or Role.READ, _path(entry.name, value)
        elif isinstance(value, str) and role is Role.READ:
            yield from ((role, Path(part)) for part in _parts(value))


def role_of(hint: Any) -> Role | None:
    """Return what a path of an annotation is for, where it says so."""
    return next((mark for mark in marks_of(hint) if isinstance(mark, Role)), None)


def _path(name: str, path: Path) -> Path:
    if (str(path) in ("", ".") and name != "out") or any(len(os.fsencode(part)) > _LONGEST_NAME for part in path.parts):
        expected = f"a path whose names have at most {_LONGEST_NAME} bytes"
        raise RecordError(f"--{name}: got {shown(str(path), 80)}, expected {expected}.")
    return path


def _parts(text: str) -> set[str]:
    """Return what may be a path in `NAME=PATH`, `NAME:PATH` or `PATH:COLUMN`."""
    return {text, text.partition("=")[2], text.partition(":")[2], text.rpartition(":")[0]} - {""}


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
    for file in (folder / name for name in _MARKS):
        with contextlib.suppress(OSError, ValueError, SeesawError):
            if read_json(file, any_number=True).keys() & _KEYS:
                return True
    return False
