"""Operations of attention as torch counts them elsewhere, where its own counter refuses or leaves out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

Shape = Sequence[int]


def _each_head(query: Shape, *sides: Shape) -> list[list[int]]:
    """Shapes of keys and values that several heads share, as if each had its own."""
    return [[query[0], query[1], *side[2:]] for side in sides]


def _forward(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query, *_each_head(query, key, value)))


def _backward(gradient: Shape, query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    return int(sdpa_backward_flop_count(gradient, query, *_each_head(query, key, value)))


_KERNELS = ("flash_attention", "efficient_attention", "cudnn_attention", "flash_attention_for_cpu")
_ATTENTION: dict[Any, Callable[..., int]] = {
    getattr(torch.ops.aten, f"_scaled_dot_product_{kernel}{end}"): count
    for kernel in _KERNELS
    for end, count in (("", _forward), ("_backward", _backward))
}


def flop_counter() -> FlopCounterMode:
    """A counter of operations that also knows attention on a CPU, and heads that share keys."""
    return FlopCounterMode(display=False, custom_mapping=_ATTENTION)
