"""Rows of a frame as dictionaries, and the manifest of a run by its types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import pandas as pd

from seesaw_cf.base.types import JsonObject
from seesaw_cf.models.names import EditedModel

Row = Mapping[str, Any]


class _Model(TypedDict, total=False):
    id: str
    dtype: str
    fingerprint: str


class _Data(TypedDict, total=False):
    source: str
    configs: list[str]
    cases: int
    sha256: str


class _Machine(TypedDict, total=False):
    noise: JsonObject | None


class Manifest(TypedDict, total=False):
    """What a report reads of a run's `manifest.json`."""

    model: _Model
    data: _Data
    machine: _Machine
    protocol: str
    seed: int
    job: JsonObject
    editors: JsonObject
    edited: dict[str, EditedModel]
    notes: list[str]


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a frame as dictionaries."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]
