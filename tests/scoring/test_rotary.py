"""Faster rotary embeddings: the same answers where the formula is Llama's, everything else left alone."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seesaw_cf.scoring.rotary import fast_rotary
from tests.scoring.models import make


def place(model: nn.Module) -> Any:
    """The Python module that the model's family is written in."""
    return sys.modules[type(model).__module__]


def given(heads: int = 4, tokens: int = 7, width: int = 8) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    query, key = (torch.randn(1, tokens, heads, width).transpose(1, 2) for _ in range(2))
    turns = torch.randn(1, tokens, width // 2).repeat(1, 1, 2)
    return query, key, turns.cos(), turns.sin()


@pytest.mark.parametrize("kind", ["llama", "mistral", "qwen2", "qwen3", "gemma", "gemma3_text", "phi3"])
def test_the_same_values_as_the_familys_own(kind: str) -> None:
    model = make(kind)
    own = place(model).apply_rotary_pos_emb
    expected = own(*given())
    with torch.inference_mode(), fast_rotary(model):
        fast = place(model).apply_rotary_pos_emb
        assert fast is not own
        found = fast(*given())
        half = fast(*(part.to(torch.bfloat16) for part in given()))
    for one, other in zip(expected, found, strict=True):
        assert one.shape == other.shape
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)
    assert torch.equal(half[0], own(*(part.to(torch.bfloat16) for part in given()))[0])
    assert place(model).apply_rotary_pos_emb is own


def test_other_shapes_and_arguments_go_to_the_familys_own() -> None:
    model = make("llama")
    own = place(model).apply_rotary_pos_emb
    query, key, cos, sin = given()
    with torch.inference_mode(), fast_rotary(model):
        fast = place(model).apply_rotary_pos_emb
        by_token = fast(query.transpose(1, 2), key.transpose(1, 2), cos, sin, unsqueeze_dim=2)
        several = fast(*(part.expand(3, *part.shape[1:]) for part in (query, key, cos, sin)))
    torch.testing.assert_close(by_token[0].transpose(1, 2), own(query, key, cos, sin)[0])
    torch.testing.assert_close(several[1], own(query, key, cos, sin)[1].expand(3, -1, -1, -1))


def test_a_family_with_another_formula_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def interleaved(query: Tensor, key: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        def half(values: Tensor) -> Tensor:
            return torch.stack((-values[..., 1::2], values[..., ::2]), -1).flatten(-2)

        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return query * cos + half(query) * sin, key * cos + half(key) * sin

    def stranger(tokens: str) -> str:
        return tokens

    model = make("llama")
    for other in (interleaved, stranger):
        monkeypatch.setattr(place(model), "apply_rotary_pos_emb", other)
        with fast_rotary(model):
            assert place(model).apply_rotary_pos_emb is other


def test_it_is_put_back_after_an_exception() -> None:
    model = make("llama")
    own = place(model).apply_rotary_pos_emb
    with pytest.raises(KeyError), fast_rotary(model):
        raise KeyError
    assert place(model).apply_rotary_pos_emb is own
