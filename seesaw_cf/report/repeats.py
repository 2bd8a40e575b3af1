"""What repeats say: how far scores move when nothing is edited, and controls that were made with several seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from seesaw_cf.base.types import Estimate
from seesaw_cf.editors.control_names import first_seed
from seesaw_cf.effects.success import Success
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

    def zero_limit(self, scale: str) -> float:
        """Return the largest change on a scale that is noise, as far as is known."""
        known, rounding = {
            "probability": (self.probability, 2 * math.expm1(self.bound)),
            "log-odds": (self.log_odds, 2 * self.bound),
            "share": (0.0, 0.0),
        }[scale]
        return rounding if known is None else known

    def record(self) -> dict[str, float | str | None]:
        """Return the floor as `report.json` stores it."""
        return {"value": self.probability, "log_odds": self.log_odds, "source": self.source}

    def __str__(self) -> str:
        if self.probability is None and self.log_odds is None:
            return "not measured"
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
    stated = [name for name, value in (("probability", probability), ("log-odds", log_odds)) if value is not None]
    sources = [f"from the run: 99 % of scores move by < {nats:.2g} nats when only the batch changes"] if nats else []
    source = "stated" if len(stated) == 2 else "; ".join([*sources, *(f"{name}: stated" for name in stated)])
    limits = [
        2 * measured if own is None and measured is not None else own
        for own, measured in ((probability, share), (log_odds, nats))
    ]
    dtype = str(manifest.get("model", {}).get("dtype", "float32"))
    return Floor(limits[0], limits[1], source or "not measured", BOUNDS.get(dtype, BOUNDS["float32"]))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def mean_over_seeds(tables: Sequence[pd.DataFrame], keys: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the first table with the mean over all seeds where an editor is a control of several.

    Args:
        tables: One row per editor and question, of each control those of its first seed; then, where there are any,
            rows of its other seeds, such as "random(memit, 2)".
        keys: Columns that name a question.
        columns: Those that are averaged; NaN is left out, every other column stays that of the first seed.
    """
    rows, *others = tables
    if not others:
        return rows
    further, index = pd.concat(others), ["editor", *keys]
    named = further.assign(editor=further["editor"].map(first_seed))[[*index, *columns]]
    drawn = rows["editor"].isin(named["editor"].unique())
    first = rows.loc[drawn, named.columns]
    means = pd.concat([first, named]).groupby(index, sort=False)[list(columns)].mean()
    out = rows.astype(dict.fromkeys(columns, float))
    out.loc[drawn, list(columns)] = means.reindex(pd.MultiIndex.from_frame(rows.loc[drawn, index])).to_numpy()
    return out


def fold_success(success_of: Mapping[str, Success]) -> dict[str, Success]:
    """Return editor -> its numbers, of a control the means over its seeds."""
    folded: dict[str, list[Success]] = {}
    for name, success in success_of.items():
        folded.setdefault(first_seed(name), []).append(success)
    return {name: _mean_success(seeds) if len(seeds) > 1 else seeds[0] for name, seeds in folded.items()}


def _mean_success(seeds: Sequence[Success]) -> Success:
    means = {
        protocol: {name: mean_estimate([seed.numbers[protocol][name] for seed in seeds]) for name in numbers}
        for protocol, numbers in seeds[0].numbers.items()
    }
    return replace(seeds[0], numbers=means)


def mean_estimate(seeds: Sequence[Estimate]) -> Estimate:
    """Return one estimate for all seeds of a control: the means of its numbers and ends; a p has no mean."""
    if len(seeds) == 1:
        return seeds[0]
    names = ("value", "low", "high", "stderr")
    ends: dict[str, Any] = {name: mean([getattr(own, name) for own in seeds]) for name in names}
    return replace(seeds[0], **ends, p=float("nan"))


def mean(values: Sequence[float]) -> float:
    """Return the mean of numbers, such as those of the seeds of a control."""
    return sum(values) / len(values)
