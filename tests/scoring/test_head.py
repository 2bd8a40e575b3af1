"""The head: float32 for every dtype, in the same memory every time, the library's numbers, nothing left behind."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from seesaw_cf.scoring.fast.head import wide_head
from tests.scoring.models import make


def head_of(model: nn.Module) -> nn.Linear:
    head: nn.Linear = model.get_output_embeddings()  # type: ignore[operator]
    return head


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["gpt2", "phi"])
def test_low_precision_heads_answer_in_float32(kind: str, dtype: torch.dtype) -> None:
    """Phi's head has a bias. Heads of over 2^22 numbers are multiplied in slabs; five rows more make a remainder."""
    model = make(kind)
    columns = head_of(model).in_features
    model.set_output_embeddings(nn.Linear(columns, 2**22 // columns + 5, bias=kind == "phi"))
    head = head_of(model.to(dtype))
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
    asked: list[bool] = []

    def refuse(*_: object) -> None:
        asked.append(True)
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("seesaw_cf.scoring.fast.head.mmap.mmap", refuse)
    model = make("llama")
    model.set_output_embeddings(nn.Linear(32, 1024, bias=False))
    given = torch.randn(2048, 32, generator=torch.Generator().manual_seed(0))  # logits of 8 MiB: above the 4 of a map
    expected = given @ head_of(model).weight.T
    with torch.inference_mode(), wide_head(model):
        torch.testing.assert_close(head_of(model)(given), expected)
    assert asked == [True]
