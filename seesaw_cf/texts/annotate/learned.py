"""What an instrument has learned from: such passages are never evaluated with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from seesaw_cf.base.files import write_text
from seesaw_cf.base.text import read_json

LEFT_OUT = "left out: the instrument learned from this passage"
"""Status of what is not evaluated."""
_FILE = "learned.json"
Instrument = TypeVar("Instrument")


def digest(text: str) -> str:
    """Return sixteen hexadecimal digits that identify a passage; white space and case do not matter."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def write_learned(folder: Path, passages: Iterable[str]) -> None:
    """Store the digests of an instrument's training passages in its folder."""
    write_text(folder / _FILE, json.dumps(sorted({digest(text) for text in passages if text.strip()})) + "\n")


def remember(instrument: Instrument, folder: Path) -> Instrument:
    """Return a loaded instrument that knows what `write_learned` stored; models from elsewhere have nothing."""
    file = folder / _FILE
    vars(instrument)["learned"] = frozenset(read_json(file, list)) if file.exists() else frozenset()
    return instrument


def learned_of(instrument: object) -> frozenset[str]:
    """Return the digests of the passages that a rater, judge or annotator has learned from."""
    digests: frozenset[str] = getattr(instrument, "learned", frozenset())
    return digests
