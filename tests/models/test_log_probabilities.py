"""Chosen log-probabilities and their gradient are those of `log_softmax`, from one pass of the vocabulary's size."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from seesaw_cf.models.tensors import log_probabilities

N, VOCABULARY = 6, 11


def plain(logits: Tensor, places: Tensor, ids: Tensor, whole: Tensor) -> tuple[Tensor, Tensor]:
    log_p = logits.log_softmax(-1)
    return log_p[places, ids], log_p[whole]


@given(
    st.lists(st.tuples(st.integers(0, N - 1), st.integers(0, VOCABULARY - 1)), max_size=9),
    st.lists(st.integers(0, N - 1), max_size=3),
    st.integers(0, 99),
)
def test_values_and_gradients_are_those_of_log_softmax(
    chosen: list[tuple[int, int]], whole: list[int], seed: int
) -> None:
    """Rows asked twice, and tokens asked twice, count twice; rows that nobody asks about have no gradient."""
    draw = torch.Generator().manual_seed(seed)
    logits = (30 * torch.randn(N, VOCABULARY, generator=draw, dtype=torch.float64)).requires_grad_()
    table = torch.tensor(chosen, dtype=torch.long).reshape(-1, 2)
    rows = torch.tensor(whole, dtype=torch.long)
    weights = [
        torch.randn(shape, generator=draw, dtype=torch.float64) for shape in (len(chosen), (len(whole), VOCABULARY))
    ]
    found = []
    for function in (log_probabilities, plain):
        answers = function(logits, table[:, 0], table[:, 1], rows)
        loss = sum((weight * answer).sum() for weight, answer in zip(weights, answers, strict=True))
        assert isinstance(loss, Tensor)
        found.append([*answers, *torch.autograd.grad(loss, logits)])
    for own, theirs in zip(*found, strict=True):
        torch.testing.assert_close(own, theirs, rtol=1e-12, atol=1e-12)
