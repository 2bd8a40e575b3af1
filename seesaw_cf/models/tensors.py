"""Tensors: rows of different lengths in few of them, more digits than a model has, and the memory that is free."""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import CausalLMOutputWithPast

_OLD_CACHE = "past_key_values"
_WITHOUT_FLOAT64 = {"mps"}


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


# More digits than a model has: float64, on the CPU where a device has none, and float32 sums of half precision.


def float64_device(device: torch.device) -> torch.device:
    """Return the device, or the CPU in place of one without float64."""
    return torch.device("cpu") if device.type in _WITHOUT_FLOAT64 else device


def in_float64(tensor: Tensor) -> Tensor:
    """Return a tensor in float64, on the CPU where its device has none."""
    return (tensor.cpu() if tensor.device.type in _WITHOUT_FLOAT64 else tensor).double()


def adds_in_float32(tensor: Tensor) -> bool:
    """Return whether the device multiplies this half precision as it is and adds the products up in float32."""
    half = tensor.dtype in (torch.bfloat16, torch.float16)
    return half and tensor.device.type == "cuda" and _has_float32_sums(tensor.device, tensor.dtype)


@cache
def _has_float32_sums(device: torch.device, dtype: torch.dtype) -> bool:
    square = torch.ones(16, 16, device=device, dtype=dtype)
    try:
        return torch.mm(square, square, out_dtype=torch.float32).dtype == torch.float32
    except (RuntimeError, TypeError):  # no such kernel, or torch before 2.8
        return False


def wide_product(left: Tensor, right: Tensor) -> Tensor:
    """Return the product of two matrices of one dtype in float32 (float64 of float64).

    Products of two half-precision numbers are exact in float32, so that both ways differ by the order of sums alone.
    """
    if adds_in_float32(left):
        return torch.mm(left, right, out_dtype=torch.float32)
    wide = torch.promote_types(left.dtype, torch.float32)
    return left.to(wide) @ right.to(wide)


# Log-probabilities of a few tokens out of a whole vocabulary; the backward pass makes one gradient of its size.
# The library's makes four: one of zeros for each of the two selections, their sum, and the logits'.


class _LogProbabilities(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, places: Tensor, ids: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        log_p = logits.log_softmax(-1)
        ctx.save_for_backward(log_p, places, ids, rows)
        return log_p[places, ids], log_p[rows]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of_tokens: Tensor, of_rows: Tensor) -> tuple[Tensor, None, None, None]:
        log_p, places, ids, rows = ctx.saved_tensors
        # d log p_i / d logit_j is 1 where i = j, less p_j
        row_sums = log_p.new_zeros(len(log_p)).index_add_(0, places, of_tokens).index_add_(0, rows, of_rows.sum(-1))
        gradient = log_p.exp().mul_(-row_sums[:, None])
        gradient.index_put_((places, ids), of_tokens, accumulate=True)
        return gradient.index_add_(0, rows, of_rows), None, None, None


def log_probabilities(logits: Tensor, places: Tensor, ids: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return next-token log-probabilities, in nats.

    Args:
        logits: (n, vocabulary).
        places, ids: (k,) rows of `logits`, and a token of each.
        rows: (m,) rows that are returned with their whole vocabulary.

    Returns:
        (k,) of the tokens, and (m, vocabulary) of the rows. They can be differentiated once.
    """
    log_p: tuple[Tensor, Tensor] = _LogProbabilities.apply(logits, places, ids, rows)  # type: ignore[no-untyped-call]
    return log_p


# How much memory a device has, and how much of it is free.

_MEMORY, _OWN_GROUPS, _GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
# Controllers of a hierarchy of control groups, "" of version 2 -> its folder, and files of limit and use.
_FILES = {
    "": (".", "memory.max", "memory.current"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
}


def physical_memory() -> int:
    """Return bytes of memory of this machine, or that its container or its job may use."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(limit for limit, _ in _limits())])


def free_memory(device: torch.device) -> int:
    """Return bytes that a device can give this process; half of the machine's memory where the system does not say.

    On Linux the cache of files counts as free: it fills the memory of any machine that has run for a while.
    """
    if device.type == "cuda":  # what torch holds and nothing uses is free, too
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + unused
    available = re.search(r"^MemAvailable: +(\d+) kB$", _text(_MEMORY), re.MULTILINE)
    free = int(available[1]) * 1024 if available else physical_memory() // 2
    return min([free, *(max(limit - used, 0) for limit, used in _limits())])


def _limits() -> Iterator[tuple[int, int]]:
    """Yield limit and use, in bytes, of every control group of this process that has a limit."""
    for line in _text(_OWN_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in _FILES:
            continue
        below, limit, used = _FILES[controllers]
        root = _GROUPS / below
        group = root / path.strip("/")  # in a container a path of the host, which is not there: its root is
        for folder in (group, *group.parents):
            if folder.is_relative_to(root) and (bound := _text(folder / limit).strip()).isdecimal():
                caches = re.findall(r"^(?:total_)?inactive_file (\d+)$", _text(folder / "memory.stat"), re.MULTILINE)
                yield int(bound), int(_text(folder / used) or 0) - max(map(int, caches), default=0)


def _text(file: Path) -> str:
    return file.read_text(encoding="ascii") if file.is_file() else ""


def all_finite(matrix: Tensor) -> bool:
    """Return whether no entry is NaN or infinite, without a temporary of the matrix's size as `isfinite` makes."""
    least, most = matrix.aminmax()
    return math.isfinite(float(least)) and math.isfinite(float(most))
