"""Parts of a model: blocks that are not there, and vectors of another width, are errors that say what the model has."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from seesaw_cf.errors import UnsupportedModelError
from seesaw_cf.models import model_parts
from tests.fakes import tiny_model

KINDS = ["gpt2", "llama", "opt"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", [-1, 4, 10**9])
@pytest.mark.parametrize("method", ["block", "mlp_out", "weight_name", "weight", "key_size"])
def test_a_block_that_is_not_there(kind: str, layer: int, method: str) -> None:
    """The tiny models have four blocks."""
    parts = model_parts(tiny_model(kind))
    with pytest.raises(UnsupportedModelError, match=rf"layer {layer}: \w+ has blocks 0 to 3\."):
        getattr(parts, method)(layer)


@pytest.mark.parametrize("layers", [[], [-1], [0, 4], [1, 1], [True], [0.5], ["1"], [None], [torch.tensor(1)], [[1]]])
def test_layers_that_cannot_be_edited(layers: list[Any]) -> None:
    parts = model_parts(tiny_model("llama"))
    with pytest.raises(UnsupportedModelError, match=r"expected different numbers from 0 to 3 \(LlamaForCausalLM has 4"):
        parts.check_layers(iter(layers), "ROMEConfig")
    parts.check_layers(iter([2, 0]), "ROMEConfig")
