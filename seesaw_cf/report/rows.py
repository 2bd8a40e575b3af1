"""The rows of a report's tables and the manifest of its run, by their types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, TypedDict, TypeVar, cast

import pandas as pd

from seesaw_cf.base.types import JsonObject
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.models.names import EditedModel

Row = Mapping[str, Any]
Record = TypeVar("Record", bound=Mapping[str, object])


class _Shares(TypedDict, total=False):
    """Shares before and after the edit with the ends of their intervals, of one editor."""

    editor: str
    pre: float
    pre_low: float
    pre_high: float
    post: float
    post_low: float
    post_high: float


class EfficacyRow(_Shares, total=False):
    """A row of `Results.efficacy`; without a score of an edited fact it has no `pre`, `post`, `n` and `n_unscored`."""

    relation: str
    n_edits: int
    raised: float
    raised_low: float
    raised_high: float
    n_raised: int
    n_zero: int
    n_non_finite: int
    n_refused: int
    n: float
    n_unscored: float


class _GroupRow(TypedDict, total=False):
    """What every table of effects on groups has."""

    editor: str
    relation: str
    axis: str
    group: str
    low: float
    high: float
    log_odds: float
    log_odds_low: float
    log_odds_high: float
    note: str


class EffectRow(_GroupRow, total=False):
    """A row of `Results.effects`, or with `facts` of `Known.effects`; in the paper mode it has no `log_odds_marked`, no
    `share_marked` and no effective clusters."""

    facts: str
    holds: str
    D: float
    p: float
    marked: bool
    log_odds_marked: bool
    share: float
    share_low: float
    share_high: float
    share_marked: bool
    effective_edits: float
    effective_people: float
    n_prompts: int
    n_subjects: int
    n_cases: int
    n_unscored: int


class _TestedRow(_GroupRow, total=False):
    """An estimate that is one test of a family."""

    value: float
    p_adjusted: float
    clusters: Mapping[str, int]


class VerdictRow(_TestedRow, total=False):
    """A row of `AuditTables.verdicts`, made by `seesaw_cf.effects.audit`; without `probability` under "log_odds"."""

    reference: str
    verdict: str
    scale: Literal["probability", "log-odds"]
    margin: float
    low: float
    high: float
    holds: str
    probability: float
    rule: str


class AccuracyRow(_Shares):
    """A row of `Results.accuracy`, or with `facts` of `Known.accuracy`."""

    edit_relation: str
    effect_relation: str
    change: float
    low: float
    high: float
    p: float
    note: str
    chance: float
    majority: float
    lost: int
    gained: int
    n: int


class DoseRow(TypedDict):
    """A row of `seesaw_cf.effects.dose.summarise_curves`; each measure also has `_low` and `_high`."""

    editor: str
    mix: str
    kind: str
    dose: int
    edits: float
    repeats: int
    alarm: str
    collapsed: bool


class GateRow(TypedDict):
    """What must hold of an editor, or of the whole run (`editor` is then ""), and the number behind it."""

    editor: str
    gate: str
    rule: str
    value: float | int | str | None
    passed: bool


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


def of_controls(frame: pd.DataFrame) -> pd.Series:
    """Return which rows are of a control."""
    return frame["editor"].isin([name for name in frame["editor"].unique() if is_control(name)])


def number_of(row: Mapping[str, object], name: str) -> float:
    """Return the number in a column; NaN where the table has no such column."""
    return cast(float, row.get(name, math.nan))


def with_limits(row: Mapping[str, object], name: str) -> tuple[float, float, float]:
    """Return a number and the ends of its interval: columns `name`, `name`_low and `name`_high."""
    return number_of(row, name), number_of(row, f"{name}_low"), number_of(row, f"{name}_high")
