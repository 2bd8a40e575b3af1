"""Faster forms of GELU and RMS norms: the library's values and gradients and, outside the block, its own functions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from transformers.activations import FastGELUActivation, GELUTanh, NewGELUActivation

from seesaw_cf.scoring.fused import fused_modules
from tests.scoring.models import make


@pytest.mark.parametrize("kind", [NewGELUActivation, FastGELUActivation, GELUTanh])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_same_values(kind: type[nn.Module], dtype: torch.dtype) -> None:
    module = nn.Sequential(kind())
    given = torch.linspace(-30, 30, 200_000).view(200, 1000).T.to(dtype)  # not contiguous, longer than a slab
    expected: Tensor = module(given)
    with torch.inference_mode(), fused_modules(module):
        found: Tensor = module(given)
    tolerance = 0.3 if dtype == torch.bfloat16 else 2e-6
    assert found.shape == expected.shape
    assert float((found - expected).abs().max()) <= tolerance


def test_gradients_still_flow() -> None:
    module = nn.Sequential(NewGELUActivation())
    given = torch.linspace(-3, 3, 50, requires_grad=True)
    (expected,) = torch.autograd.grad(module(given).sum(), given)
    with fused_modules(module):
        (found,) = torch.autograd.grad(module(given).sum(), given)
    assert torch.allclose(found, expected, atol=1e-6)


def norms(model: nn.Module) -> list[nn.Module]:
    return [part for part in model.modules() if type(part).__name__.endswith("RMSNorm")]


@pytest.mark.parametrize(
    ("kind", "fused"), [("llama", True), ("qwen3", True), ("olmo2", True), ("phi3", True), ("gemma2", False)]
)
def test_rms_norms_are_fused_where_the_formula_is_the_same(kind: str, fused: bool) -> None:
    """Gemma multiplies by 1 + weight, so that its norms are left alone."""
    model = make(kind)
    torch.manual_seed(0)
    found = norms(model)
    assert found
    for part in found:
        nn.init.uniform_(part.get_parameter("weight"), 0.5, 2.0)
    given = [3 * torch.randn(2, 7, len(part.get_parameter("weight"))) for part in found]
    expected = [part(values) for part, values in zip(found, given, strict=True)]
    with torch.inference_mode(), fused_modules(model):
        assert {"forward" in vars(part) for part in found} == {fused}
        again = [part(values) for part, values in zip(found, given, strict=True)]
        half = found[0](given[0].to(torch.bfloat16))
    assert half.isfinite().all()
    for one, other in zip(expected, again, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    assert not any("forward" in vars(part) for part in model.modules())


def test_rms_norms_with_gradients_are_the_librarys() -> None:
    model = make("llama")
    with fused_modules(model):
        assert not any("forward" in vars(part) for part in norms(model))
