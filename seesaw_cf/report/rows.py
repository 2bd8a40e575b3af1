"""Rows of a frame as dictionaries; the manifest of a run: its noise floor, what it recorded, and how it is repeated."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from seesaw_cf.base.terminal import printable
from seesaw_cf.stats.simple import BOUNDS

Row = Mapping[str, Any]
Manifest = Mapping[str, Any]
"""A run's `manifest.json`."""


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a frame as dictionaries."""
    return [{str(key): value for key, value in row.items()} for row in frame.to_dict("records")]


# What is noise.


@dataclass(frozen=True, slots=True)
class Floor:
    """Effects up to the floor are noise.

    Attributes:
        probability, log_odds: The floor on each scale; None = neither measured nor stated.
        source: Where it comes from.
        bound: Spread of one score in nats that is taken for rounding without a floor.
    """

    probability: float | None
    log_odds: float | None
    source: str
    bound: float

    def zero_limit(self, scale: str) -> float:
        """Return the largest change on a scale that is noise, as far as is known."""
        known, rounding = {
            "probability": (self.probability, 2 * math.expm1(self.bound)),
            "log-odds": (self.log_odds, 2 * self.bound),
            "share": (0.0, 0.0),
        }[scale]
        return rounding if known is None else known

    def __str__(self) -> str:
        limits = ["not measured" if limit is None else f"{limit:.2g}" for limit in (self.probability, self.log_odds)]
        return f"{limits[0]} in probability, {limits[1]} in log-odds"


def floor_of(manifest: Manifest, probability: float | None, log_odds: float | None) -> Floor:
    """Return the noise floor: what was stated, else what the run measured.

    D is a difference of two scores' probabilities, and its log-odds one of two scores, so that each floor is twice what
    99 % of single scores stay below when only the batch changes.

    Args:
        manifest: The run's; `machine.noise` is `seesaw_cf.scoring.noise.Noise.record()`.
        probability, log_odds: Stated floors.
    """
    noise = manifest.get("machine", {}).get("noise") or {}
    nats, share = _number(noise.get("p99")), _number(noise.get("p99_probability"))
    if nats is not None and share is None:
        share = math.expm1(nats)  # a probability is at most 1
    sources = [f"from the run: 99 % of scores move by < {nats:.2g} nats when only the batch changes"] if nats else []
    stated = {"probability": probability, "log-odds": log_odds}
    sources += [f"{name}: stated" for name, value in stated.items() if value is not None]
    limits = [
        2 * measured if own is None and measured is not None else own
        for own, measured in ((probability, share), (log_odds, nats))
    ]
    dtype = str(manifest.get("model", {}).get("dtype", "float32"))
    bound = BOUNDS.get(dtype, BOUNDS["float32"])
    return Floor(limits[0], limits[1], "; ".join(sources) or "not measured", bound)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


# How a run is repeated, and what it recorded about itself.

# Options that are given once for each value have a singular name; one has a name of its own.
_OPTIONS = {"editors": "editor", "controls": "control", "configs": "config", "doses": "dose", "pairs": "pair"}
_OPTIONS |= {"nulls": "null", "raters": "rater", "wording": "prompt"}


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
