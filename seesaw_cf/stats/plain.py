"""Results as plain JSON types."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ParamSpec

import numpy as np

from seesaw_cf.base.fields import checked

P = ParamSpec("P")


def plain(value: object) -> Any:
    """Turn a result into plain JSON types: NaN becomes None, numpy scalars become Python numbers.

    A record becomes what its method `row` gives, or else its fields by name.
    """
    if is_dataclass(value) and not isinstance(value, type):
        row: Callable[[], object] | None = getattr(value, "row", None)
        return plain(row() if row else {entry.name: getattr(value, entry.name) for entry in fields(value)})
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_json(function: Callable[P, Any]) -> Callable[P, dict[str, Any]]:
    """Make a function return plain JSON types, for `evaluate`; its arguments are checked, the signature stays."""
    function = checked(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> dict[str, Any]:
        return dict(plain(function(*args, **kwargs)))

    return call


def json_text(value: object) -> str:
    """Return a result as the text of a JSON file; numbers that are not finite are null, text stays as it is."""
    return json.dumps(plain(value), indent=1, allow_nan=False, ensure_ascii=False) + "\n"
