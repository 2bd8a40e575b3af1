"""The head's product in memory that is kept between passes.

A block of logits is tens of megabytes. Asked of the system anew for every pass it costs a quarter of the product's time
in page faults.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

__all__ = ["kept_logits"]


@contextlib.contextmanager
def kept_logits(model: PreTrainedModel) -> Iterator[None]:
    """Inside the block every forward pass without gradients writes its logits where the last one's were.

    So logits must have been used up before the next pass. Only plain linear heads on a CPU are treated like this; the
    memory is given back at the end.

    Args:
        model: Its head is as before afterwards, also after an exception.
    """
    head: Any = model.get_output_embeddings()
    if type(head) is not nn.Linear or head.bias is not None or "forward" in vars(head):
        yield
        return
    kept = [head.weight.new_empty(0, head.out_features)]

    def forward(hidden: Tensor) -> Tensor:
        if torch.is_grad_enabled() or hidden.device.type != "cpu":
            return nn.Linear.forward(head, hidden)
        flat = hidden.flatten(0, -2)
        if len(kept[0]) < len(flat):
            kept.clear()
            kept.append(flat.new_empty(len(flat), head.out_features))
        return torch.mm(flat, head.weight.T, out=kept[0][: len(flat)]).unflatten(0, hidden.shape[:-1])

    vars(head)["forward"] = forward
    try:
        yield
    finally:
        vars(head).pop("forward", None)
