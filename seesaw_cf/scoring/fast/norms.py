"""RMS norms in three passes over memory for the library's six."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from seesaw_cf.models.hooks import exchanged
from seesaw_cf.scoring.fast.activations import plain

__all__ = ["fused_norms"]

_ROUNDING = 1e-5


def _rms_norm(norm: Any, values: Tensor) -> Tensor:
    """w x / sqrt(mean(x^2) + eps)."""
    if not plain(values):
        answer: Tensor = type(norm).forward(norm, values)
        return answer
    scale = torch.linalg.vector_norm(values, dim=-1, keepdim=True).square_().div_(values.shape[-1])
    return torch.mul(values, scale.add_(norm.variance_epsilon).rsqrt_()).mul_(norm.weight)


def _is_rms_norm(part: nn.Module) -> bool:
    """The module computes what `_rms_norm` does: it is asked, since every model family has a class of its own."""
    weight = getattr(part, "weight", None)
    if not isinstance(getattr(part, "variance_epsilon", None), float) or not isinstance(weight, Tensor):
        return False
    if not plain(weight) or weight.ndim != 1:
        return False
    probe = torch.linspace(-1, 2, len(weight))[None]
    expected = type(part).forward(part, probe)
    return isinstance(expected, Tensor) and torch.allclose(_rms_norm(part, probe), expected, _ROUNDING, _ROUNDING)


@contextlib.contextmanager
def fused_norms(model: nn.Module) -> Iterator[None]:
    """Inside the block RMS norms of Llama's form run in fewer operations; the formula is the same, the rounding not.

    Args:
        model: Its modules are as before afterwards, also after an exception.
    """
    own = [part for part in model.modules() if "forward" not in vars(part)]
    first = {type(part): part for part in reversed(own)}
    kinds = {kind for kind, part in first.items() if _is_rms_norm(part)}
    with exchanged({part: partial(_rms_norm, part) for part in own if type(part) in kinds}):
        yield
