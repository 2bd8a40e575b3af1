"""Models that no editor can edit, and editors that were fitted on another one: refused with the remedy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from peft import LoraConfig

from seesaw_cf.errors import EditError, UnsupportedModelError
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.identity import fingerprint
from tests.contract.test_editor_contract import QUICK, make
from tests.fakes import REQUESTS, request, tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
torch_says_deprecated = pytest.mark.filterwarnings(
    "ignore:torch.ao.quantization is deprecated:DeprecationWarning", "ignore:torch.quantize_per_tensor:UserWarning"
)
EDITORS = [name for name in QUICK if name != "ike"]  # IKE writes a text and takes any model


@functools.cache
def fitted(name: str) -> Any:
    """An editor that is ready to edit a tiny Llama."""
    return make(name, tiny_model("llama"), TOKENIZER, **QUICK[name])


def refuses(name: str, model: Any, message: str) -> None:
    """Neither `fit` nor `edit` takes the model (FT and LoRA have nothing to fit)."""
    with pytest.raises(UnsupportedModelError, match=message):
        fitted(name).edit(model, TOKENIZER, REQUESTS[:1])
    if name not in ("ft", "lora"):
        with pytest.raises(UnsupportedModelError, match=message):
            make(name, model, TOKENIZER, **QUICK[name])


@pytest.mark.slow  # torch takes its time to import its compiler
@pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning")
def test_compiled_models_are_refused() -> None:
    compiled: Any = torch.compile(tiny_model("llama"))
    in_place: Any = tiny_model("llama")
    in_place.compile()
    for name in EDITORS:
        for model in (compiled, in_place):
            refuses(name, model, r"went through torch\.compile.*Pass the model from before compiling")


def _flagged() -> Any:
    model: Any = tiny_model("llama")
    model.is_quantized = True
    return model


def _offloaded() -> Any:
    model: Any = tiny_model("llama")
    return model.to("meta")


def _one_integer_matrix() -> Any:
    model: Any = tiny_model("llama")
    projection = model.model.layers[2].mlp.down_proj
    projection.weight = torch.nn.Parameter(projection.weight.detach().to(torch.int8), requires_grad=False)
    return model


def _with_adapter() -> Any:
    model: Any = tiny_model("llama")
    model.add_adapter(LoraConfig(target_modules=["down_proj"], r=2))
    return model


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "quantised": (_flagged, "is quantised.*without quantization_config"),
    "offloaded": (_offloaded, "not in memory.*offloads nothing"),
    "int8": (
        _one_integer_matrix,
        r"model\.layers\.2\.mlp\.down_proj\.weight.* is torch\.int8 .*Load the model without",
    ),
    "adapter": (
        _with_adapter,
        r"mlp\.down_proj\.weight.*expected a float parameter of a plain layer.*merge_and_unload",
    ),
}


@pytest.mark.parametrize("name", EDITORS)
@pytest.mark.parametrize("case", WRONG)
def test_models_that_cannot_be_edited_are_refused(case: str, name: str) -> None:
    made, message = WRONG[case]
    refuses(name, made(), message)


@torch_says_deprecated
@pytest.mark.parametrize("part", ["mlp", "attention", "head"])
def test_models_quantised_by_torch_are_refused_wherever_it_was(part: str) -> None:
    plain: Any = tiny_model("llama")
    block = plain.model.layers[2]
    chosen = {"mlp": block.mlp.down_proj, "attention": block.self_attn.q_proj, "head": plain.lm_head}[part]
    name = next(name for name, module in plain.named_modules() if module is chosen)
    model = torch.ao.quantization.quantize_dynamic(plain, {name}, dtype=torch.qint8)
    with pytest.raises(
        UnsupportedModelError, match=rf"{name}\.weight .*Load the model without.*torch\.ao\.quantization"
    ):
        model_parts(model)


@torch_says_deprecated
@pytest.mark.parametrize("name", EDITORS)
def test_no_editor_takes_a_model_quantised_by_torch(name: str) -> None:
    model: Any = torch.ao.quantization.quantize_dynamic(tiny_model("llama"), {torch.nn.Linear}, dtype=torch.qint8)
    refuses(name, model, r"quantised or wrapped weights cannot be edited.*torch\.ao\.quantization")


@pytest.mark.parametrize("name", ["rome", "memit", "emmet", "alphaedit", "identity"])
def test_an_editor_fitted_on_a_model_of_another_width_is_refused(name: str) -> None:
    editor = fitted(name)
    wide = tiny_model("llama", intermediate_size=80)
    before = fingerprint(wide)
    message = r"is of size 48, the keys of LlamaForCausalLM have length 80.*fitted on another model.*editor\.fit"
    with pytest.raises(EditError, match=message):
        editor.edit(wide, TOKENIZER, REQUESTS[:1])
    if hasattr(editor, "edit_each"):
        with pytest.raises(EditError, match=message):
            editor.edit_each(wide, TOKENIZER, REQUESTS[:1])
    assert fingerprint(wide) == before


@pytest.mark.parametrize("name", ["ft", "rome", "memit", "emmet", "alphaedit"])
def test_an_edit_that_changes_nothing_says_so(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """The model knows the answer as well as the settings ask; in a run this is a counted refusal."""
    model = tiny_model("llama")
    content = {**QUICK[name], "stop_below": 1e9}
    assert make(name, model, TOKENIZER, **content).edit(model, TOKENIZER, REQUESTS[:1]).is_zero()
    assert "changes nothing: the model gives 'London' already" in caplog.text
    assert "lower stop_below" in caplog.text
    caplog.clear()
    known = [request(new="Kraków")]  # asked to write what is true: no change is what is wanted
    content["allow_identity"] = True
    assert make(name, model, TOKENIZER, **content).edit(model, TOKENIZER, known).is_zero()
    assert "changes nothing" not in caplog.text


def test_contradictions_are_seen_through_spaces_at_the_end() -> None:
    model = tiny_model("llama")
    asked = [request(relation=""), request("{} was born in ", relation="", new="Paris")]
    with pytest.raises(EditError, match=r"contradict each other.*'London'.*'Paris'"):
        fitted("ft").edit(model, TOKENIZER, asked)
    with pytest.raises(EditError, match=r"nothing to edit\. Use the 'identity' control"):
        fitted("ft").edit(model, TOKENIZER, [request(new="Kraków")])
