"""The folder of a trained instrument: settings as JSON next to weights as safetensors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

from seesaw_cf.errors import StorageError
from seesaw_cf.io.files import write_text
from seesaw_cf.io.text import read_json

SETTINGS = "instrument.json"


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


def write_settings(folder: Path, settings: Mapping[str, object]) -> None:
    """Write `instrument.json`.

    Raises:
        StorageError: The folder cannot be written.
    """
    write_text(folder / SETTINGS, json.dumps(settings, indent=1, ensure_ascii=False) + "\n")


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
