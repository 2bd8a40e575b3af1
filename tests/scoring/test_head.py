"""The head: float32 for every dtype, nothing left behind; a model spread over devices gives the same scores."""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from seesaw_cf.errors import UnknownNameError
from seesaw_cf.models.load import load_model
from seesaw_cf.scoring import EditedScorer, TrieScorer
from seesaw_cf.scoring.forward import wide_head
from tests.fakes import low_rank
from tests.scoring.models import make
from tests.scoring.work import clozes, worst


def head_of(model: nn.Module) -> nn.Linear:
    head: nn.Linear = model.get_output_embeddings()  # type: ignore[operator]
    return head


def with_large_head(kind: str, dtype: torch.dtype) -> tuple[Any, nn.Linear, torch.Tensor]:
    """A model, its head and hidden states. Phi's head has a bias; over 2^22 numbers are multiplied in slabs, and five
    rows more make a remainder."""
    model = make(kind)
    columns = head_of(model).in_features
    model.set_output_embeddings(nn.Linear(columns, 2**22 // columns + 5, bias=kind == "phi"))
    given = torch.randn(2, 3, columns, generator=torch.Generator().manual_seed(0)).to(dtype)
    return model, head_of(model.to(dtype)), given


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["gpt2", "phi"])
def test_low_precision_heads_answer_in_float32(kind: str, dtype: torch.dtype) -> None:
    model, head, given = with_large_head(kind, dtype)
    bias = None if head.bias is None else head.bias.double()
    exact = nn.functional.linear(given.double(), head.weight.double(), bias)
    with torch.inference_mode(), wide_head(model):
        found = head(given)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=1e-6, atol=1e-6)


class Gpu(TorchFunctionMode):
    """A CPU that multiplies half precision with float32 sums, as a GPU does; counts numbers that are widened."""

    def __init__(self) -> None:
        super().__init__()
        self.products, self.widened = 0, 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.mm and kwargs:
            self.products += 1
            return args[0].double().matmul(args[1].double()).to(kwargs["out_dtype"])
        if getattr(func, "__name__", "") in ("float", "to"):
            self.widened += args[0].numel()
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", ["gpt2", "phi"])
def test_a_device_that_adds_in_float32_takes_the_head_as_it_is_in_one_product(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, head, given = with_large_head(kind, torch.bfloat16)
    with torch.inference_mode(), wide_head(model):
        expected = head(given)
        for module in ("seesaw_cf.scoring.forward", "seesaw_cf.models.tensors"):
            monkeypatch.setattr(f"{module}.adds_in_float32", lambda tensor: tensor.dtype == torch.bfloat16)
        with Gpu() as gpu:
            found = head(given)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    assert (gpu.products, gpu.widened) == (1, 0)


@pytest.mark.parametrize(("dtype", "exchanged"), [(torch.bfloat16, True), (torch.float32, False)])
def test_float32_heads_are_left_alone_and_gradients_take_the_librarys_way(dtype: torch.dtype, exchanged: bool) -> None:
    head = head_of(model := make("llama").to(dtype))
    given = torch.randn(2, 3, head.in_features).to(dtype)
    with wide_head(model):
        assert ("forward" in vars(head)) == exchanged
        assert torch.equal(head(given), nn.functional.linear(given, head.weight))
    assert "forward" not in vars(head)


@pytest.mark.slow
def test_a_spread_model_gives_the_same_scores() -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    model, tokenizer = load_model("seesaw-tiny", device="balanced")
    alone, _ = load_model("seesaw-tiny", device="cpu")
    if not torch.cuda.is_available():
        assert model.device.type == "cpu"
    assert worst(TrieScorer(model, tokenizer).score(clozes(2)), TrieScorer(alone, tokenizer).score(clozes(2))) < 1e-4
    jobs = [(low_rank(alone, (2,), seed), clozes(1)) for seed in range(2)]
    first, second = (EditedScorer(TrieScorer(m, tokenizer), "together").score(jobs) for m in (model, alone))
    assert max(worst(a, b) for a, b in zip(first, second, strict=True)) < 1e-4


def test_without_accelerate_a_spread_model_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnknownNameError, match="device 'balanced' needs accelerate"):
        load_model("seesaw-tiny", device="balanced")
