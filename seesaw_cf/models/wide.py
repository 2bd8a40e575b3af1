"""Float64 where a device has none: there it is computed on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

_WITHOUT = {"mps"}


def float64_device(device: torch.device) -> torch.device:
    """Return the device, or the CPU in place of one without float64."""
    return torch.device("cpu") if device.type in _WITHOUT else device


def in_float64(tensor: Tensor) -> Tensor:
    """Return a tensor in float64, on the CPU where its device has none."""
    return (tensor.cpu() if tensor.device.type in _WITHOUT else tensor).double()
