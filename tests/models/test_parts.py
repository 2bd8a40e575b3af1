"""Parts of a model: blocks that are not there, and vectors of another width, are errors that say what the model has."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import nn

from seesaw_cf.errors import UnsupportedModelError
from seesaw_cf.models import model_parts
from seesaw_cf.models.tensors import cache_name
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


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_a_block(kind: str) -> None:
    parts = model_parts(tiny_model(kind))
    for layer in range(parts.n_layers):
        weight = parts.model.get_parameter(parts.weight_name(layer))
        assert parts.weight(layer) is weight
        assert parts.mlp_out(layer).get_parameter("weight") is weight
        assert any(own is weight for own in parts.block(layer).parameters())
        assert parts.key_size(layer) == 48  # the MLP's width of every tiny model


@pytest.mark.parametrize("layers", [[], [-1], [0, 4], [1, 1], [True], [0.5], ["1"], [None], [torch.tensor(1)], [[1]]])
def test_layers_that_cannot_be_edited(layers: list[Any]) -> None:
    parts = model_parts(tiny_model("llama"))
    with pytest.raises(UnsupportedModelError, match=r"expected different numbers from 0 to 3 \(LlamaForCausalLM has 4"):
        parts.check_layers(iter(layers), "ROMEConfig")
    parts.check_layers(iter([2, 0]), "ROMEConfig")


def test_a_cache_is_given_under_the_name_that_the_model_knows() -> None:
    class Old(nn.Module):
        def forward(self, ids: object, past_key_values: object = None) -> object:
            return self, ids, past_key_values

    class Wrapped(nn.Module):
        def forward(self, *args: object, **kwargs: object) -> object:
            return self, args, kwargs

    plain = tiny_model("llama")
    assert cache_name(plain) in inspect.signature(plain.forward).parameters
    assert cache_name(Old()) == "past_key_values"
    assert cache_name(Wrapped()) == cache_name(plain)
