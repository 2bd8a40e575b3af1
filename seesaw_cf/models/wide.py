"""More digits than a model has: float64, on the CPU where a device has none, and float32 sums of half precision."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

_WITHOUT = {"mps"}


def float64_device(device: torch.device) -> torch.device:
    """Return the device, or the CPU in place of one without float64."""
    return torch.device("cpu") if device.type in _WITHOUT else device


def in_float64(tensor: Tensor) -> Tensor:
    """Return a tensor in float64, on the CPU where its device has none."""
    return (tensor.cpu() if tensor.device.type in _WITHOUT else tensor).double()


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
