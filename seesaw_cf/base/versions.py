"""Which versions compute the numbers."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from seesaw_cf.base.types import JsonObject

_PATIENCE = 1.0  # seconds
_PACKAGES = ("seesaw_cf", "torch", "transformers", "tokenizers", "datasets", "evaluate", "numpy", "scipy", "pyarrow")


def versions() -> JsonObject:
    """Return the versions of what computes the numbers, Python, and the commit of this checkout ("" outside one)."""
    facts: JsonObject = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            facts[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            facts[name] = ""
    try:
        answer = subprocess.run(
            ["git", f"--git-dir={Path(__file__).parents[2] / '.git'}", "rev-parse", "HEAD"],  # not one around it
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
        facts["commit"] = answer.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        facts["commit"] = ""
    return facts


# Public names of packages that are imported on first use, so that importing a package costs nothing.


def resolve(target: str) -> Any:
    """Return what "module:name" names.

    Args:
        target: A row of a table of names, such as "seesaw_cf.editors.ft:FT".
    """
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def _import(module: str) -> Any:
    """Import a module; say so where that takes a while, as of torch and transformers the first time."""
    from seesaw_cf.base.retrying import say_when_waiting

    text = f"loading {module} and the libraries that it needs, such as torch; the first time takes up to half a minute"
    with say_when_waiting(lambda: text, _PATIENCE):
        return import_module(module)


def lazy(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package.

    Args:
        package: `__name__` of the package.
        home: Public name -> the module that defines it, or that it is.

    Returns:
        A function that imports the module of a name (AttributeError for any other name), and one that lists the public
        names, so that completion shows them before they are imported.
    """

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = sys.modules.get(home[name]) or _import(home[name])
        return module if home[name] == f"{package}.{name}" else getattr(module, name)

    def names() -> list[str]:
        return sorted({*home, *getattr(sys.modules[package], "__all__", ())})

    return find, names
