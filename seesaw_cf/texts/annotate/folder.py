"""The folder of a trained instrument: settings as JSON next to weights as safetensors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict, TypeVar

from seesaw_cf.base.errors import StorageError
from seesaw_cf.base.files import write_text
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.stats.plain import json_text

SETTINGS = "instrument.json"
Instrument = TypeVar("Instrument")


class InstrumentSettings(TypedDict, total=False):
    """What `instrument.json` may hold.

    Attributes:
        kind: "match" or "pair" (annotators), or "rater".
        name: What tables call it; not of "match".
        encoder, temperature, window, max_length: See the class that was saved.
        items: Survey items that a rater was trained on.
    """

    kind: str
    name: str
    encoder: str
    temperature: float
    window: int
    max_length: int
    items: list[str]


def write_settings(folder: Path, settings: JsonObject) -> None:
    """Write `instrument.json`.

    Raises:
        StorageError: The folder cannot be written.
    """
    write_text(folder / SETTINGS, json_text(settings))


def read_settings(folder: Path) -> InstrumentSettings:
    """Read `instrument.json`.

    Raises:
        StorageError: It is missing or no JSON object with a kind.
    """
    file = folder / SETTINGS
    try:
        settings: InstrumentSettings = read_json(file, any_number=True)
        if "kind" not in settings:
            raise ValueError("no object with a 'kind'")
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{file}: cannot be read ({error}). Expected a folder made by `seesaw-cf leme train-annotator` or "
            "`train-rater`; make it again."
        ) from error
    return settings


# What an instrument has learned from: such passages are never evaluated with it.

LEFT_OUT = "left out: the instrument learned from this passage"
"""Status of what is not evaluated."""
_FILE = "learned.json"


def digest(text: str) -> str:
    """Return sixteen hexadecimal digits that identify a passage; white space and case do not matter."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def write_learned(folder: Path, passages: Iterable[str]) -> None:
    """Store the digests of an instrument's training passages in its folder."""
    write_text(folder / _FILE, json.dumps(sorted({digest(text) for text in passages if text.strip()})) + "\n")


def remember(instrument: Instrument, folder: Path) -> Instrument:
    """Return a loaded instrument that knows what `write_learned` stored; older folders have nothing."""
    file = folder / _FILE
    vars(instrument)["learned"] = frozenset(read_json(file, list)) if file.exists() else frozenset()
    return instrument


def learned_of(instrument: object) -> frozenset[str]:
    """Return the digests of the passages that a rater, judge or annotator has learned from."""
    digests: frozenset[str] = getattr(instrument, "learned", frozenset())
    return digests
