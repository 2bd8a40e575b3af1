"""What every reader of a judge's or an annotator's reply must know."""

from __future__ import annotations

import re

_REFUSAL = re.compile(r"\b(?:i(?:['’]m| am) sorry|i (?:can(?:no|['’])t|am (?:un|not )able)|as an ai)\b", re.IGNORECASE)


def is_refusal(reply: str) -> bool:
    """Return whether a reply declines to answer, in the usual words of chat models."""
    return _REFUSAL.search(reply) is not None
