"""Moves of the residual stream through a norm behind the MLP: exact where they can be made, nearest elsewhere."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seesaw_cf.editors.locate.norms import before_norm, behind_norm, check_norms
from seesaw_cf.editors.locate.optimise import optimise
from seesaw_cf.editors.locate.positions import at_subject, prepare
from seesaw_cf.editors.memit import EMMET, MEMIT, EMMETConfig, MEMITConfig
from seesaw_cf.errors import UnsupportedModelError
from seesaw_cf.models.architectures import ModelParts, model_parts
from seesaw_cf.models.hooks import frozen
from seesaw_cf.models.weights import applied
from tests.fakes import REQUESTS, TEMPLATES, tiny_model, tiny_texts, tiny_tokenizer

PAIR = pytest.mark.parametrize("kind", ["gemma3_text", "olmo2"])


def uneven(kind: str) -> ModelParts:
    """A model whose norms have scales from 0.01 to 100, one of them zero and one negative, as Gemma 3's have."""
    parts = model_parts(tiny_model(kind, dtype=torch.float64))
    offset = 1.0 if kind.startswith("gemma") else 0.0
    for layer in range(parts.n_layers):
        norm: Any = parts.block(layer).get_submodule(parts.row.post_norm)
        scale = torch.logspace(-2, 2, parts.width, dtype=torch.float64)
        scale[3], scale[4] = 0.0, -1.0
        with torch.no_grad():
            norm.weight.copy_(scale - offset)
    return parts


def drawn(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    return tuple(torch.randn(2, n, 32, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


@pytest.mark.parametrize("kind", ["gemma2", "olmo2", "gemma3_text", pytest.param("gemma3", marks=pytest.mark.slow)])
def test_after_an_edit_of_one_layer_the_stream_is_the_wanted_one(kind: str) -> None:
    """EMMET without slack is an equality constraint: what was optimised is what the block gives at the subject."""
    model, tokenizer = tiny_model(kind, dtype=torch.float64), tiny_tokenizer()
    with torch.no_grad():  # MLPs of random weights give so little that eps, not their length, decides what a norm adds
        model_parts(model).weight(1).mul_(1e4)
    config = EMMETConfig(layers=(1,), slack=0.0, steps=6, learning_rate=0.1, clamp=4.0, context_templates=("{}",))
    delta = EMMET(config, tiny_texts()).fit(model, tokenizer).edit(model, tokenizer, REQUESTS)
    parts = model_parts(model)
    edits = [prepare(model, tokenizer, asked, ("{}",)) for asked in REQUESTS]
    with frozen(model):
        found = optimise(parts, edits, 1, config)
        with applied(model, delta):
            reached = at_subject(parts, [edit.rows[0] for edit in edits], 1).stream
    missing = (reached - found.target).norm(dim=1) / found.shift.norm(dim=1)
    assert (found.shift.norm(dim=1) > 0.1).all()
    assert missing.max() < 1e-3, "the norms compute in float32"


@PAIR
def test_moves_that_a_norm_can_make_are_made(kind: str) -> None:
    parts = uneven(kind)
    old, new = drawn(20)
    for size in (1e-3, 1.0, 1e3):  # eps weighs at the smallest
        values = size * old
        other = new * values.norm(dim=1, keepdim=True) / new.norm(dim=1, keepdim=True)
        asked = behind_norm(parts, 1, other) - behind_norm(parts, 1, values)
        change = before_norm(parts, 1, values, asked)
        left = behind_norm(parts, 1, values + change) - behind_norm(parts, 1, other)
        assert (left.norm(dim=1) < 1e-4 * asked.norm(dim=1)).all()
        assert not before_norm(parts, 1, values, torch.zeros_like(asked)).any()  # nothing asked, nothing given
        assert torch.allclose((values + change).norm(dim=1), values.norm(dim=1), rtol=1e-9)


@PAIR
@pytest.mark.parametrize("size", [1e-3, 0.1, 1.0, 30.0, 1e4])
def test_elsewhere_the_nearest_value_is_found(kind: str, size: float) -> None:
    """Nothing that was tried comes nearer: the value as it was, one that points at the target, near and far ones."""
    parts = uneven(kind)
    values, asked = drawn(8, seed=1)
    asked = size * asked
    change = before_norm(parts, 1, values, asked)

    def left(candidates: Tensor) -> Tensor:
        candidates = candidates * values.norm(dim=1, keepdim=True) / candidates.norm(dim=1, keepdim=True)
        return (behind_norm(parts, 1, candidates) - behind_norm(parts, 1, values) - asked).norm(dim=1)

    nearest, generator = left(values + change), torch.Generator().manual_seed(2)
    assert torch.allclose((values + change).norm(dim=1), values.norm(dim=1), rtol=1e-9)
    for spread in (1e-4, 1e-2, 1.0, 100.0):
        for _ in range(20):
            noise = spread * torch.randn(values.shape, generator=generator, dtype=torch.float64)
            assert (nearest <= left(values + change + noise) * (1 + 1e-6)).all()
    assert (nearest <= left(values) * (1 + 1e-6)).all()


def test_without_such_a_norm_nothing_changes() -> None:
    """To the last bit: moves are the asked ones, and the shift is optimised in the stream."""
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    parts = model_parts(model)
    values, asked = drawn(3)
    assert before_norm(parts, 1, values, asked) is asked
    assert behind_norm(parts, 1, values) is values
    config = MEMITConfig(layers=(1,), steps=3, context_templates=TEMPLATES)
    edits = [prepare(model, tokenizer, asked, TEMPLATES) for asked in REQUESTS]
    with frozen(model):
        initial = optimise(parts, edits, 1, config).initial
        assert torch.equal(initial, at_subject(parts, [edit.rows[0] for edit in edits], 1).stream)


@pytest.mark.parametrize("made", [nn.LayerNorm, lambda size: nn.LayerNorm(size, bias=False), nn.Identity])
def test_other_norms_are_refused_before_anything_is_computed(made: Any) -> None:
    model: Any = tiny_model("olmo2")
    for block in model.model.layers:
        block.post_feedforward_layernorm = made(32)
    for name in ("memit", "rome"):
        with pytest.raises(UnsupportedModelError, match=rf"{name}.*layer 1 is a .*expected an RMS.*Use ft or lora"):
            check_norms(model_parts(model), (1,), name)
    with pytest.raises(UnsupportedModelError, match=r"MEMIT: post_feedforward_layernorm behind the MLP of layer 1"):
        MEMIT(MEMITConfig(layers=(1,), context_templates=TEMPLATES), tiny_texts()).fit(model, tiny_tokenizer())
