"""Rows of a frame as dictionaries; the manifest of a run, what it recorded, and how the run is repeated."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypedDict

import pandas as pd

from seesaw_cf.base.terminal import printable
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


# How a run is repeated, and what it recorded about itself.

# Options that are given once for each value have a singular name; one has a name of its own.
_OPTIONS = {"editors": "editor", "controls": "control", "configs": "config", "doses": "dose", "pairs": "pair"}
_OPTIONS |= {"nulls": "null", "raters": "rater", "wording": "prompt"}


def recorded(manifest: Manifest) -> Sequence[tuple[str, str]]:
    """Return every value of a manifest with its path; changed models have a separate section."""
    return _flat({key: value for key, value in manifest.items() if key != "edited"})


def model_name(manifest: Manifest) -> str:
    """Return the name of a run's model."""
    return str(manifest.get("model", {}).get("id", "a model"))


# Fields of a job that another command than `audit` has no option for.
_NOT_OF: Mapping[str, Collection[str]] = {"texts write": {"editor_config"}}
_NO_OPTIONS = {"scorer", "max_tokens", "prompts_per_person"}  # of no command


def repeat_command(manifest: Manifest, command: str = "audit") -> str:
    """Return the command that repeats a run, with every option that was given.

    Args:
        manifest: Its manifest.
        command: What follows `seesaw-cf`.
    """
    words: list[str] = []
    left_out = _NO_OPTIONS | set(_NOT_OF.get(command, ()))
    job = {name: value for name, value in manifest.get("job", {}).items() if name not in left_out}
    for field, value in job.items():
        option = "--" + _OPTIONS.get(field, field).replace("_", "-")
        for entry in value if isinstance(value, list) else [value]:
            if entry not in (None, False, ""):
                text = json.dumps(entry) if isinstance(entry, dict) else str(entry)
                words += [option] if entry is True else [option, text]
    return printable(shlex.join(["seesaw-cf", *command.split(), *words, "--out", "RUN"]))


def _flat(value: object, name: str = "") -> Sequence[tuple[str, str]]:
    if isinstance(value, dict) and value:
        return [row for key in value for row in _flat(value[key], f"{name}.{key}" if name else str(key))]
    return [(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))]
