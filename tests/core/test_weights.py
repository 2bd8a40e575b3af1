"""Deltas apply, restore bitwise, and refuse models they do not fit."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from seesaw_cf.errors import DeltaMismatchError
from seesaw_cf.models import weights
from seesaw_cf.models.identity import fingerprint
from seesaw_cf.models.weights import LowRank, WeightDelta, applied, parameter_hashes, word_sum
from tests.scoring.test_counters import Reads


def _model(dtype: torch.dtype = torch.float32) -> nn.Sequential:
    generator = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(7, 5), nn.LayerNorm(5)).to(dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model


def _delta(scale: float = 1.0, seed: int = 1) -> WeightDelta:
    generator = torch.Generator().manual_seed(seed)
    low = LowRank(scale * torch.randn(5, 2, generator=generator), torch.randn(2, 7, generator=generator))
    return WeightDelta({"0.weight": low, "0.bias": scale * torch.randn(5, generator=generator)})


@given(scale=st.floats(1e-8, 1e8), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_restore_is_bitwise_and_blocks_nest(scale: float, seed: int) -> None:
    model = _model()
    start = fingerprint(model)
    with applied(model, _delta(scale, seed)):
        first = fingerprint(model)
        with applied(model, _delta(1.0, seed + 1)):
            pass
        assert fingerprint(model) == first
    assert fingerprint(model) == start


def test_the_sum_is_made_in_float32_and_rounded_once() -> None:
    """bfloat16 has 8 significant bits: 1 + 2^-9 rounds to 1, but 1 + 3 * 2^-9 must round up to 1 + 2^-7."""
    model = nn.Linear(1, 1, bias=False, dtype=torch.bfloat16)
    with torch.no_grad():
        model.weight.fill_(1.0)
    for steps, expected in ((1, 1.0), (3, 1.0 + 2**-7)):
        with applied(model, WeightDelta({"weight": torch.full((1, 1), steps * 2.0**-9)})):
            assert model.weight.item() == expected


def test_nothing_is_written_when_a_name_or_shape_does_not_fit() -> None:
    model = _model()
    start = fingerprint(model)
    good = _delta().updates["0.weight"]
    for updates, message in (
        ({"0.weight": good, "2.weight": torch.ones(1)}, r"'2\.weight' of .* Sequential has no such parameter"),
        ({"0.weight": good, "0.bias": torch.ones(4)}, r"of shape \(4,\), Sequential has \(5,\)"),
    ):
        with pytest.raises(DeltaMismatchError, match=message), applied(model, WeightDelta(updates)):
            pass
        assert fingerprint(model) == start


def test_zero_finite_and_norms() -> None:
    assert WeightDelta().is_zero()
    assert not WeightDelta(context="New fact: ").is_zero()
    assert WeightDelta({"w": LowRank(torch.zeros(3, 1), torch.ones(1, 2))}).is_zero()
    assert not WeightDelta({"w": torch.tensor([float("inf")])}).is_finite()
    assert WeightDelta({"w": torch.tensor([3.0, 4.0])}).norms() == {"w": 5.0}


def test_fingerprint_sees_every_bit_and_the_dtype() -> None:
    model = _model()
    start = parameter_hashes(model)
    with torch.no_grad():
        model.get_parameter("0.weight").view(torch.int32)[0, 0] ^= 1
    changed = [name for name, value in parameter_hashes(model).items() if start[name] != value]
    assert changed == ["0.weight"]
    assert fingerprint(_model()) != fingerprint(_model(torch.bfloat16))


@given(
    place=st.integers(0, 99),
    other=st.integers(0, 99),
    flip=st.integers(1, 255),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float64, torch.int8, torch.bool]),
)
@settings(max_examples=100, deadline=None)
def test_a_sum_on_the_device_sees_another_value_and_another_order(
    place: int, other: int, flip: int, dtype: torch.dtype
) -> None:
    tensor = torch.randn(10, 10, generator=torch.Generator().manual_seed(0)).mul(99).to(dtype)
    with pytest.MonkeyPatch.context() as patch, Reads() as reads:
        whole = word_sum(tensor)
        patch.setattr(weights, "_WORDS", 7)
        assert word_sum(tensor) == whole == word_sum(tensor.T.contiguous().T)
    assert reads.counts["__int__"] == reads.counts.total() == 3  # one number leaves the device
    changed, swapped = tensor.clone(), tensor.clone()
    if dtype != torch.bool:
        changed.view(-1).view(torch.uint8)[place * dtype.itemsize] ^= flip
        assert word_sum(changed) != whole
    swapped.view(-1)[place], swapped.view(-1)[other] = tensor.view(-1)[other], tensor.view(-1)[place]
    assert (word_sum(swapped) == whole) == torch.equal(swapped, tensor)


class Elsewhere(torch.Tensor):
    """A tensor that says that it is on a GPU."""

    device = property(lambda _: torch.device("cuda"))


@pytest.mark.parametrize("block", [1, 7, 64, 10_000])
def test_a_hash_does_not_depend_on_where_a_tensor_is_nor_on_the_blocks_that_move_it(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page-locked memory needs a GPU: ordinary memory stands for it."""
    plain, pinned = torch.empty, list[bool]()

    def empty(*size: int, pin_memory: bool = False, **how: Any) -> torch.Tensor:
        pinned.append(pin_memory)
        return plain(*size, **how)

    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(weights, "_BLOCK", block)
    for tensor in (torch.randn(9, 5), torch.randn(4, 6).T, torch.ones(3).bfloat16(), torch.tensor(2.0)):
        assert weights.hash_tensor(tensor.as_subclass(Elsewhere)) == weights.hash_tensor(tensor)
    assert pinned == [True] * 4
