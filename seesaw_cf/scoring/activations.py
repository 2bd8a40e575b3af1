"""Activation functions in fewer passes over memory: beside products, that is what an MLP's time goes to on a CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.activations import FastGELUActivation, GELUTanh, NewGELUActivation, SiLUActivation
from transformers.pytorch_utils import Conv1D

__all__ = ["fast_activations", "plain"]

_GELU = (NewGELUActivation, FastGELUActivation, GELUTanh)
_SILU = (nn.SiLU, SiLUActivation)
_SLOPE = math.sqrt(8 / math.pi)
_SLAB = 65_536  # numbers: a slab and its intermediate values stay in a core's cache
_BEFORE = {"GPT2MLP": "c_fc", "GPTJMLP": "fc_in", "CodeGenMLP": "fc_in"}
"""MLPs that are `act(layer(x))`, by the name of that layer: its bias is added where the activation reads its output."""


def plain(values: Tensor) -> bool:
    """Where PyTorch's own kernels are slower than what stands here: float32 on a CPU, without gradients or autocast."""
    fits = values.device.type == "cpu" and values.dtype == torch.float32
    return fits and torch.is_inference_mode_enabled() and not torch.is_autocast_enabled("cpu")


def fast_activations(parts: Collection[nn.Module]) -> dict[nn.Module, Callable[[Tensor], Tensor]]:
    """For some of a model's modules a forward function that gives the same values, but for rounding, in less time.

    Args:
        parts: The modules that may get another one.
    """
    free = set(parts)
    found: dict[nn.Module, Callable[[Tensor], Tensor]] = {
        part: _gelu if type(part) in _GELU else _silu for part in parts if type(part) in (*_GELU, *_SILU)
    }
    for part in parts:
        act: Any = getattr(part, "act", None)
        layer: Any = getattr(part, _BEFORE.get(type(part).__name__, ""), None)
        biased = type(layer) in (nn.Linear, Conv1D) and layer.bias is not None
        if biased and type(act) in _GELU and {act, layer} <= free:
            found |= {layer: partial(_product, layer), act: partial(_biased_gelu, layer)}
        act = getattr(part, "act_fn", None)
        silent = type(act) in _SILU and act in free and not (act._forward_hooks or act._forward_pre_hooks)
        if silent and _is_gated(type(part).forward):
            found[part] = partial(_gated, part)
    return found


@lru_cache
def _is_gated(forward: Callable[..., Any]) -> bool:
    """A class's forward function computes what `_gated` does; it is asked, with other parts in place of a module's."""
    parts = SimpleNamespace(gate_proj=torch.sin, up_proj=torch.exp, down_proj=torch.square, act_fn=F.silu)
    probe = torch.linspace(-1, 2, 12).reshape(1, 3, 4)
    try:
        with torch.inference_mode():
            return torch.equal(forward(parts, probe), _gated(parts, probe))
    except (AttributeError, TypeError):
        return False


def _gated(mlp: Any, values: Tensor) -> Tensor:
    """down(SiLU(gate(x)) * up(x)), the middle in one pass over memory."""
    if not plain(values):
        answer: Tensor = type(mlp).forward(mlp, values)
        return answer
    gate, up = mlp.gate_proj(values).contiguous(), mlp.up_proj(values)
    width = gate.shape[-1]
    rows = max(1, _SLAB // width)
    for given, other in zip(gate.view(-1, width).split(rows), up.reshape(-1, width).split(rows)):
        F.silu(given, inplace=True).mul_(other)
    answer = mlp.down_proj(gate)
    return answer  # noqa: RET504


def _product(layer: Any, values: Tensor) -> Tensor:
    """The layer without its bias."""
    if not plain(values):
        answer: Tensor = type(layer).forward(layer, values)
        return answer
    return values @ (layer.weight if isinstance(layer, Conv1D) else layer.weight.T)


def _biased_gelu(layer: Any, values: Tensor) -> Tensor:
    """GELU of `_product`'s answer and the bias, written over it."""
    if not plain(values):
        return F.gelu(values, approximate="tanh")
    values = values.contiguous()
    return _gelu_slabs(values, values, layer.bias)


def _gelu(values: Tensor) -> Tensor:
    if not plain(values):
        return F.gelu(values, approximate="tanh")
    return _gelu_slabs(values, torch.empty_like(values, memory_format=torch.contiguous_format), None)


def _gelu_slabs(values: Tensor, found: Tensor, bias: Tensor | None) -> Tensor:
    """0.5 x (1 + tanh(t)) = x sigmoid(2 t) of x = values + bias; PyTorch's own kernel for CPUs takes twice as long."""
    width = values.shape[-1]
    rows = max(1, _SLAB // width)
    slope, held = values.new_tensor(_SLOPE), values.new_empty(rows, width)
    for given, out in zip(values.reshape(-1, width).split(rows), found.view(-1, width).split(rows)):
        gate = held[: len(given)]
        if bias is not None:
            given = torch.add(given, bias, out=out)
        torch.addcmul(slope, given, given, value=0.044715 * _SLOPE, out=gate)
        torch.mul(given, gate.mul_(given).sigmoid_(), out=out)
    return found


def _silu(values: Tensor) -> Tensor:
    """Written over its input: the product before it, which nothing else reads."""
    return F.silu(values, inplace=plain(values))
