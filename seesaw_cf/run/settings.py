"""Settings of a run's editors, as a file, a text or a mapping."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seesaw_cf.base.text import parse_json_text, read_json

SettingsSource = str | Path | Mapping[str, Mapping[str, object]]
"""Settings of a run's editors, editor -> setting -> value: a JSON file, a JSON text, or the mapping itself."""


def settings_document(settings: SettingsSource | None, expected: str = "settings of editors") -> dict[str, Any]:
    """Return what settings say; {} for None.

    Raises:
        RecordError: Not a JSON object.
        StorageError: The file cannot be read.
    """
    if settings is None or isinstance(settings, Mapping):
        return dict(settings or {})
    if isinstance(settings, str) and settings.lstrip().startswith("{"):
        text: dict[str, Any] = parse_json_text(settings, "editor settings", dict, expected=expected)
        return text
    document: dict[str, Any] = read_json(settings, expected=expected)
    return document
