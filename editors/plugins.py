"""Editors of other packages and of files, under a name that runs, tables and folders use."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from seesaw_cf.base.checks import one_of, shown
from seesaw_cf.base.errors import EditError, RecordError, StorageError
from seesaw_cf.editors import EDITORS, load_editor
from seesaw_cf.editors.control_names import is_control

# "FILE.py", "FILE.py:Class" or "package.module:Class"; on Windows a drive comes before the file.
_SOURCE = re.compile(r"(?P<place>.+\.py|[A-Za-z_][\w.]*(?=:))(?::(?P<name>\w+))?")
# What a class must offer, and what for: `seesaw_cf.models.Editor`.
_CLAUSES = {
    "config_class": "the frozen dataclass of its settings",
    "fit": "fit(model, tokenizer), which prepares what no request changes",
    "edit": "edit(model, tokenizer, requests), which returns a WeightDelta",
}


def editor_name(source: str) -> str:
    """Return the name of an editor; one of another package or of a file is imported and added to `EDITORS`.

    Args:
        source: A name of `seesaw_cf.editors.EDITORS` or of a control, "package.module:Class", "FILE.py" (with one
            editor in it) or "FILE.py:Class". The name of such an editor is that of its class in small letters.

    Raises:
        UnknownNameError: None of these.
        StorageError: The file does not exist.
        EditError: Importing it fails, the class breaks the contract of editors, or its name is taken.
    """
    match = _SOURCE.fullmatch(source)
    if source in EDITORS or is_control(source) or match is None:
        return source if is_control(source) else one_of("editor", source, EDITORS)
    return add_editor(_class_of(source, _module_of(source, match["place"]), match["name"]))


def add_editor(kind: type[Any]) -> str:
    """Make an editor's class known by its name in small letters, and return that name.

    Raises:
        EditError: The class breaks the contract of editors, or another editor has its name.
    """
    where = f"{kind.__module__}:{kind.__qualname__}"
    for clause, purpose in _CLAUSES.items():
        if not hasattr(kind, clause):
            raise EditError(f"editor {where}: it has no {clause}, expected {purpose}. See docs/editors.md.")
    if not hasattr(kind.config_class, "__dataclass_fields__") or not hasattr(kind.config_class, "for_model"):
        raise EditError(
            f"editor {where}: its config_class is {shown(kind.config_class)}, expected a frozen dataclass with a class "
            "method for_model(model), which makes the settings that are used when the user gives none."
        )
    name = kind.__name__.lower()
    if (present := EDITORS.setdefault(name, kind)) not in (kind, where):
        if isinstance(present, str) or f"{present.__module__}:{present.__qualname__}" != where:
            raise EditError(f"editor {where}: the name {name!r} is that of {present}. Give the class another name.")
        EDITORS[name] = kind  # the same class, written anew in a notebook
    return name


def code_facts(name: str) -> dict[str, str]:
    """Return where an editor of another package or file comes from, with the SHA-256 of its file; else {}.

    Args:
        name: A key of `EDITORS`.
    """
    if is_control(name) or str(EDITORS[name]).startswith("seesaw_cf."):
        return {}
    kind = load_editor(name)
    file = inspect.getsourcefile(kind) if kind.__module__ != "__main__" else None
    sha256 = hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and Path(file).is_file() else ""
    return {"class": f"{kind.__module__}:{kind.__qualname__}", "sha256": sha256}


def _module_of(source: str, place: str) -> ModuleType:
    file = Path(place).resolve()
    if file.suffix == ".py" and not file.is_file():
        raise StorageError(f"editor {source}: there is no file {place}. Check the path.")
    try:
        return _import_file(file) if file.suffix == ".py" else import_module(place)
    except Exception as error:  # what somebody wrote can fail in any way
        line = next(
            (f", line {entry.lineno}" for entry in reversed(inspect.trace()) if entry.filename == str(file)), ""
        )
        raise EditError(
            f"editor {source}{line}: importing it fails ({type(error).__name__}: {error}). Correct it, or install what "
            "it needs."
        ) from error


def _import_file(file: Path) -> ModuleType:
    stem, place = re.sub(r"\W", "_", file.stem), hashlib.sha256(str(file).encode()).hexdigest()[:8]
    name = f"seesaw_cf_editor_{stem}_{place}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _class_of(source: str, module: ModuleType, name: str | None) -> type[Any]:
    if name is not None:
        kind: type[Any] = getattr(module, one_of(f"class of {source.rpartition(':')[0]}", name, _classes(module)))
        return kind
    editors = [kind for kind in _classes(module).values() if hasattr(kind, "config_class")]
    if len(editors) != 1:
        names = ", ".join(kind.__name__ for kind in editors)
        raise RecordError(
            f"editor {source}: {len(editors)} classes in it have a config_class{f' ({names})' if names else ''}, "
            f"expected one editor. Name the class: {source}:CLASS."
        )
    return editors[0]


def _classes(module: ModuleType) -> dict[str, type[Any]]:
    return {name: kind for name, kind in vars(module).items() if inspect.isclass(kind) and _is_own(kind, module)}


def _is_own(kind: type[Any], module: ModuleType) -> bool:
    return kind.__module__.partition(".")[0] == module.__name__.partition(".")[0]
