"""The folder of a trained instrument: settings as JSON beside weights as safetensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seesaw_cf.errors import StorageError
from seesaw_cf.files import write_text

__all__ = ["SETTINGS", "read_settings", "write_settings"]

SETTINGS = "instrument.json"


def write_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Writes `instrument.json`.

    Raises:
        StorageError: The folder cannot be written.
    """
    write_text(folder / SETTINGS, json.dumps(settings, indent=1, ensure_ascii=False) + "\n")


def read_settings(folder: Path) -> dict[str, Any]:
    """Reads `instrument.json`.

    Raises:
        StorageError: It is missing or no JSON object with a kind.
    """
    file = folder / SETTINGS
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(settings, dict) or "kind" not in settings:
            raise ValueError("no object with a 'kind'")
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{file}: cannot be read ({error}). Expected a folder made by `seesaw-cf leme train-annotator` or "
            "`train-rater`; make it again."
        ) from error
    return settings
