"""The head's product: in memory that is kept between passes, and in float32 whatever the model's dtype.

A block of logits is tens of megabytes. Asked of the system anew for every pass it costs a quarter of the product's time
in page faults.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel

from seesaw_cf.models.hooks import exchanged

__all__ = ["wide_head"]

_SLAB = 2**22
"""Numbers of a low-precision head that are held in float32 at a time."""


@contextlib.contextmanager
def wide_head(model: PreTrainedModel) -> Iterator[None]:
    """Inside the block a pass without gradients computes its logits in float32, where the last pass's logits were.

    So logits must have been used up before the next pass. Only plain linear heads are treated like this; the memory is
    given back at the end.

    Args:
        model: Its head is as before afterwards, also after an exception.
    """
    head: Any = model.get_output_embeddings()
    plain = type(head) is nn.Linear and "forward" not in vars(head)
    low = plain and head.weight.dtype in (torch.bfloat16, torch.float16)
    if not low and not (plain and head.bias is None and head.weight.device.type == "cpu"):
        yield
        return
    product, kept = (_wide if low else _same), [torch.empty(0)]

    def forward(hidden: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            answer: Tensor = type(head).forward(head, hidden)
            return answer
        flat = hidden.flatten(0, -2)
        if len(kept[0]) < len(flat):
            kept[0] = torch.empty(0)  # given back before more is asked for
            wide = torch.promote_types(flat.dtype, torch.float32)
            kept[0] = _room(len(flat), head.out_features, wide, flat.device)
        logits = kept[0][: len(flat)]
        product(flat, head, logits)
        return logits.view(*hidden.shape[:-1], -1)

    with exchanged({head: forward}):
        yield


def _room(rows: int, columns: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Memory for logits; on a CPU in large pages where the system has them, since small ones take longer to come."""
    size = rows * columns * dtype.itemsize
    if device.type != "cpu" or size < 2**22 or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(rows, columns, dtype=dtype, device=device)
    try:
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:  # no memory: torch says so in its own words, which are understood further up
        return torch.empty(rows, columns, dtype=dtype, device=device)
    with contextlib.suppress(OSError):  # a kernel without large pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=dtype).view(rows, columns)


def _same(hidden: Tensor, head: nn.Linear, out: Tensor) -> None:
    torch.mm(hidden, head.weight.T, out=out)


def _wide(hidden: Tensor, head: nn.Linear, out: Tensor) -> None:
    """In float32, a slab of the vocabulary at a time, so that the head is never held twice."""
    rows = max(1, _SLAB // head.in_features)
    given = hidden.to(out.dtype)
    for start in range(0, head.out_features, rows):
        part = slice(start, start + rows)
        bias = None if head.bias is None else head.bias[part].to(out.dtype)
        out[:, part] = F.linear(given, head.weight[part].to(out.dtype), bias)
