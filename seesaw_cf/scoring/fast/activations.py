"""Activation functions in fewer passes over memory: on a CPU, an MLP's time goes to these and to matrix products."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.activations import FastGELUActivation, GELUTanh, NewGELUActivation, SiLUActivation

from seesaw_cf.models.hooks import exchanged

_GELU = (NewGELUActivation, FastGELUActivation, GELUTanh)
_SILU = (nn.SiLU, SiLUActivation)
_SLOPE = math.sqrt(8 / math.pi)
_SLAB = 65_536  # numbers: a slab and its intermediate values stay in a core's cache


def worth_fusing(values: Tensor) -> bool:
    """Return whether PyTorch's own kernels are slower than these: float32 on a CPU, without gradients or autocast."""
    fits = values.device.type == "cpu" and values.dtype == torch.float32
    return fits and torch.is_inference_mode_enabled() and not torch.is_autocast_enabled("cpu")


@contextlib.contextmanager
def fused_activations(model: nn.Module) -> Iterator[None]:
    """Make GELU's tanh form, SiLU and MLPs gated by SiLU faster while the block runs; only the rounding differs.

    Args:
        model: Its modules are as before afterwards, also after an exception.
    """
    own = {part for part in model.modules() if "forward" not in vars(part)}
    forwards: dict[nn.Module, Callable[[Tensor], Tensor]] = {}
    for part in own:
        if type(part) in (*_GELU, *_SILU):
            forwards[part] = _gelu if type(part) in _GELU else _silu
        act: Any = getattr(part, "act_fn", None)
        silent = type(act) in _SILU and act in own and not (act._forward_hooks or act._forward_pre_hooks)
        if silent and _is_gated(type(part).forward):
            forwards[part] = partial(_gated, part)
    with exchanged(forwards):
        yield


@lru_cache
def _is_gated(forward: Callable[..., Tensor]) -> bool:
    """Return whether a class's forward function computes what `_gated` does, tried with stand-ins for its parts."""
    parts = SimpleNamespace(gate_proj=torch.sin, up_proj=torch.exp, down_proj=torch.square, act_fn=F.silu)
    probe = torch.linspace(-1, 2, 12).reshape(1, 3, 4)
    try:
        with torch.inference_mode():
            return torch.equal(forward(parts, probe), _gated(parts, probe))
    except (AttributeError, TypeError):
        return False


def _gated(mlp: Any, values: Tensor) -> Tensor:
    """Return down(SiLU(gate(x)) * up(x)), the middle in one pass over memory."""
    if not worth_fusing(values):
        answer: Tensor = type(mlp).forward(mlp, values)
        return answer
    gate, up = mlp.gate_proj(values).contiguous(), mlp.up_proj(values)
    width = gate.shape[-1]
    rows = max(1, _SLAB // width)
    for gate_rows, other in zip(gate.view(-1, width).split(rows), up.reshape(-1, width).split(rows)):
        F.silu(gate_rows, inplace=True).mul_(other)
    answer = mlp.down_proj(gate)
    return answer  # noqa: RET504


def _gelu(values: Tensor) -> Tensor:
    """Return 0.5 x (1 + tanh(t)) = x sigmoid(2 t), t = sqrt(2 / pi) (x + 0.044715 x^3).

    PyTorch's own kernel for CPUs takes twice as long.
    """
    if not worth_fusing(values):
        return F.gelu(values, approximate="tanh")
    result = torch.empty_like(values, memory_format=torch.contiguous_format)
    width = values.shape[-1]
    rows = max(1, _SLAB // width)
    slope, held = values.new_tensor(_SLOPE), values.new_empty(rows, width)
    for rows_in, out in zip(values.reshape(-1, width).split(rows), result.view(-1, width).split(rows)):
        gate = held[: len(rows_in)]
        torch.addcmul(slope, rows_in, rows_in, value=0.044715 * _SLOPE, out=gate)
        torch.mul(rows_in, gate.mul_(rows_in).sigmoid_(), out=out)
    return result


def _silu(values: Tensor) -> Tensor:
    """Apply SiLU, in place where that is faster: nothing else reads the input, the product before it."""
    return F.silu(values, inplace=worth_fusing(values))
