"""Settings that come from a file or were published, and every editor through the command line."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from transformers import AutoConfig

from seesaw_cf.cli import main
from seesaw_cf.editors import EDITORS, load_editor
from seesaw_cf.editors.control_names import first_seed, is_control
from seesaw_cf.editors.controls import ControlConfig
from seesaw_cf.editors.ft import FTConfig, LoRAConfig
from seesaw_cf.editors.locate.config import with_settings
from seesaw_cf.editors.locate.presets import DEFAULTS, MODELS, PRESETS, preset
from seesaw_cf.editors.memit import MEMITConfig
from seesaw_cf.editors.mend import MENDConfig
from seesaw_cf.editors.mend.training import MENDTraining
from seesaw_cf.errors import EditError, SettingError, UnknownNameError
from seesaw_cf.models.architectures import Architecture
from seesaw_cf.models.corpus import sample_corpus
from seesaw_cf.models.editor import HasLayers
from seesaw_cf.models.load import load_model
from seesaw_cf.models.weights import applied
from seesaw_cf.records.load import load_cases
from seesaw_cf.run.edits import edit_units
from seesaw_cf.run.make_editors import make_editor
from seesaw_cf.scoring import HFScorer
from seesaw_cf.types import Cloze
from tests.fakes import tiny_model, tiny_tokenizer
from tests.tokenizer_styles import byte_level

MEND_QUICK = {"training": {"steps": 20, "validate_every": 10}, "rank": 8}
"""Enough steps for a network that exists; how good one gets is measured elsewhere."""


def test_lists_become_tuples_and_nested_settings_keep_the_rest() -> None:
    usual = MENDTraining.for_width(128)
    config = with_settings(MENDConfig(layers=(1,), training=usual), {"layers": [0, 2], "training": {"steps": 7}})
    assert (config.layers, config.training) == ((0, 2), replace(usual, steps=7))
    row = {"blocks": "a", "mlp_in": ["b"], "mlp_out": "c", "norm": "d"}
    assert with_settings(MEMITConfig(layers=(1,)), {"architecture": row}).architecture == Architecture(
        "a", ("b",), "c", "d"
    )
    wrapped = with_settings(ControlConfig(), {"editor": "rome", "settings": {"layers": [1]}})
    assert wrapped.settings == {"layers": [1]}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 3}, "MEMITConfig: layers is 3, expected a list"),
        *(({"steps": value}, f"steps is {value!r}, expected") for value in ("ten", True, 0)),
        ({"clamp": "wide"}, "clamp is 'wide'"),
        ({"allow_identity": 1}, "allow_identity is 1"),
        ({"architecture": {"block": "x"}}, "unexpected keyword argument 'block'"),
    ],
)
def test_values_of_another_kind_are_errors(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(EditError, match=message):
        with_settings(MEMITConfig(layers=(1,)), settings)


@pytest.mark.parametrize("config", [FTConfig(layers=(1,)), LoRAConfig(layers=(1,)), MEMITConfig(layers=(1,))])
def test_numbers_that_would_overflow_are_errors(config: Any) -> None:
    for setting, value in (("learning_rate", 1e38), ("weight_decay", -5), ("weight_decay", 1e300)):
        with pytest.raises(SettingError, match=rf"{setting} is .*, expected a finite number"):
            with_settings(config, {setting: value})


def test_unknown_settings_are_errors_also_inside_others() -> None:
    with pytest.raises(UnknownNameError, match=r"setting of MENDTraining 'step'. Did you mean 'steps'"):
        with_settings(MENDConfig(layers=(1,)), {"training": {"step": 3}})
    wrong = {"editor": "memit", "settings": {"laiers": [1]}}
    control = make_editor("random", tiny_model("llama"), wrong, ["some text"])
    with pytest.raises(UnknownNameError, match=r"setting of MEMITConfig 'laiers'. Did you mean 'layers'"):
        control.fit(tiny_model("llama"), tiny_tokenizer())


@pytest.mark.parametrize("name", EDITORS)
def test_every_editor_is_made_for_every_model_by_name(name: str) -> None:
    editor = make_editor(name, tiny_model("gpt2"), {}, ["some text"])
    assert editor.config == load_editor(name).config_class.for_model(tiny_model("gpt2"))


SHOWN = ("alphaedit", "ike", "lora", "mend", "identity")
"""One of each kind: other commands and pages run FT, ROME, MEMIT and controls."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores before any edit are the same for every editor: they are worked out once."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow(15)
@pytest.mark.parametrize(
    "name", [name if name in SHOWN else pytest.param(name, marks=pytest.mark.exhaustive) for name in EDITORS]
)
def test_every_editor_runs_from_the_command_line(
    name: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two cases on the embedded model, with nothing given but the editor's name (and fewer steps for MEND).

    A control wraps the editor that it stands beside.
    """
    monkeypatch.setenv("SEESAW_CF_CACHE", str(cache))
    editor, control = ("memit", name) if is_control(name) else (name, "none")
    row = f"{name}(memit)" if is_control(name) else name
    words = ["audit", "seesaw-tiny", "--editor", editor, "--control", control, "--data", "sample", "--limit", "2"]
    words += ["--config", "cross_subject", "--device", "cpu", "--quiet"]
    if name == "mend":
        (tmp_path / "settings.json").write_text(json.dumps({"mend": MEND_QUICK}))
        words += ["--editor-config", str(tmp_path / "settings.json")]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    assert "facts edited with" in capsys.readouterr().out
    edits = pq.read_table(tmp_path / "run" / "edits.parquet").to_pylist()
    fine = {"ok", "zero delta"} if name == "identity" else {"ok"}  # what is known already needs no change
    assert {edit["status"] for edit in edits if edit["editor"] == row} <= fine
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert {first_seed(editor) for editor in manifest["editors"]} == ({row, "memit"} if is_control(name) else {name})


def _sizes(*numbers: int) -> dict[str, Any]:
    """Blocks, width, width of the MLP, vocabulary."""
    return dict(zip(("num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size"), numbers, strict=True))


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


@pytest.mark.slow(30)
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("rome", {"efficacy": 0.98, "paraphrase": 0.7, "neighborhood": 0.8}),
        ("memit", {"efficacy": 0.98, "paraphrase": 0.7, "neighborhood": 0.8}),
        ("ft", {"efficacy": 0.9}),
        ("lora", {"efficacy": 0.9}),
    ],
)
def test_edits_of_sample(name: str, least: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path))
    model, tokenizer = load_model("seesaw-tiny", device="cpu")
    cases = load_cases("sample", "cross_subject")[::25]
    editor = make_editor(name, model, {}, sample_corpus()).fit(model, tokenizer)
    edits = edit_units(model, tokenizer, editor, [[case] for case in cases])
    wins: dict[str, list[bool]] = {"efficacy": [], "paraphrase": [], "neighborhood": []}
    for case, edited in zip(cases, edits, strict=True):
        assert edited.delta is not None
        new, true = case.request.target_new.label, case.request.target_true.label
        asked = ((case.request.text,), case.paraphrase_prompts, case.neighborhood_prompts)
        with applied(model, edited.delta):
            for kind, texts in zip(wins, asked, strict=True):
                scores = HFScorer(model, tokenizer).score([Cloze(text, word) for text in texts for word in (new, true)])
                gains = [a.logprob - b.logprob for a, b in zip(scores[::2], scores[1::2], strict=True)]
                wins[kind] += [gain < 0 if kind == "neighborhood" else gain > 0 for gain in gains]
    assert len(wins["efficacy"]) == 16
    for kind, share in least.items():
        assert sum(wins[kind]) / len(wins[kind]) >= share, (kind, wins[kind])
