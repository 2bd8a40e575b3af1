"""Editors, metrics and record readers of other packages and of files, under a name that runs and tables use."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from seesaw_cf.base.checks import one_of, shown
from seesaw_cf.base.errors import SeesawError, StorageError
from seesaw_cf.base.versions import resolve

Plugin = Callable[..., Any]
"""A class or a function."""
Plugged = dict[str, str | Plugin]
"""Name -> "module:object", or the class or function itself."""

# "FILE.py", "FILE.py:object" or "package.module:object"; on Windows a drive comes before the file.
_OF_FILE = "seesaw_cf_plugin_"  # begins the name of a module that is made of a file
_SOURCE = re.compile(r"(?P<place>.+\.py|[A-Za-z_][\w.]*(?=:))(?::(?P<name>\w+))?")


def entries(group: str) -> Plugged:
    """Return what installed packages declare as entry points of a group: name -> "module:object"."""
    return {point.name: point.value for point in entry_points(group=group)}


@dataclass(frozen=True)
class Plugins:
    """All plug-ins of one kind.

    Attributes:
        noun: What one is called.
        known: Those that have a name, the package's own among them.
        marks: Whether an object that a file defines is one.
        mark: The same in words.
        clauses: What each must offer -> whether an object does, as far as this shows before it is used.
        error: What is raised where one is broken.
        page: Where all of this is documented.
    """

    noun: str
    known: Plugged
    marks: Callable[[Plugin], bool]
    mark: str
    clauses: Mapping[str, Callable[[Plugin], bool]]
    error: type[SeesawError]
    page: str

    def takes(self, source: str) -> bool:
        """Return whether a text has the form of a plug-in, or is a known name."""
        return source in self.known or _SOURCE.fullmatch(source) is not None

    def name(self, source: str) -> str:
        """Return the name of a plug-in; one of another package or of a file is imported and becomes known.

        Args:
            source: A known name, "package.module:object", "FILE.py" (with one plug-in in it) or "FILE.py:object". The
                name of such a plug-in is that of its class or function in small letters.

        Raises:
            UnknownNameError: None of these.
            StorageError: The file does not exist.
            SeesawError: (`error`) Importing it fails, it breaks a clause, or its name is taken.
        """
        match = _SOURCE.fullmatch(source)
        if source in self.known or match is None:
            return one_of(self.noun, source, self.known or ["FILE.py"])
        return self.add(self._object_of(source, self._module_of(source, match["place"]), match["name"]))

    def add(self, plugin: Plugin) -> str:
        """Make a class or function known by its name in small letters, and return that name.

        Raises:
            SeesawError: (`error`) It breaks a clause, or another one has its name.
        """
        where, name = _where(plugin), plugin.__name__.lower()
        self.check(plugin)
        present = self.known.setdefault(name, plugin)
        if present not in (plugin, where):
            if isinstance(present, str) or _where(present) != where:
                raise self.error(f"{self.noun} {where}: the name {name!r} is that of {present}. Give it another name.")
            self.known[name] = plugin  # the same one, written anew in a notebook
        return name

    def check(self, plugin: Plugin) -> None:
        """Check what can be seen before a plug-in is used.

        Raises:
            SeesawError: (`error`) A clause does not hold; the message names it and the line of the class or function.
        """
        for clause, holds in self.clauses.items():
            if not holds(plugin):
                where = f"{_where(plugin)}{_line_of(plugin)}"
                raise self.error(f"{self.noun} {where}: broken, {clause}. See {self.page}.")

    def load(self, name: str) -> Plugin:
        """Return a class or function by its name.

        Raises:
            UnknownNameError: No such name; near ones are suggested.
            SeesawError: (`error`) The package that declares it cannot be imported, or it breaks a clause.
        """
        place = self.known[one_of(self.noun, name, self.known)]
        if not isinstance(place, str):
            return place
        if self.is_own(name):
            return _plugin(resolve(place))
        module, _, attribute = place.partition(":")
        self.check(plugin := self._object_of(place, self._module_of(place, module), attribute))
        return plugin

    def is_own(self, name: str) -> bool:
        """Return whether a known name is one of this package."""
        return str(self.known[name]).startswith("seesaw_cf.")

    def code(self, name: str) -> dict[str, str]:
        """Return where a plug-in of another package or file comes from, with the SHA-256 of its file; else {}."""
        if self.is_own(name):
            return {}
        plugin = self.load(name)
        file = inspect.getsourcefile(plugin) if plugin.__module__ != "__main__" else None
        sha256 = hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and Path(file).is_file() else ""
        return {"class": _where(plugin), "sha256": sha256}

    def _module_of(self, source: str, place: str) -> ModuleType:
        file = Path(place).resolve()
        if file.suffix == ".py" and not file.is_file():
            raise StorageError(f"{self.noun} {source}: there is no file {place}. Check the path.")
        try:
            return _import_file(file) if file.suffix == ".py" else import_module(place)
        except Exception as error:  # what another author wrote can fail in any way
            raise self.error(
                f"{self.noun} {source}: importing it fails ({failure(error, str(file))}). Correct it, or install what "
                "it needs."
            ) from error

    def _object_of(self, source: str, module: ModuleType, name: str | None) -> Plugin:
        if name:
            return _plugin(getattr(module, one_of(f"{self.noun} of {source.rpartition(':')[0]}", name, _own(module))))
        fitting = [plugin for plugin in _own(module).values() if self.marks(plugin)]
        if len(fitting) != 1:
            names = ", ".join(plugin.__name__ for plugin in fitting)
            raise self.error(
                f"{self.noun} {source}: {len(fitting)} objects in it are {self.mark}{f' ({names})' if names else ''}, "
                f"expected one. Name it: {source}:NAME."
            )
        return fitting[0]


def failure(error: BaseException, file: str) -> str:
    """Return an error of a plug-in in words, with the last line of its file that led there."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines.append(error.lineno)
    where = f"line {lines[-1]}, " if lines else ""
    return f"{where}{type(error).__name__}: {error}"


def has_arguments(plugin: Plugin, method: str, *names: str) -> bool:
    """Return whether a class has a method, or a function is one, that can be called with arguments of these names."""
    called = getattr(plugin, method, None) if method else plugin
    if not callable(called):
        return False
    try:
        inspect.signature(called).bind(*["self"] * (bool(method) and not inspect.ismethod(called)), *names)
    except (TypeError, ValueError):
        return False
    return True


def _where(plugin: Plugin) -> str:
    module = plugin.__module__
    place = str(sys.modules[module].__file__) if module.startswith(_OF_FILE) and module in sys.modules else module
    return f"{place}:{plugin.__qualname__}"


def _line_of(plugin: Plugin) -> str:
    try:
        return f", line {inspect.getsourcelines(plugin)[1]}"
    except (OSError, TypeError):  # written at a prompt
        return ""


def _plugin(value: object) -> Plugin:
    if not callable(value):
        raise TypeError(f"{shown(value)} is neither a class nor a function")
    return value


def _import_file(file: Path) -> ModuleType:
    stem, place = re.sub(r"\W", "_", file.stem), hashlib.sha256(str(file).encode()).hexdigest()[:8]
    name = f"{_OF_FILE}{stem}_{place}"
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


def _own(module: ModuleType) -> dict[str, Plugin]:
    """Return the classes and functions that a module, or its package, defines."""
    package = module.__name__.partition(".")[0]
    return {
        name: value
        for name, value in vars(module).items()
        if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.partition(".")[0] == package
    }
