"""What the package exports, found in its sources."""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, is_typeddict

from seesaw_cf.base.arguments import public_names
from tests.conftest import ROOT

SOURCE = ROOT / "seesaw_cf"


def modules() -> Iterator[str]:
    """Those that check what they export; parts of the package may be links to folders beside it."""
    for folder, _, files in os.walk(SOURCE, followlinks=True):
        for file in files:
            path = Path(folder, file)
            if path.suffix == ".py" and "\ncheck_public(globals())" in path.read_text(encoding="utf-8"):
                yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def documented() -> set[str]:
    """Modules that a page imports from."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    return set(re.findall(r"^(?:from|import) (seesaw_cf[\w.]*)", text, re.MULTILINE))


# Helpers of a room, in a module that has public functions too; their callers check what they are given.
INTERNAL = {
    "base.hub.download",
    "effects.flaws.hits",
    "effects.flaws.mean_rating",
    "models.corpus.CorpusSpec",
    "texts.graph.settings.read_refusals",
    "texts.graph.settings.refusals_for",
}


def surface() -> dict[str, Any]:
    """Name -> function, class, or method of an object out of `OBJECTS`."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for module in sorted(documented() | set(modules())):
        exported = importlib.import_module(module)
        for name in public_names(vars(exported)):
            thing = getattr(exported, name)
            if id(thing) in seen:  # under its module's name and its package's
                continue
            seen.add(id(thing))
            short = f"{module.removeprefix('seesaw_cf.')}.{name}"
            if short in INTERNAL:
                continue
            if inspect.isfunction(thing):
                found[short] = thing
            elif inspect.isclass(thing) and not _is_only_declared(thing):
                found[short] = thing
                found |= {f"{short}.{key}": getattr(thing, key) for key in methods(thing)}
    return found


def _is_only_declared(kind: type[Any]) -> bool:
    return getattr(kind, "_is_protocol", False) or inspect.isabstract(kind) or is_typeddict(kind)


def _is_method(kind: type[Any], key: str) -> bool:
    found = getattr(kind, key, None)
    return inspect.isfunction(found) or inspect.ismethod(found)


def methods(kind: type[Any]) -> list[str]:
    """Public methods, class methods included, of a class and of the package's classes above it."""
    own = {key for base in kind.__mro__ if base.__module__.startswith("seesaw_cf") for key in vars(base)}
    return sorted(key for key in own if key[0] != "_" and _is_method(kind, key))


def needed(function: Any) -> list[inspect.Parameter]:
    """Arguments without a default."""
    var = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    found = inspect.signature(function).parameters.values()
    return [p for p in found if p.default is p.empty and p.kind not in var and p.name != "self"]
