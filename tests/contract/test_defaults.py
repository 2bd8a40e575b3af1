"""No default destroys a model: an edit with an editor's own settings is a small share of a weight, on any model."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from seesaw_cf.editors import EDITORS, load_editor
from seesaw_cf.editors.control_names import CONTROLS
from seesaw_cf.editors.ft import FT, FTConfig, LoRA, LoRAConfig
from seesaw_cf.editors.locate.checks import shortened
from seesaw_cf.editors.locate.presets import MAX_CHANGE
from seesaw_cf.models.weights import LowRank, WeightDelta
from tests.fakes import CONTRACT_MODELS, REQUESTS, TEMPLATES, TINY, tiny_model, tiny_texts, tiny_tokenizer

SLOW = [pytest.mark.slow, pytest.mark.exhaustive]


def default(name: str, model: PreTrainedModel) -> Any:
    """An editor's own settings, but for what takes time and has no part in the length of a change."""
    config = load_editor(name).config_class.for_model(model)
    if name == "mend":
        return replace(config, training=replace(config.training, steps=1, validate_every=1))
    return replace(config, context_templates=TEMPLATES) if hasattr(config, "context_templates") else config


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[] if kind in CONTRACT_MODELS else SLOW) for kind in TINY])
@pytest.mark.parametrize("name", [name for name in EDITORS if name != "ike" and name not in CONTROLS])
def test_a_default_changes_a_small_share_of_every_weight(name: str, kind: str) -> None:
    model, tokenizer = tiny_model(kind), tiny_tokenizer()
    editor = load_editor(name)(default(name, model), corpus=tiny_texts()).fit(model, tokenizer)
    for n in (1, 3):
        for weight, norm in editor.edit(model, tokenizer, REQUESTS[:n]).norms().items():
            assert norm <= MAX_CHANGE * float(model.get_parameter(weight).detach().norm()) * (1 + 1e-5), weight


def test_a_change_that_is_too_long_keeps_its_direction() -> None:
    model = tiny_model("llama")
    name, other = (f"model.layers.{layer}.mlp.down_proj.weight" for layer in (1, 2))
    weight = model.get_parameter(name).detach()
    change = torch.ones_like(weight)
    product = LowRank(torch.ones(len(weight), 1), torch.ones(1, weight.shape[1]))
    for update in (change, product):
        delta = WeightDelta(shortened(model, {name: update, other: 1e-6 * change}, 0.1))
        assert delta.norms()[name] == pytest.approx(0.1 * float(weight.norm()), rel=1e-5)
        torch.testing.assert_close(delta.dense(name) / delta.dense(name)[0, 0], change)
        torch.testing.assert_close(delta.dense(other), 1e-6 * change, rtol=0, atol=0)
        assert shortened(model, {name: update}, None) == {name: update}


FT_SETTINGS = FTConfig(
    layers=(1,), relative=True, learning_rate=1e-2, norm_constraint=2e-2, steps=8, objective="teacher_forced"
)
EDITS = {
    "ft": FT(FT_SETTINGS),
    "lora": LoRA(LoRAConfig(layers=(1,), relative=True, alpha=20.0, rank=2, learning_rate=1e-3, steps=8)),
}


@pytest.mark.parametrize("name", EDITS)
def test_relative_settings_mean_the_same_on_weights_of_another_size(name: str) -> None:
    """A projection eight times as large reads inputs an eighth as large: the same function, the same edit."""
    model, twin = tiny_model("llama"), tiny_model("llama")
    weight = "model.layers.1.mlp.down_proj.weight"
    twin.get_parameter(weight).data *= 8.0
    twin.get_parameter(weight.replace("down", "up")).data /= 8.0
    one, other = (EDITS[name].edit(base, tiny_tokenizer(), REQUESTS[:1]) for base in (model, twin))
    change = one.dense(weight)
    assert change.norm() > 0
    assert (8.0 * change - other.dense(weight)).norm() < 0.05 * 8.0 * change.norm()
    if name == "ft":
        rms = float(model.get_parameter(weight).detach().square().mean().sqrt())
        assert float(change.abs().max()) <= 2e-2 * rms * (1 + 1e-5)
