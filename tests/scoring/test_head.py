"""Logits in kept memory: the library's numbers, the same place every time, nothing left behind."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from seesaw_cf.scoring.head import kept_logits
from tests.scoring.models import make


def head_of(model: nn.Module) -> nn.Linear:
    head: nn.Linear = model.get_output_embeddings()  # type: ignore[operator]
    return head


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_logits_are_the_same_and_stand_in_the_same_place(kind: str) -> None:
    model = make(kind)
    head = head_of(model)
    torch.manual_seed(0)
    parts = [torch.randn(1, rows, head.in_features) for rows in (9, 4, 7)]
    expected = [head(part) for part in parts]
    places = set()
    with torch.inference_mode(), kept_logits(model):
        for part, wanted in zip(parts, expected, strict=True):
            found = head(part)
            assert found.shape == wanted.shape
            torch.testing.assert_close(found, wanted)
            places.add(found.data_ptr())
    assert len(places) == 1
    assert "forward" not in vars(head)


def test_gradients_flow_as_ever() -> None:
    model = make("gpt2")
    head = head_of(model)
    with kept_logits(model):
        one, two = head(torch.ones(1, 2, head.in_features)), head(torch.ones(1, 2, head.in_features))
    assert one.requires_grad
    assert one.data_ptr() != two.data_ptr()


def test_heads_that_are_more_than_a_product_are_left_alone() -> None:
    """Phi's head has a bias; a head whose forward pass somebody exchanged is theirs."""
    phi = make("phi")
    with kept_logits(phi):
        assert "forward" not in vars(head_of(phi))
    llama = make("llama")
    head = head_of(llama)
    own = head.forward
    vars(head)["forward"] = own
    with kept_logits(llama):
        assert vars(head)["forward"] is own


def test_it_is_as_before_after_an_exception() -> None:
    model = make("llama")
    with pytest.raises(RuntimeError, match="stop"), kept_logits(model):
        raise RuntimeError("stop")
    assert "forward" not in vars(head_of(model))
