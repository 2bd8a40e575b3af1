"""The one place where the command line writes to stdout."""

from __future__ import annotations

import sys

__all__ = ["say"]


def say(text: str) -> None:
    """Writes a text and a line end to stdout."""
    sys.stdout.write(text.rstrip("\n") + "\n")
    sys.stdout.flush()
