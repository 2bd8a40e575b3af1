"""GELU's faster form: the library's values, gradients and, outside the block, the library's own function."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from transformers.activations import FastGELUActivation, GELUTanh, NewGELUActivation

from seesaw_cf.scoring.fused import fused_activations


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
