"""Models that no editor can edit, and editors that were fitted on another one: refused with the remedy."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from peft import LoraConfig

from seesaw_cf.errors import EditError, UnsupportedModelError
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
            refuses(name, model, r"went through torch\.compile")


def _one_integer_matrix(model: Any) -> None:
    projection = model.model.layers[2].mlp.down_proj
    projection.weight = torch.nn.Parameter(projection.weight.detach().to(torch.int8), requires_grad=False)


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "quantised": (lambda model: setattr(model, "is_quantized", True), "is quantised.*without quantization_config"),
    "offloaded": (lambda model: model.to("meta"), "not in memory.*offloads nothing"),
    "int8": (_one_integer_matrix, r"layers\.2\.mlp\.down_proj\.weight.* is torch\.int8 .*Load the model without"),
    "adapter": (
        lambda model: model.add_adapter(LoraConfig(target_modules=["down_proj"], r=2)),
        r"mlp\.down_proj\.weight.*expected a float parameter of a plain layer.*merge_and_unload",
    ),
    "quantised by torch": (
        lambda model: torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8, inplace=True),
        r"quantised or wrapped weights cannot be edited.*torch\.ao\.quantization",
    ),
}


@torch_says_deprecated
@pytest.mark.parametrize("name", EDITORS)
@pytest.mark.parametrize("case", WRONG)
def test_models_that_cannot_be_edited_are_refused(case: str, name: str) -> None:
    change, message = WRONG[case]
    model: Any = tiny_model("llama")
    change(model)
    refuses(name, model, message)


@pytest.mark.parametrize("name", ["rome", "memit", "emmet", "alphaedit", "identity"])
def test_an_editor_fitted_on_a_model_of_another_width_is_refused(name: str) -> None:
    editor = fitted(name)
    wide = tiny_model("llama", intermediate_size=80)
    before = fingerprint(wide)
    message = r"is of size 48, the keys of LlamaForCausalLM have length 80.*another model"
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
