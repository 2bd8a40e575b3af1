"""Log-probabilities of a few tokens out of a whole vocabulary; the backward pass makes one gradient of its size.

The library's makes four: one of zeros for each of the two selections, their sum, and the logits'.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _Chosen(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, places: Tensor, ids: Tensor, whole: Tensor) -> tuple[Tensor, Tensor]:
        log_p = logits.log_softmax(-1)
        ctx.save_for_backward(log_p, places, ids, whole)
        return log_p[places, ids], log_p[whole]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of_chosen: Tensor, of_whole: Tensor) -> tuple[Tensor, None, None, None]:
        log_p, places, ids, whole = ctx.saved_tensors
        # d log p_i / d logit_j is 1 where i = j, less p_j
        total = log_p.new_zeros(len(log_p)).index_add_(0, places, of_chosen).index_add_(0, whole, of_whole.sum(-1))
        gradient = log_p.exp().mul_(-total[:, None])
        gradient.index_put_((places, ids), of_chosen, accumulate=True)
        return gradient.index_add_(0, whole, of_whole), None, None, None


def log_probabilities(logits: Tensor, places: Tensor, ids: Tensor, whole: Tensor) -> tuple[Tensor, Tensor]:
    """Return next-token log-probabilities, in nats.

    Args:
        logits: (n, vocabulary).
        places, ids: (chosen,) rows of `logits`, and the token asked about in each.
        whole: (m,) rows whose log-probabilities are all asked.

    Returns:
        (chosen,) of the tokens, and (m, vocabulary) of the rows.
    """
    answers: tuple[Tensor, Tensor] = _Chosen.apply(logits, places, ids, whole)  # type: ignore[no-untyped-call]
    return answers
