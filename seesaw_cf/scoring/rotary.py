"""Rotary embeddings in three passes over memory for the library's nine."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from seesaw_cf.scoring.activations import plain

__all__ = ["fast_rotary"]

_NAME = "apply_rotary_pos_emb"
_ROUNDING = 1e-5

Rotary = Callable[..., tuple[Tensor, Tensor]]


def _rotated(values: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x cos + rotate_half(x) sin of (rows, heads, tokens, d) that lie in memory by token."""
    given, cos, sin = values.transpose(1, 2), cos.unsqueeze(2), sin.unsqueeze(2)
    half = values.shape[-1] // 2
    found = given * cos
    found[..., :half].addcmul_(given[..., half:], sin[..., :half], value=-1)
    found[..., half:].addcmul_(given[..., :half], sin[..., half:])
    return found.transpose(1, 2)


@lru_cache
def _fast(function: Rotary) -> Rotary | None:
    """A faster form of a model family's own function; None when that is another one, which its answers show."""

    def fast(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor, *rest: Any, **named: Any) -> tuple[Tensor, Tensor]:
        known = not rest and not named and query.ndim == 4 and cos.ndim == 3
        if known and cos.shape[-1] == query.shape[-1] and plain(query):
            return _rotated(query, cos, sin), _rotated(key, cos, sin)
        return function(query, key, cos, sin, *rest, **named)

    probe = torch.linspace(-1, 2, 2 * 3 * 4 * 8).reshape(2, 1, 3, 4, 8)
    turn = torch.linspace(0, 3, 4 * 8).reshape(1, 4, 8)
    try:
        with torch.inference_mode():
            pairs = zip(function(*probe, turn.cos(), turn.sin()), fast(*probe, turn.cos(), turn.sin()), strict=True)
            return fast if all(torch.allclose(a, b, _ROUNDING, _ROUNDING) for a, b in pairs) else None
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
        return None


@contextlib.contextmanager
def fast_rotary(model: nn.Module) -> Iterator[None]:
    """Inside the block, models whose rotary embedding is Llama's compute it faster; all others as ever.

    Args:
        model: The function is exchanged in the Python modules that its layers come from, and put back afterwards.
    """
    places = {name: sys.modules[name] for name in {type(part).__module__ for part in model.modules()}}
    own = {name: function for name, place in places.items() if (function := vars(place).get(_NAME)) is not None}
    fast = {name: faster for name, function in own.items() if (faster := _fast(function)) is not None}
    try:
        for name, faster in fast.items():
            setattr(places[name], _NAME, faster)
        yield
    finally:
        for name in fast:
            setattr(places[name], _NAME, own[name])
