"""The head's product in float32, whatever the model's dtype."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from seesaw_cf.models.hooks import exchanged

_SLAB = 2**22
"""Numbers of a low-precision head that are held in float32 at a time."""


@contextlib.contextmanager
def wide_head(model: PreTrainedModel) -> Iterator[None]:
    """Inside the block a bfloat16 or float16 model computes its logits in float32, when no gradients are asked for.

    Only plain linear heads are treated like this.

    Args:
        model: Its head is as before afterwards, also after an exception.
    """
    head: Any = model.get_output_embeddings()
    low = type(head) is nn.Linear and head.weight.dtype in (torch.bfloat16, torch.float16)
    if not low or "forward" in vars(head):
        yield
        return

    def forward(hidden: Tensor) -> Tensor:
        answer: Tensor = nn.Linear.forward(head, hidden) if torch.is_grad_enabled() else _wide(hidden, head)
        return answer

    with exchanged({head: forward}):
        yield


def _wide(hidden: Tensor, head: nn.Linear) -> Tensor:
    """A slab of the vocabulary at a time, so that the head is never held twice."""
    rows = max(1, _SLAB // head.in_features)
    wide = hidden.float()
    out = wide.new_empty(*hidden.shape[:-1], head.out_features)
    for start in range(0, head.out_features, rows):
        part = slice(start, start + rows)
        bias = None if head.bias is None else head.bias[part].float()
        out[..., part] = F.linear(wide, head.weight[part].float(), bias)
    return out
