"""The rows of a report's tables and the manifest of its run, by their types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypedDict, TypeVar, cast

import pandas as pd

from seesaw_cf.base.types import JsonObject
from seesaw_cf.models.names import EditedModel

Row = Mapping[str, Any]
Record = TypeVar("Record", bound=Mapping[str, object])


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


def records(frame: pd.DataFrame, kind: type[Record]) -> list[Record]:
    """Return the rows as dictionaries.

    Args:
        frame: A table.
        kind: What its rows are.
    """
    return cast(list[Record], rows_of(frame))


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a frame as dictionaries."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


def number_of(row: Mapping[str, object], name: str) -> float:
    """Return the number in a column; NaN where the table has no such column."""
    return cast(float, row.get(name, math.nan))
