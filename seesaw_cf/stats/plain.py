"""Results as plain JSON types."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["json_text", "plain"]


def plain(value: Any) -> Any:
    """Turns a result into plain JSON types: NaN becomes None, numpy scalars become Python numbers."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(value: Any) -> str:
    """A result as the text of a JSON file; numbers that are not finite are null, text stays as it is."""
    return json.dumps(plain(value), indent=1, allow_nan=False, ensure_ascii=False) + "\n"
