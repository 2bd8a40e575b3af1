"""The noise floor of a run: how large an effect scoring alone makes, on both scales."""

from __future__ import annotations

import math
from dataclasses import dataclass

from seesaw_cf.effects.prompts import ScoreForm
from seesaw_cf.report.rows import Manifest
from seesaw_cf.stats.simple import BOUNDS


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

    def zero_limit(self, score: ScoreForm) -> float:
        """Return the largest |D| that prints as 0."""
        return self.zero_limit_log_odds if score == "log_odds" else _or(self.probability, 2 * math.expm1(self.bound))

    @property
    def zero_limit_log_odds(self) -> float:
        """Largest change of log-odds that prints as 0, nats."""
        return _or(self.log_odds, 2 * self.bound)

    def record(self) -> dict[str, float | str | None]:
        """Return the floor as `report.json` stores it."""
        return {"value": self.probability, "log_odds": self.log_odds, "source": self.source}

    def __str__(self) -> str:
        if self.probability is None and self.log_odds is None:
            return "not measured"
        limits = ["not measured" if limit is None else f"{limit:.2g}" for limit in (self.probability, self.log_odds)]
        return f"{limits[0]} in probability, {limits[1]} in log-odds"


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


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
    pairs = (("probability", probability), ("log_odds", log_odds))
    stated = {name: value for name, value in pairs if value is not None}
    measured = {"probability": share, "log_odds": nats}
    values = {name: 2 * value for name, value in measured.items() if value is not None} | stated
    if not values:
        source = "not measured"
    elif len(stated) == len(measured):
        source = "stated"
    else:
        source = f"from the run: 99 % of scores move by < {nats:.2g} nats when only the batch changes" if nats else ""
        source = "; ".join(filter(None, [source, *(f"{name}: stated" for name in stated)]))
    dtype = str(manifest.get("model", {}).get("dtype", "float32"))
    return Floor(values.get("probability"), values.get("log_odds"), source, BOUNDS.get(dtype, BOUNDS["float32"]))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
