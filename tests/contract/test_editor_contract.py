"""Every editor on every kind of model keeps the same promises; careless editors are caught."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.editors import EDITORS, load_editor
from seesaw_cf.editors.mend.training import MENDTraining
from seesaw_cf.errors import DeltaMismatchError
from seesaw_cf.models.weights import LowRank, WeightDelta, applied, base_facts
from seesaw_cf.sharing import load_delta, save_delta
from tests.contract.checks import (
    check_approaches,
    check_delta,
    check_equal,
    check_leaves_no_trace,
    check_restores,
)
from tests.fakes import (
    CONTRACT_MODELS,
    REQUESTS,
    TEMPLATES,
    TINY,
    slowly,
    tiny_model,
    tiny_texts,
    tiny_tokenizer,
    trained_model,
)

_SHARED: dict[str, Any] = {"steps": 15, "learning_rate": 0.1, "weight_decay": 1e-3, "context_templates": TEMPLATES}
SETTINGS: dict[str, dict[str, Any]] = {
    "ft": {"layers": (1,), "steps": 10, "learning_rate": 1e-2, "norm_constraint": 5e-2},
    "rome": {"layers": (1,), "clamp": 4.0, **_SHARED},
    "memit": {"layers": (1, 2), "clamp": 1.0, "moment_weight": 1.0, **_SHARED},
    "emmet": {"layers": (1,), "clamp": 1.0, "moment_weight": 1.0, **_SHARED},
    "alphaedit": {"layers": (1, 2), "clamp": 1.0, "null_threshold": 1e9, "norm_weight": 1.0, **_SHARED},
}
BATCH = ("memit", "emmet", "alphaedit")
LOCATE = ("rome", *BATCH)
_ROME = {**SETTINGS["rome"], "steps": 2, "stop_below": 0.0}
LIGHT: dict[str, dict[str, Any]] = {
    "mend": {
        "layers": (2,),
        "rank": 2,
        "training": MENDTraining(steps=1, batch=2, validate_every=1, held_out=2, step_size_rate=1e-3),
    },
    "lora": {"layers": (1,), "rank": 2, "steps": 2},
    "ike": {"room": 8},
    "identity": {"editor": "rome", "settings": _ROME},
    "random": {"editor": "rome", "settings": _ROME},
    "unrelated": {"editor": "rome", "settings": _ROME},
}
"""Settings of the other editors, for promises that hold after any number of steps."""
QUICK = {
    **{name: {**settings, "steps": 2, "stop_below": 0.0} for name, settings in SETTINGS.items()},
    **LIGHT,
}

OTHERS = [kind for kind in TINY if kind not in CONTRACT_MODELS]


def pairs(names: Iterable[str]) -> list[Any]:
    """Every editor with the contract's models; of the other architectures only what depends on the architecture.

    FT, MEND and LoRA each find the weights in their own way. ROME, MEMIT, EMMET and AlphaEdit share one, so they take
    turns. In-context editing and the controls know nothing of architectures.
    """
    names = list(names)
    found: list[Any] = [pytest.param(kind, name, id=f"{kind}-{name}") for kind in CONTRACT_MODELS for name in names]
    for number, kind in enumerate(OTHERS):
        for name in {"ft", "mend", "lora", LOCATE[number % len(LOCATE)]}.intersection(names):
            marks = [pytest.mark.slow, *([] if name in LOCATE else [pytest.mark.exhaustive])]
            found.append(pytest.param(kind, name, id=f"{kind}-{name}", marks=marks))
    return sorted(found, key=lambda pair: str(pair.id))


@pytest.fixture
def model(kind: str) -> PreTrainedModel:
    return trained_model(kind, 60 if kind in CONTRACT_MODELS else 20)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return tiny_tokenizer()


def make(name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, **changes: Any) -> Any:
    cls = load_editor(name)
    settings = {**(SETTINGS | LIGHT)[name], **changes}
    return cls(cls.config_class(**settings), corpus=tiny_texts()).fit(model, tokenizer)


def check_edits(editor: Any, model: PreTrainedModel, tokenizer: Any, requests: Any, folder: Path) -> WeightDelta:
    """Edits a model in training mode, which must be edited without dropout and come back in training mode; twice."""
    model.train()
    try:
        delta = check_leaves_no_trace(editor, model, tokenizer, requests, folder)
    finally:
        model.eval()
    check_delta(delta, model)
    check_equal(delta, editor.edit(model, tokenizer, requests))
    return delta


def test_every_editor_has_a_contract() -> None:
    assert SETTINGS.keys() | LIGHT.keys() == EDITORS.keys()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), pairs(SETTINGS))
def test_contract(
    name: str,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    editor = make(name, model, tokenizer)
    monkeypatch.chdir(tmp_path)
    check_restores(model, check_edits(editor, model, tokenizer, REQUESTS, tmp_path))
    trained = model.config.model_type in CONTRACT_MODELS  # the others have learnt little that an edit could change
    for asked in REQUESTS if trained else REQUESTS[:1]:
        check_approaches(editor, model, tokenizer, asked, editor.edit(model, tokenizer, [asked]))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), pairs(LIGHT))
def test_contract_of_trained_in_context_and_control_editors(
    name: str,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    editor = make(name, model, tokenizer)
    monkeypatch.chdir(tmp_path)
    delta = check_edits(editor, model, tokenizer, REQUESTS[:2], tmp_path)
    if name == "ike":
        assert not delta.updates
        assert REQUESTS[0].target_new.label in delta.context
    else:
        check_restores(model, delta)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("mode", [*slowly(torch.no_grad), torch.inference_mode])
def test_callers_without_autograd_get_the_same_edit(
    name: str, mode: Any, tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    model = tiny_model("llama")
    wanted = make(name, model, tokenizer, **QUICK[name]).edit(model, tokenizer, REQUESTS[:1])
    with mode():
        editor = make(name, model, tokenizer, **QUICK[name])
        delta = check_leaves_no_trace(editor, model, tokenizer, REQUESTS[:1], tmp_path)
    assert torch.is_grad_enabled()
    check_equal(delta, wanted)
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("name", [name for name in QUICK if name != "ike"])
def test_a_saved_edit_is_refused_on_another_base(name: str, tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> None:
    """Without being told the base on saving: the editor has written it down."""
    model, other = tiny_model("llama"), tiny_model("llama", seed=1)
    delta = make(name, model, tokenizer, **QUICK[name]).edit(model, tokenizer, REQUESTS[:1])
    save_delta(delta, tmp_path / "edit")
    check_equal(load_delta(tmp_path / "edit", model), delta)
    with pytest.raises(DeltaMismatchError, match=r"made on .* with fingerprint .*Load that base"):
        load_delta(tmp_path / "edit", other)


@pytest.mark.parametrize("name", ["rome", *BATCH])
def test_single_edits_made_together_name_their_base(name: str, tokenizer: PreTrainedTokenizerBase) -> None:
    model = tiny_model("llama")
    for delta in make(name, model, tokenizer, **QUICK[name]).edit_each(model, tokenizer, REQUESTS[:2]):
        assert delta.meta["base"] == base_facts(model, delta)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONTRACT_MODELS)
@pytest.mark.parametrize("name", BATCH)
def test_batch_order_does_not_matter(name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    editor = make(name, model, tokenizer)
    delta = editor.edit(model, tokenizer, REQUESTS)
    turned = editor.edit(model, tokenizer, REQUESTS[::-1])
    for parameter in delta.updates:
        change = delta.dense(parameter)
        assert (change - turned.dense(parameter)).norm() < 1e-3 * change.norm()


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_sequential_edits_nest(name: str, tokenizer: PreTrainedTokenizerBase) -> None:
    model = trained_model("llama")
    editor = make(name, model, tokenizer)
    first, second = REQUESTS[:2]
    with applied(model, editor.edit(model, tokenizer, [first])):
        check_approaches(editor, model, tokenizer, second, editor.edit(model, tokenizer, [second]))


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, *slowly(torch.float16)])
def test_half_precision_models(name: str, dtype: torch.dtype, tokenizer: PreTrainedTokenizerBase) -> None:
    whole: Any = copy.deepcopy(trained_model("llama"))
    model = whole.to(dtype)
    editor = make(name, model, tokenizer)
    delta = editor.edit(model, tokenizer, REQUESTS[:1])
    assert all(part.dtype == torch.float32 for part in delta.tensors())
    check_approaches(editor, model, tokenizer, REQUESTS[0], delta)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_failed_edit_leaves_no_trace(name: str, tokenizer: PreTrainedTokenizerBase, tmp_path: Path) -> None:
    model = tiny_model("gpt2")
    editor = make(name, model, tokenizer)
    calls = {"n": 0}

    def interrupt(*_: Any) -> None:
        calls["n"] += 1
        if calls["n"] == 5:
            raise KeyboardInterrupt

    blocks: Any = model.get_submodule("transformer.h")
    handle = blocks[3].register_forward_hook(interrupt)

    class Interrupted:
        def edit(self, *arguments: Any) -> WeightDelta:
            with pytest.raises(KeyboardInterrupt):
                editor.edit(*arguments)
            return WeightDelta()

    check_leaves_no_trace(Interrupted(), model, tokenizer, REQUESTS, tmp_path)
    assert calls["n"] >= 5
    handle.remove()


class _Careless:
    """An editor that breaks one promise."""

    weight = "model.layers.1.mlp.down_proj.weight"

    def change(self, model: PreTrainedModel) -> torch.Tensor:
        return torch.full_like(model.get_parameter(self.weight), 1e-3)

    def edit(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Any) -> WeightDelta:
        self.slip(model, tokenizer)
        return WeightDelta({self.weight: self.change(model)})

    def slip(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        raise NotImplementedError


class _EditsInPlace(_Careless):
    def slip(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        with torch.no_grad():
            model.get_parameter(self.weight).add_(self.change(model))


class _SubtractUndo(_Careless):
    def slip(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        with torch.no_grad():
            model.get_parameter(self.weight).add_(self.change(model))
            model.get_parameter(self.weight).sub_(self.change(model))


class _LeaksHook(_Careless):
    def slip(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        model.get_submodule("model.layers.1").register_forward_hook(lambda *_: None)


class _LeavesGradients(_Careless):
    def slip(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        model(torch.tensor([[1, 2]])).logits.sum().backward()


class _StaysInTraining(_Careless):
    def slip(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        model.get_submodule("model.layers.1").train()


class _UsesGlobalRandomness(_Careless):
    def slip(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        torch.rand(1)


class _TurnsPadding(_Careless):
    def slip(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        tokenizer.padding_side = "left" if tokenizer.padding_side == "right" else "right"


@pytest.mark.parametrize(
    ("careless", "promise"),
    [
        (_EditsInPlace, "weights"),
        (_SubtractUndo, "weights"),
        (_LeaksHook, "hooks"),
        (_LeavesGradients, "gradients"),
        (_StaysInTraining, "training mode"),
        (_UsesGlobalRandomness, "random state"),
        (_TurnsPadding, "padding side"),
    ],
)
def test_careless_editors_are_caught(careless: type[_Careless], promise: str, tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    side = tokenizer.padding_side
    try:
        with pytest.raises(AssertionError, match=f"changed: .*{promise}"):
            check_leaves_no_trace(careless(), tiny_model("llama"), tokenizer, REQUESTS, tmp_path)
    finally:
        tokenizer.padding_side = side


def test_a_delta_for_another_model_is_caught() -> None:
    model = tiny_model("llama")
    with pytest.raises(AssertionError, match=r"no parameters of the model: lm_head\.nope"):
        check_delta(WeightDelta({"lm_head.nope": LowRank(torch.ones(1, 1), torch.ones(1, 1))}, {"editor": "x"}), model)


def test_a_file_left_behind_is_caught(tmp_path: Path) -> None:
    class LeavesFile(_Careless):
        def slip(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
            (tmp_path / "null_space_project.pt").write_text("x")

    with pytest.raises(AssertionError, match="files"):
        check_leaves_no_trace(LeavesFile(), tiny_model("llama"), tiny_tokenizer(), REQUESTS, tmp_path)
