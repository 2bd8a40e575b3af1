"""Published settings go to the models they were made for; every other model gets a rule and hears of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from transformers import AutoConfig

from seesaw_cf.editors import load_editor
from seesaw_cf.editors.locate.presets import DEFAULTS, MODELS, PRESETS, preset
from seesaw_cf.models.editor import HasLayers
from seesaw_cf.models.load import load_model
from seesaw_cf.run.make_editors import make_editor
from tests.fakes import tiny_model
from tests.tokenizer_styles import byte_level

_SIZES = ("num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size")


def _sizes(*numbers: int) -> dict[str, Any]:
    """Blocks, width, width of the MLP, vocabulary."""
    return dict(zip(_SIZES, numbers, strict=True))


LLAMA = _sizes(32, 4096, 11008, 32000)
LLAMA_3 = {**LLAMA, "intermediate_size": 14336, "vocab_size": 128256}
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2-xl": ("gpt2", {"n_layer": 48, "n_embd": 1600}),
    "gpt-j-6b": ("gptj", {}),
    "llama-2-7b": ("llama", LLAMA),
    "llama-3-8b": ("llama", LLAMA_3),
    "mistral-7b": ("mistral", {}),  # what transformers gives by default
    "smollm2-135m": ("llama", _sizes(30, 576, 1536, 49152)),
}
STRANGERS: dict[str, tuple[str, dict[str, Any]]] = {
    "Yi-6B": ("llama", {**LLAMA, "vocab_size": 64000}),
    "Mistral-7B as a Llama": ("llama", {**LLAMA, "intermediate_size": 14336}),
    "GPT-2": ("gpt2", {}),
    "Llama-3.2-1B": ("llama", LLAMA_3 | {"num_hidden_layers": 16, "hidden_size": 2048, "intermediate_size": 8192}),
    "Qwen2.5-0.5B": ("qwen2", _sizes(24, 896, 4864, 151936)),
    "Gemma-2-2B": ("gemma2", _sizes(26, 2304, 9216, 256000)),
    "Gemma-3-270M": ("gemma3_text", _sizes(18, 640, 2048, 262144)),
    "Gemma-3-4B": ("gemma3", {"text_config": _sizes(34, 2560, 10240, 262208)}),
    "OLMo-2-7B": ("olmo2", _sizes(32, 4096, 11008, 100352)),
}


def shaped(kind: str, settings: dict[str, Any]) -> Any:
    """All that `preset` looks at: a config."""
    return SimpleNamespace(config=AutoConfig.for_model(kind, **settings))


@pytest.mark.parametrize("name", SHAPES)
def test_models_get_what_was_published_for_them(name: str, caplog: pytest.LogCaptureFixture) -> None:
    assert name in MODELS.values()
    for editor in DEFAULTS:
        found = preset(editor, shaped(*SHAPES[name]))
        if (editor, name) in PRESETS:
            assert found == PRESETS[editor, name].settings
        warned = f"{editor}: nobody has published settings" in caplog.text
        assert warned == ((editor, name) not in PRESETS)


def test_the_weight_of_second_moments_goes_with_the_length_of_keys() -> None:
    """k^T C^-1 k is the length of k on average: a rule with Llama-2-7B's weight writes next to nothing elsewhere."""
    for name, length in {"Gemma-3-270M": 2048, "OLMo-2-7B": 11008}.items():
        for editor, weight in {"memit": 15_000.0, "emmet": 100_000.0}.items():
            found = preset(editor, shaped(*STRANGERS[name]), quiet=True)["moment_weight"]
            assert found == pytest.approx(weight * length / 11008, abs=0.1)
    assert "moment_weight" not in preset("rome", shaped(*STRANGERS["OLMo-2-7B"]), quiet=True)


@pytest.mark.parametrize("name", STRANGERS)
@pytest.mark.parametrize("editor", DEFAULTS)
def test_other_models_get_a_rule_and_a_warning(editor: str, name: str, caplog: pytest.LogCaptureFixture) -> None:
    found = preset(editor, shaped(*STRANGERS[name]))
    assert found["layers"]
    layers = list(found["layers"])
    like = DEFAULTS[editor]["like"]
    assert f"Layers {layers} are those at the depth of {like}'s and untested here. Give others" in caplog.text


@pytest.mark.parametrize("editor", DEFAULTS)
def test_own_layers_wrapped_editors_and_the_embedded_model_are_no_reason_to_warn(
    editor: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = tiny_model("llama")
    config = make_editor(editor, model, {"layers": [1]}, ["some text"]).config
    assert isinstance(config, HasLayers)
    assert config.layers == (1,)
    wrapped = {"editor": "ft", "settings": {"layers": [1]}}
    make_editor("identity", model, wrapped, []).fit(model, byte_level(bos=False))
    load_editor(editor).config_class.for_model(load_model("seesaw-tiny", device="cpu")[0])
    assert not caplog.text
    make_editor(editor, model, {}, ["some text"])
    assert "untested here" in caplog.text


def test_every_row_names_its_source_and_makes_a_config() -> None:
    for (editor, name), row in PRESETS.items():
        assert name in MODELS.values()
        assert len(row.source) > 10
        assert load_editor(editor).config_class(**row.settings).layers == row.settings["layers"]
