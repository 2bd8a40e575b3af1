"""TF32: products of float32 matrices on NVIDIA's tensor cores, with ten bits of each factor; many times as fast."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from weakref import WeakSet

import torch
from torch import nn
from transformers import PreTrainedModel

TF32 = "tf32"
"""What stands for it among the dtypes of a model."""

_log = logging.getLogger(__name__)
_FAST: WeakSet[nn.Module] = WeakSet()


def use_tf32(model: PreTrainedModel) -> None:
    """Multiply this model's matrices in TF32 wherever this package scores or edits with it; on CUDA only.

    What is cached for any float32 model, such as second moments, is computed in float32 all the same.
    """
    if model.device.type == "cuda":
        _FAST.add(model)
    else:
        _log.warning("--dtype tf32 changes nothing on %s: only NVIDIA's GPUs have it. Use float32.", model.device.type)


def has_tf32(model: nn.Module) -> bool:
    """Return whether this model's matrices are multiplied in TF32."""
    return model in _FAST


@contextlib.contextmanager
def products_of(model: nn.Module) -> Iterator[None]:
    """Multiply matrices in TF32 while the block runs, where the model asks for it; other threads' too."""
    with _switched(True) if has_tf32(model) else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def exact_products(model: nn.Module) -> Iterator[None]:
    """Keep a model that uses TF32 from using it while the block runs."""
    if not has_tf32(model):
        yield
        return
    _FAST.discard(model)
    try:
        with _switched(False):
            yield
    finally:
        _FAST.add(model)


@contextlib.contextmanager
def _switched(fast: bool) -> Iterator[None]:
    switch = torch.backends.cuda.matmul
    before, switch.allow_tf32 = switch.allow_tf32, fast
    try:
        yield
    finally:
        switch.allow_tf32 = before
