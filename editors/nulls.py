"""Null changes: of the size and the shape of a changed model's change, without its aim.

any change of weights    noise of the same norm in each parameter, of the same rank where it has one
a rounding               the same error in each weight, up or down by chance
a steering vector        a drawn direction of the same length at the same layer
"""

from __future__ import annotations

import torch
from torch import Tensor

from seesaw_cf.base.seeds import seed_of
from seesaw_cf.editors.controls import ControlConfig, RandomControl
from seesaw_cf.models.change import Change
from seesaw_cf.models.steering import SteeringVector
from seesaw_cf.models.weights import LowRank, WeightDelta


def null_kind(change: Change, rounded: bool) -> str:
    """Return which null fits a change.

    Args:
        change: Of weights or of hidden states.
        rounded: It is a rounding of the base's weights.
    """
    return "direction" if isinstance(change, SteeringVector) else "rounding" if rounded else "noise"


def null_of(change: Change, kind: str, config: ControlConfig) -> Change:
    """Draw a null change.

    Args:
        change: The change that it is the null of.
        kind: See `seesaw_cf.editors.control_names.NULLS`.
        config: Has the seed.
    """
    if isinstance(change, SteeringVector):
        return change.like(config.seed)
    assert isinstance(change, WeightDelta)
    return rounded_again(change, config.seed) if kind == "rounding" else RandomControl(config).like(change)


def rounded_again(delta: WeightDelta, seed: int) -> WeightDelta:
    """Return the change with the sign of every number drawn: as large in every weight, aimed at nothing.

    Args:
        delta: A rounding of weights: its numbers are the errors.
        seed: Of the draw, along with the parameter's name.
    """
    updates: dict[str, LowRank | Tensor] = {}
    for name in delta.updates:
        error = delta.dense(name)
        generator = torch.Generator().manual_seed(seed_of(seed, name, bits=63))
        up = torch.rand(error.shape, generator=generator) < 0.5
        updates[name] = torch.where(up.to(error.device), error, -error)
    return WeightDelta(updates, {"editor": "random", "signs": "drawn", "seed": seed})
