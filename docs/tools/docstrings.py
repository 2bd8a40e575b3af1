"""An extension of griffe: docstrings here describe several parameters in one entry, such as "draws, seed: ..."."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["Parameters"]

ENTRY = re.compile(r"^( +)(\w+(?:, \w+)+):(.*(?:\n\1 +\S.*)*)$", re.MULTILINE)


class Parameters(griffe.Extension):
    """Gives each parameter of such an entry an entry of its own, so that its name is checked and its type shown."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Changes the docstring before it is parsed."""
        if func.docstring is not None:
            func.docstring.value = ENTRY.sub(_split, func.docstring.value)


def _split(entry: re.Match[str]) -> str:
    indent, names, text = entry.groups()
    return "\n".join(f"{indent}{name}:{text}" for name in names.split(", "))
