"""Editors of other packages and of files: "package.module:Class", "FILE.py" or an entry point."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import re
import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import EditError, StorageError
from seesaw_cf.base.system import resolve
from seesaw_cf.editors import EDITORS
from seesaw_cf.editors.control_names import is_control

PAGE = "docs/editors.md"
_FILE_MODULE = "seesaw_cf_editor_"  # begins the name of a module that is made of a file
# On Windows a drive comes before the file.
_SOURCE = re.compile(r"(?P<place>.+\.py|[A-Za-z_][\w.]*(?=:))(?::(?P<name>\w+))?")
_CONFIG = (
    "config_class is a frozen dataclass with a class method for_model(model), which makes the settings that are used "
    "when the user gives none"
)
_METHODS = {
    "fit": "fit(model, tokenizer) prepares what no request changes, and returns an editor",
    "edit": "edit(model, tokenizer, requests) returns a WeightDelta",
}


def editor_name(source: str) -> str:
    """Return the name of an editor or control; a class of another package or file becomes known.

    Args:
        source: A known name, "package.module:Class", "FILE.py" (with one editor in it) or "FILE.py:Class". The name of
            such a class is its own in small letters.

    Raises:
        UnknownNameError: None of these.
        StorageError: The file does not exist.
        EditError: Importing it fails, it is no editor, or its name is taken.
    """
    if is_control(source):
        return source
    known = source in EDITORS or not _SOURCE.fullmatch(source)
    return one_of("editor", source, EDITORS) if known else add(_import(source))


def add(kind: type[Any]) -> str:
    """Make a class known by its name in small letters, and return that name.

    Raises:
        EditError: It is no editor, or another one has its name.
    """
    place, name = _place(check(kind)), kind.__name__.lower()
    present = EDITORS.setdefault(name, kind)
    if present != place and (isinstance(present, str) or _place(present) != place):
        raise EditError(f"editor {place}: the name {name!r} is that of {present}. Give it another name.")
    if not isinstance(present, str):
        EDITORS[name] = kind  # perhaps written anew in a notebook
    return name


def check(kind: type[Any]) -> type[Any]:
    """Return a class that offers what an editor must, as far as this shows before it is used.

    Raises:
        EditError: It does not; the message names the clause and the line of the class.
    """
    config = getattr(kind, "config_class", None)
    broken = [promise for method, promise in _METHODS.items() if not callable(getattr(kind, method, None))]
    if not (hasattr(config, "__dataclass_fields__") and callable(getattr(config, "for_model", None))):
        broken.insert(0, _CONFIG)
    if broken:
        line = f", line {inspect.getsourcelines(kind)[1]}" if kind.__module__ != "__main__" else ""
        raise EditError(f"editor {_place(kind)}{line}: broken, {broken[0]}. See {PAGE}.")
    return kind


def load(name: str) -> type[Any]:
    """Return the class of an editor by its name in `EDITORS`.

    Raises:
        UnknownNameError: No such name; near ones are suggested.
        EditError: The package that declares it cannot be imported, or its class is no editor.
    """
    place = EDITORS[one_of("editor", name, EDITORS)]
    if not isinstance(place, str):
        return place
    return cast(type[Any], resolve(place)) if is_own(name) else check(_import(place))


def is_own(name: str) -> bool:
    """Return whether a known name is one of this package."""
    return str(EDITORS[name]).startswith("seesaw_cf.")


def code_facts(name: str) -> dict[str, str]:
    """Return the class of an editor of another package or file and the SHA-256 of its file; {} for another one."""
    if is_control(name) or is_own(name):
        return {}
    kind = load(name)
    if kind.__module__.startswith(_FILE_MODULE):
        return {"class": _place(kind), "sha256": kind.__module__.rpartition("_")[2]}
    file = Path(inspect.getsourcefile(kind) or "") if kind.__module__ != "__main__" else Path()
    return {"class": _place(kind), "sha256": hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""}


def failure(error: BaseException, file: str) -> str:
    """Return an error of another author's code in words, with the last line of its file that led there."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines.append(error.lineno)
    where = f"line {lines[-1]}, " if lines else ""
    return f"{where}{type(error).__name__}: {error}"


def _import(source: str) -> type[Any]:
    place, _, name = source.rpartition(":") if not source.endswith(".py") else (source, "", "")
    file = Path(place).resolve()
    if file.suffix == ".py" and not file.is_file():
        raise StorageError(f"editor {source}: there is no file {place}. Check the path.")
    try:
        module = _import_file(file) if file.suffix == ".py" else import_module(place)
    except (Exception, SystemExit) as error:  # what another author wrote can fail in any way
        why = failure(error, str(file))
        raise EditError(
            f"editor {source}: importing it fails ({why}). Correct it, or install what it needs."
        ) from error
    classes = {key: value for key, value in vars(module).items() if inspect.isclass(value)}
    if name:
        return classes[one_of(f"editor of {place}", name, classes)]
    root = module.__name__.partition(".")[0]
    own = (kind for kind in classes.values() if kind.__module__.partition(".")[0] == root)
    editors = [kind for kind in own if hasattr(kind, "config_class")]
    if len(editors) != 1:
        names = ", ".join(kind.__name__ for kind in editors)
        raise EditError(
            f"editor {source}: {len(editors)} objects in it are classes with a config_class{names and f' ({names})'}, "
            f"expected one. Name it: {source}:NAME."
        )
    return editors[0]


def _import_file(file: Path) -> ModuleType:
    """Import a file as a module that its content names: a file that was edited is another module."""
    path, content = (hashlib.sha256(part).hexdigest() for part in (str(file).encode(), file.read_bytes()))
    name = f"{_FILE_MODULE}{path[:8]}_{content}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def _place(kind: type[Any]) -> str:
    module = kind.__module__
    file = sys.modules[module].__file__ if module.startswith(_FILE_MODULE) and module in sys.modules else module
    return f"{file}:{kind.__qualname__}"
