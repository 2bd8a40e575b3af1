"""The same functions in fewer passes over memory, for the length of a `with` block."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers.activations import FastGELUActivation, GELUTanh, NewGELUActivation

__all__ = ["fused_modules"]

_SLOW = (NewGELUActivation, FastGELUActivation, GELUTanh)
_SLOPE = math.sqrt(8 / math.pi)
_SLAB = 65_536  # numbers: a slab and its intermediate values stay in a core's cache
_ROUNDING = 1e-5


def _plain(values: Tensor) -> bool:
    """Where PyTorch's own kernels are slower than what stands here: float32 on a CPU, without gradients."""
    return values.device.type == "cpu" and values.dtype == torch.float32 and torch.is_inference_mode_enabled()


def _gelu(values: Tensor) -> Tensor:
    """0.5 x (1 + tanh(t)) = x sigmoid(2 t); PyTorch's own kernel for CPUs takes nearly twice as long."""
    if not _plain(values):
        return torch.nn.functional.gelu(values, approximate="tanh")
    found = torch.empty_like(values, memory_format=torch.contiguous_format)
    slope = torch.tensor(_SLOPE)
    for given, out in zip(values.flatten().split(_SLAB), found.flatten().split(_SLAB)):
        torch.add(slope, torch.mul(given, given, out=out), alpha=0.044715 * _SLOPE, out=out)
        out.mul_(given).sigmoid_().mul_(given)
    return found


def _rms_norm(norm: Any, values: Tensor) -> Tensor:
    """w x / sqrt(mean(x^2) + eps), in three passes over memory for the library's six."""
    if not _plain(values):
        answer: Tensor = type(norm).forward(norm, values)
        return answer
    scale = torch.linalg.vector_norm(values, dim=-1, keepdim=True).square_().div_(values.shape[-1])
    return torch.mul(values, scale.add_(norm.variance_epsilon).rsqrt_()).mul_(norm.weight)


def _is_rms_norm(part: nn.Module) -> bool:
    """The module computes what `_rms_norm` does: it is asked, since every model family has a class of its own."""
    weight = getattr(part, "weight", None)
    if not isinstance(getattr(part, "variance_epsilon", None), float) or not isinstance(weight, Tensor):
        return False
    if not _plain(weight) or weight.ndim != 1:
        return False
    probe = torch.linspace(-1, 2, len(weight))[None]
    expected = type(part).forward(part, probe)
    return isinstance(expected, Tensor) and torch.allclose(_rms_norm(part, probe), expected, _ROUNDING, _ROUNDING)


@contextlib.contextmanager
def fused_modules(model: nn.Module) -> Iterator[None]:
    """Lets modules that are written as many operations run as few.

    These are GELU's tanh form, 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), of GPT-2 and GPT-J, and the RMS norm
    of Llama and its kin. The formulas are the same; only the rounding differs.

    Args:
        model: Its modules are as before afterwards, also after an exception.
    """
    own = [part for part in model.modules() if "forward" not in vars(part)]
    first = {type(part): part for part in reversed(own)}
    norms = {kind for kind, part in first.items() if _is_rms_norm(part)}
    fast: dict[nn.Module, Callable[[Tensor], Tensor]] = {part: _gelu for part in own if type(part) in _SLOW}
    fast |= {part: partial(_rms_norm, part) for part in own if type(part) in norms}
    try:
        for part, forward in fast.items():
            vars(part)["forward"] = forward
        yield
    finally:
        for part in fast:
            vars(part).pop("forward", None)
