"""The head: float32 for every dtype, in the same memory every time, the library's numbers, nothing left behind."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from seesaw_cf.scoring.head import _room, wide_head
from tests.scoring.models import make


def head_of(model: nn.Module) -> nn.Linear:
    head: nn.Linear = model.get_output_embeddings()  # type: ignore[operator]
    return head


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["gpt2", "phi"])
def test_low_precision_heads_answer_in_float32(kind: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Phi's head has a bias. Slabs of 5 rows make a remainder."""
    model = make(kind).to(dtype)
    head = head_of(model)
    monkeypatch.setattr("seesaw_cf.scoring.head._SLAB", 5 * head.in_features)
    given = torch.randn(2, 3, head.in_features, generator=torch.Generator().manual_seed(0)).to(dtype)
    bias = None if head.bias is None else head.bias.double()
    exact = nn.functional.linear(given.double(), head.weight.double(), bias)
    with torch.inference_mode(), wide_head(model):
        found = head(given)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_logits_are_the_same_and_stand_in_the_same_place(kind: str) -> None:
    model = make(kind)
    head = head_of(model)
    torch.manual_seed(0)
    parts = [torch.randn(1, rows, head.in_features) for rows in (9, 4, 7)]
    expected = [head(part) for part in parts]
    places = set()
    with torch.inference_mode(), wide_head(model):
        for part, wanted in zip(parts, expected, strict=True):
            found = head(part)
            assert found.shape == wanted.shape
            torch.testing.assert_close(found, wanted)
            places.add(found.data_ptr())
    assert len(places) == 1
    assert "forward" not in vars(head)


def test_memory_that_the_system_refuses_is_asked_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("seesaw_cf.scoring.head.mmap.mmap", refuse)
    room = _room(2048, 1024, torch.float32, torch.device("cpu"))
    assert room.shape == (2048, 1024)


def test_gradients_flow_as_ever() -> None:
    model = make("gpt2")
    head = head_of(model)
    with wide_head(model):
        one, two = head(torch.ones(1, 2, head.in_features)), head(torch.ones(1, 2, head.in_features))
    assert one.requires_grad
    assert one.data_ptr() != two.data_ptr()


def test_heads_that_are_more_than_a_product_are_left_alone() -> None:
    """Phi's head has a bias; a head whose forward pass somebody exchanged is theirs."""
    phi = make("phi")
    with wide_head(phi):
        assert "forward" not in vars(head_of(phi))
    llama = make("llama")
    head = head_of(llama)
    own = head.forward
    vars(head)["forward"] = own
    with wide_head(llama):
        assert vars(head)["forward"] is own


def test_it_is_as_before_after_an_exception() -> None:
    model = make("llama")
    with pytest.raises(RuntimeError, match="stop"), wide_head(model):
        raise RuntimeError("stop")
    assert "forward" not in vars(head_of(model))
