"""Random changes of the same norm as given ones."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from transformers import PreTrainedModel

from seesaw_cf.base.text import seed_of
from seesaw_cf.models.tensors import in_float64
from seesaw_cf.models.weights import LowRank, WeightDelta


def rank_of(update: LowRank | Tensor) -> int | None:
    """Return the rank of a low-rank update; None of a dense one."""
    return update.left.shape[1] if isinstance(update, LowRank) else None


def random_like(change: Tensor, rank: int | None, generator: torch.Generator) -> LowRank | Tensor:
    """Draw Gaussian factors scaled to the norm of `change`; Gaussian entries for vectors, or without a rank."""
    norm, dtype = float(in_float64(change).norm()), torch.promote_types(change.dtype, torch.float32)
    if change.dim() != 2 or rank is None:
        noise = torch.randn(change.shape, generator=generator, dtype=torch.float64)
        return (noise * (norm / float(noise.norm()))).to(device=change.device, dtype=dtype)
    rows, columns = change.shape
    rank = min(rank, rows, columns)
    left = torch.randn(rows, rank, generator=generator, dtype=torch.float64)
    right = torch.randn(rank, columns, generator=generator, dtype=torch.float64)
    left *= norm / float((left @ right).norm())
    return LowRank(*(part.to(device=change.device, dtype=dtype) for part in (left, right)))


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
