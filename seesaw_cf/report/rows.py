"""Rows of a frame as dictionaries; the manifest of a run: its noise floor, what it recorded, and how it is repeated."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping
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
        bound: Spread of one score in nats that is taken for rounding without a floor.
    """

    probability: float | None
    log_odds: float | None
    bound: float

    def zero_limit(self, scale: str) -> float:
        """Return the largest change on a scale that is noise, as far as is known."""
        if scale == "probability":
            return 2 * math.expm1(self.bound) if self.probability is None else self.probability
        return 0.0 if scale == "share" else 2 * self.bound if self.log_odds is None else self.log_odds

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
    known = {name: float(value) for name, value in noise.items() if isinstance(value, (int, float))}
    nats, share = (known.get(name, math.nan) for name in ("p99", "p99_probability"))
    share = math.expm1(nats) if math.isnan(share) else share  # a probability is at most 1
    measured = [2 * value if math.isfinite(value) else None for value in (share, nats)]
    limits = [own if stated is None else stated for stated, own in zip((probability, log_odds), measured)]
    return Floor(limits[0], limits[1], BOUNDS.get(str(manifest.get("model", {}).get("dtype")), BOUNDS["float32"]))


# How a run is repeated, and what it recorded about itself.

# Options that are given once for each value have a singular name; one has a name of its own.
_OPTIONS = {"editors": "editor", "controls": "control", "configs": "config", "pairs": "pair"}
_OPTIONS |= {"nulls": "null", "raters": "rater", "wording": "prompt"}


def model_name(manifest: Manifest) -> str:
    """Return the name of a run's model."""
    return str(manifest.get("model", {}).get("id", "a model"))


_NO_OPTIONS: dict[str, tuple[str, ...]] = {"audit": ("scorer", "max_tokens", "prompts_per_person")}
_NO_OPTIONS["texts write"] = (*_NO_OPTIONS["audit"], "editor_config")


def forms_of(manifest: Manifest) -> list[str]:
    """Return the forms in which a run asked, the one of its main tables first."""
    return list(manifest.get("settings", {}).get("forms", ["plain"]))


def repeat_command(manifest: Manifest, command: str = "audit") -> str:
    """Return the command that repeats a run, with every option that was given.

    Args:
        manifest: Its manifest.
        command: What follows `seesaw-cf`.
    """
    words: list[str] = []
    for field, value in manifest.get("job", {}).items():
        option = "--" + _OPTIONS.get(field, field).replace("_", "-")
        for entry in value if isinstance(value, list) else [value]:
            if entry not in (None, False, "") and field not in _NO_OPTIONS[command]:
                text = json.dumps(entry) if isinstance(entry, dict) else str(entry)
                words += [option] if entry is True else [option, text]
    return printable(shlex.join(["seesaw-cf", *command.split(), *words, "--out", "RUN"]))
