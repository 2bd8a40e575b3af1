"""Attention with shared key heads and chosen log-probabilities give the library's own numbers and gradients."""

import contextlib
from typing import Any
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from seesaw_cf.models import hooks
from seesaw_cf.models.tensors import log_probabilities
from tests.fakes import tiny_model
from tests.scoring.models import make

sizes = st.integers(1, 3)


earlier_tokens = st.sampled_from([0, 1, 5, hooks._SHORT])


@given(sizes, sizes, st.integers(1, 4), st.integers(1, 6), earlier_tokens, st.booleans(), st.integers(0, 99))
def test_answers_and_gradients_are_the_librarys(
    batch: int, keys: int, heads: int, tokens: int, earlier: int, one_mask: bool, seed: int
) -> None:
    draw = torch.Generator().manual_seed(seed)
    shapes = [(batch, keys * heads, tokens, 4)] + [(batch, keys, tokens + earlier, 4)] * 2
    sides = [torch.randn(shape, generator=draw, dtype=torch.float64, requires_grad=True) for shape in shapes]
    query, key, value = sides
    mask = torch.randn(1 if one_mask else batch, 1, tokens, tokens + earlier, generator=draw, dtype=torch.float64)
    weight = torch.randn(batch, tokens, keys * heads, 4, generator=draw, dtype=torch.float64)
    found, layer = [], nn.Module()
    layer.num_key_value_groups = heads  # type: ignore[assignment]
    for attend in (sdpa_attention_forward, hooks._attend):
        answer, _ = attend(layer, query, key, value, mask, scaling=0.3)
        found.append([answer, *torch.autograd.grad((answer * weight).sum(), sides)])
    for own, theirs in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(own, theirs, rtol=1e-12, atol=1e-12)


def run_counted(model: Any) -> tuple[Tensor, int]:
    """Run a model under a mask of our own: its logits, and how often the library's fused attention was called."""
    real = nn.functional.scaled_dot_product_attention
    with mock.patch.object(nn.functional, "scaled_dot_product_attention", wraps=real) as fused, torch.no_grad():
        logits = model(input_ids=torch.tensor([[3, 4, 5]]), attention_mask=torch.zeros(1, 1, 3, 3)).logits
    return logits, fused.call_count


def test_a_model_is_switched_inside_the_block_alone() -> None:
    model = make("llama")  # four query heads, two key heads
    expected, calls = run_counted(model)
    assert calls == 3
    with contextlib.suppress(KeyboardInterrupt), hooks.grouped_query_attention(model):
        found, calls = run_counted(model)
        assert calls == 0
        torch.testing.assert_close(found, expected)
        raise KeyboardInterrupt
    assert model.config._attn_implementation == "sdpa"
    assert run_counted(model)[1] == 3


def test_half_precision_is_added_up_by_a_kernel() -> None:
    """Products would round each sum to half precision."""
    model = make("llama").bfloat16()
    expected, _ = run_counted(model)
    with hooks.grouped_query_attention(model):
        found, calls = run_counted(model)
    assert calls == 3
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("model", [make("llama", attention="eager"), make("gpt_neox"), tiny_model("gpt2")])
def test_other_attention_is_left_alone(model: Any) -> None:
    before = model.config._attn_implementation
    with hooks.grouped_query_attention(model):
        assert model.config._attn_implementation == before


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
