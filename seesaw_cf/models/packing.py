"""Rows of different lengths in few tensors: padded batches, or several rows in one sequence, and their cache."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import fields

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import CausalLMOutputWithPast

_OLD_CACHE = "past_key_values"


def batches(lengths: Sequence[int], max_tokens: int, apart: int | None = None) -> Iterator[list[int]]:
    """Yield groups of indices, longest rows first, of at most `max_tokens` tokens with padding (one row at least).

    A row longer than `apart` is a group of its own.
    """
    group: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        longest = lengths[group[0]] if group else 0
        if group and (longest * (len(group) + 1) > max_tokens or longest > (apart or longest)):
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def pad(rows: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return right-padded ids and attention mask, both (rows, longest); padding is token 0 and never attended to."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], device=device)
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows], device=device)
    return ids, mask


def cache_name(model: nn.Module) -> str:
    """Return what a model calls its key-value cache: `cache` since transformers 5.24, `past_key_values` before.

    Code from the Hub may have the old name still. The signature of a wrapped model has neither.
    """
    names = {*inspect.signature(model.forward).parameters, *(field.name for field in fields(CausalLMOutputWithPast))}
    return _OLD_CACHE if _OLD_CACHE in names else "cache"


def bins_of(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Share rows out over sequences of nearly equal length: the longest row next, to the emptiest sequence.

    Args:
        lengths: Tokens of each row.
        size: Tokens of a sequence, more only where one row alone is longer.

    Returns:
        For each sequence the indices of its rows.
    """
    count = -(-sum(lengths) // max(size, *lengths))
    bins: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        emptiest = loads.index(min(loads))
        bins[emptiest].append(index)
        loads[emptiest] += lengths[index]
    return bins
