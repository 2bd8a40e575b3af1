"""Log-probabilities of a few tokens out of a whole vocabulary; the backward pass makes one gradient of its size.

The library's makes four: one of zeros for each of the two selections, their sum, and the logits'.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


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
