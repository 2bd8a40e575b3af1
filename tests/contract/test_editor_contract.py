"""Every editor on every kind of model keeps the same promises; careless editors are caught."""

import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

from seesaw_cf.editors import EDITORS, load_editor
from seesaw_cf.editors.mend.training import MENDTraining
from seesaw_cf.errors import DeltaMismatchError
from seesaw_cf.models.weights import WeightDelta, applied, base_facts
from seesaw_cf.sharing import load_delta, save_delta
from tests.contract.checks import check_approaches, check_delta, check_equal, check_leaves_no_trace, check_restores
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

TOKENIZER = tiny_tokenizer()
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
_MEND = MENDTraining(steps=1, batch=2, validate_every=1, held_out=2, step_size_rate=1e-3)
LIGHT: dict[str, dict[str, Any]] = {
    "mend": {"layers": (2,), "rank": 2, "training": _MEND},
    "lora": {"layers": (1,), "rank": 2, "steps": 2},
    "ike": {"room": 8},
    "identity": {"editor": "rome", "settings": _ROME},
    "random": {"editor": "rome", "settings": _ROME},
    "unrelated": {"editor": "rome", "settings": _ROME},
}
"""Settings of the other editors, for promises that hold after any number of steps."""
QUICK = {**{name: {**settings, "steps": 2, "stop_below": 0.0} for name, settings in SETTINGS.items()}, **LIGHT}


def pairs(names: Iterable[str]) -> list[Any]:
    """Every editor with the contract's models; of the other architectures only what depends on the architecture.

    FT, MEND and LoRA each find the weights in their own way. ROME, MEMIT, EMMET and AlphaEdit share one, so they take
    turns. In-context editing and the controls know nothing of architectures.
    """
    names = list(names)
    found: list[Any] = [pytest.param(kind, name, id=f"{kind}-{name}") for kind in CONTRACT_MODELS for name in names]
    for number, kind in enumerate([kind for kind in TINY if kind not in CONTRACT_MODELS]):
        for name in {"ft", "mend", "lora", LOCATE[number % len(LOCATE)]}.intersection(names):
            marks = [pytest.mark.slow, *([] if name in LOCATE else [pytest.mark.exhaustive])]
            found.append(pytest.param(kind, name, id=f"{kind}-{name}", marks=marks))
    return sorted(found, key=lambda pair: str(pair.id))


@pytest.fixture
def model(kind: str) -> Any:
    return trained_model(kind, 60 if kind in CONTRACT_MODELS else 20)


def make(name: str, model: Any, tokenizer: Any = TOKENIZER, **changes: Any) -> Any:
    cls = load_editor(name)
    settings = {**(SETTINGS | LIGHT)[name], **changes}
    return cls(cls.config_class(**settings), corpus=tiny_texts()).fit(model, TOKENIZER)


def check_edits(editor: Any, model: Any, requests: Any, folder: Path) -> WeightDelta:
    """Edits a model in training mode, which must be edited without dropout and come back in training mode; twice."""
    model.train()
    try:
        delta = check_leaves_no_trace(editor, model, TOKENIZER, requests, folder)
    finally:
        model.eval()
    check_delta(delta, model)
    check_equal(delta, editor.edit(model, TOKENIZER, requests))
    return delta


def test_every_editor_has_a_contract() -> None:
    assert SETTINGS.keys() | LIGHT.keys() == EDITORS.keys()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), pairs(SETTINGS | LIGHT))
def test_contract(name: str, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = make(name, model)
    monkeypatch.chdir(tmp_path)
    delta = check_edits(editor, model, REQUESTS if name in SETTINGS else REQUESTS[:2], tmp_path)
    if name == "ike":
        assert not delta.updates
        assert REQUESTS[0].target_new.label in delta.context
    else:
        check_restores(model, delta)
    trained = model.config.model_type in CONTRACT_MODELS  # the others have learnt little that an edit could change
    for asked in (REQUESTS if trained else REQUESTS[:1]) if name in SETTINGS else ():
        check_approaches(editor, model, TOKENIZER, asked, editor.edit(model, TOKENIZER, [asked]))


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("mode", [*slowly(torch.no_grad), torch.inference_mode])
def test_callers_without_autograd_get_the_same_edit(name: str, mode: Any, tmp_path: Path) -> None:
    model = tiny_model("llama")
    wanted = make(name, model, **QUICK[name]).edit(model, TOKENIZER, REQUESTS[:1])
    with mode():
        editor = make(name, model, **QUICK[name])
        delta = check_leaves_no_trace(editor, model, TOKENIZER, REQUESTS[:1], tmp_path)
    assert torch.is_grad_enabled()
    check_equal(delta, wanted)
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize("name", [name for name in QUICK if name != "ike"])
def test_a_saved_edit_is_refused_on_another_base(name: str, tmp_path: Path) -> None:
    """Without being told the base on saving: the editor has written it down."""
    model, other = tiny_model("llama"), tiny_model("llama", seed=1)
    delta = make(name, model, **QUICK[name]).edit(model, TOKENIZER, REQUESTS[:1])
    save_delta(delta, tmp_path / "edit")
    check_equal(load_delta(tmp_path / "edit", model), delta)
    with pytest.raises(DeltaMismatchError, match=r"made on .* with fingerprint .*Load that base"):
        load_delta(tmp_path / "edit", other)


@pytest.mark.parametrize("name", ["rome", *BATCH])
def test_single_edits_made_together_name_their_base(name: str) -> None:
    model = tiny_model("llama")
    for delta in make(name, model, **QUICK[name]).edit_each(model, TOKENIZER, REQUESTS[:2]):
        assert delta.meta["base"] == base_facts(model, delta)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONTRACT_MODELS)
@pytest.mark.parametrize("name", BATCH)
def test_batch_order_does_not_matter(name: str, model: Any) -> None:
    editor = make(name, model)
    delta = editor.edit(model, TOKENIZER, REQUESTS)
    turned = editor.edit(model, TOKENIZER, REQUESTS[::-1])
    for parameter in delta.updates:
        change = delta.dense(parameter)
        assert (change - turned.dense(parameter)).norm() < 1e-3 * change.norm()


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_sequential_edits_nest(name: str) -> None:
    model = trained_model("llama")
    editor = make(name, model)
    first, second = REQUESTS[:2]
    with applied(model, editor.edit(model, TOKENIZER, [first])):
        check_approaches(editor, model, TOKENIZER, second, editor.edit(model, TOKENIZER, [second]))


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, *slowly(torch.float16)])
def test_half_precision_models(name: str, dtype: torch.dtype) -> None:
    whole: Any = copy.deepcopy(trained_model("llama"))
    model = whole.to(dtype)
    editor = make(name, model)
    delta = editor.edit(model, TOKENIZER, REQUESTS[:1])
    assert all(part.dtype == torch.float32 for part in delta.tensors())
    check_approaches(editor, model, TOKENIZER, REQUESTS[0], delta)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_failed_edit_leaves_no_trace(name: str, tmp_path: Path) -> None:
    model = tiny_model("gpt2")
    editor = make(name, model)
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

    check_leaves_no_trace(Interrupted(), model, TOKENIZER, REQUESTS, tmp_path)
    assert calls["n"] >= 5
    handle.remove()


_OTHER = {"left": "right", "right": "left"}
WEIGHT = "model.layers.1.mlp.down_proj.weight"


def _edit_in_place(model: Any, sign: int = 0) -> None:
    with torch.no_grad():
        model.get_parameter(WEIGHT).add_(1e-3)
        model.get_parameter(WEIGHT).sub_(1e-3 * sign)


CARELESS: dict[str, Callable[[Any, Any], Any]] = {
    "weights": lambda model, _: _edit_in_place(model),
    "weights ": lambda model, _: _edit_in_place(model, 1),  # undone, but for rounding
    "hooks": lambda model, _: model.get_submodule("model.layers.1").register_forward_hook(lambda *_: None),
    "gradients": lambda model, _: model(torch.tensor([[1, 2]])).logits.sum().backward(),
    "training mode": lambda model, _: model.get_submodule("model.layers.1").train(),
    "random state": lambda model, _: torch.rand(1),
    "padding side": lambda _, tokenizer: setattr(tokenizer, "padding_side", _OTHER[tokenizer.padding_side]),
    "files": lambda *_: Path("null_space_project.pt").write_text("x"),
}
"""What an editor changes -> how it does so."""


@pytest.mark.parametrize("promise", CARELESS)
def test_careless_editors_are_caught(promise: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless:
        def edit(self, model: Any, tokenizer: Any, requests: Any) -> WeightDelta:
            CARELESS[promise](model, tokenizer)
            return WeightDelta({WEIGHT: torch.full_like(model.get_parameter(WEIGHT), 1e-3)})

    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=f"changed: .*{promise.strip()}"):
        check_leaves_no_trace(Careless(), tiny_model("llama"), copy.deepcopy(TOKENIZER), REQUESTS, tmp_path)
