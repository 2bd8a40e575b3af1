"""The random control of a changed model: noise of the same norm in each parameter."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from transformers import PreTrainedModel

from seesaw_cf.base.seeds import seed_of
from seesaw_cf.models.weights import LowRank, WeightDelta


def noise_like(model: PreTrainedModel, norms: Mapping[str, float], seed: int) -> WeightDelta:
    """Draw noise for some parameters of a model.

    Args:
        model: Has the parameters.
        norms: Parameter -> Frobenius norm of its noise.
        seed: Of the draw, along with the parameter's name.
    """
    updates: dict[str, LowRank | Tensor] = {}
    for name, norm in norms.items():
        generator = torch.Generator().manual_seed(seed_of(seed, name, bits=63))
        noise = torch.randn(model.get_parameter(name).shape, generator=generator)
        updates[name] = noise * (norm / float(noise.double().norm()))
    return WeightDelta(updates, {"editor": "random", "seed": seed})
