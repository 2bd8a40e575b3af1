"""Faster activations: the library's values and gradients, and outside the block its functions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from transformers.activations import FastGELUActivation, GELUTanh, NewGELUActivation

from seesaw_cf.scoring.fast.activations import fused_activations
from tests.scoring.models import make


@pytest.mark.parametrize("kind", [NewGELUActivation, FastGELUActivation, GELUTanh])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_same_values(kind: type[nn.Module], dtype: torch.dtype) -> None:
    module = nn.Sequential(kind())
    given = torch.linspace(-30, 30, 200_000).view(200, 1000).T.to(dtype)  # not contiguous, longer than a slab
    expected: Tensor = module(given)
    with torch.inference_mode(), fused_activations(module):
        found: Tensor = module(given)
    tolerance = 0.3 if dtype == torch.bfloat16 else 2e-6
    assert found.shape == expected.shape
    assert float((found - expected).abs().max()) <= tolerance


def test_gradients_still_flow() -> None:
    module = nn.Sequential(NewGELUActivation())
    given = torch.linspace(-3, 3, 50, requires_grad=True)
    (expected,) = torch.autograd.grad(module(given).sum(), given)
    with fused_activations(module):
        (found,) = torch.autograd.grad(module(given).sum(), given)
    assert torch.allclose(found, expected, atol=1e-6)


def test_under_autocast_nothing_is_exchanged_for_another_dtype() -> None:
    """Products answer in bfloat16 there, so that the bias could not be added in float32."""
    model = make("gpt2")
    mlp = next(part for part in model.modules() if type(part).__name__ == "GPT2MLP")
    nn.init.constant_(mlp.get_submodule("c_fc").get_parameter("bias"), 5.0)
    given = torch.randn(2, 5, 32)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        expected = mlp(given)
        with fused_activations(model):
            found = mlp(given)
    assert torch.equal(found, expected)


def test_an_mlp_with_a_layer_of_another_kind_is_left_alone() -> None:
    """Quantised and wrapped layers do more than a product; a module that runs a function of its own keeps it."""

    class Scaled(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:
            return 2 * super().forward(input)

    model = make("gptj")
    first, second, *_ = [part for part in model.modules() if type(part).__name__ == "GPTJMLP"]
    first.fc_in = Scaled(32, 128)
    vars(second.get_submodule("act"))["forward"] = torch.relu
    given = torch.randn(2, 5, 32)
    expected = [first(given), second(given)]
    with torch.inference_mode(), fused_activations(model):
        found = [first(given), second(given)]
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(one, other)
    assert vars(second.get_submodule("act"))["forward"] is torch.relu


def test_silu_reuses_its_input_and_stays_the_same() -> None:
    model = make("llama")
    mlp = next(part for part in model.modules() if type(part).__name__ == "LlamaMLP")
    given = 3 * torch.randn(2, 7, 32)
    expected = mlp(given)
    with torch.inference_mode(), fused_activations(model):
        torch.testing.assert_close(mlp(given), expected)
        gate = given.clone()
        assert mlp.get_submodule("act_fn")(gate).data_ptr() == gate.data_ptr()
    kept = given.clone()
    mlp.get_submodule("act_fn")(given)
    assert torch.equal(given, kept)


@pytest.mark.parametrize(("kind", "gated"), [("llama", True), ("qwen3", True), ("gemma2", False), ("phi3", False)])
def test_gated_mlps_are_fused_where_the_formula_is_the_same(kind: str, gated: bool) -> None:
    """Gemma's activation is another, Phi-3 has one matrix for both halves; hooks on the parts still run."""
    model = make(kind)
    mlp = next(part for part in model.modules() if type(part).__name__.endswith("MLP"))
    torch.manual_seed(0)
    given = 3 * torch.randn(2, 300, 32)
    expected, seen = mlp(given), []
    note = mlp.get_submodule("down_proj").register_forward_pre_hook(lambda _, args: seen.append(args[0].clone()))
    with note, torch.inference_mode(), fused_activations(model):
        assert ("forward" in vars(mlp)) == gated
        torch.testing.assert_close(mlp(given), expected, rtol=1e-5, atol=1e-5)
    with torch.inference_mode():
        torch.testing.assert_close(mlp.get_submodule("down_proj")(seen[0]), expected, rtol=1e-5, atol=1e-5)
    low = make(kind, dtype=torch.bfloat16)
    mlp = next(part for part in low.modules() if type(part).__name__.endswith("MLP"))
    half = given.to(torch.bfloat16)
    with torch.inference_mode(), fused_activations(low):
        found = mlp(half)
    torch.testing.assert_close(found, mlp(half))


def test_a_gated_mlp_of_another_formula_or_with_a_watched_activation_is_left_alone() -> None:
    class Doubled(nn.Module):
        def __init__(self, mlp: nn.Module) -> None:
            super().__init__()
            for name in ("gate_proj", "up_proj", "down_proj", "act_fn"):
                setattr(self, name, mlp.get_submodule(name))

        def forward(self, values: Tensor) -> Tensor:
            gate: Tensor = self.get_submodule("act_fn")(self.get_submodule("gate_proj")(values))
            answer: Tensor = self.get_submodule("down_proj")(2 * gate * self.get_submodule("up_proj")(values))
            return answer

    mlps = [part for part in make("llama").modules() if type(part).__name__ == "LlamaMLP"]
    given, seen = torch.randn(2, 5, 32), []
    mlps[1].get_submodule("act_fn").register_forward_hook(lambda *_: seen.append(1))
    for mlp in (Doubled(mlps[0]), mlps[1]):
        expected = mlp(given)
        with torch.inference_mode(), fused_activations(mlp):
            torch.testing.assert_close(mlp(given), expected)
    assert len(seen) == 2
