"""An editor that takes no step changes nothing: every number of its delta is exactly zero, on any CPU."""

from collections.abc import Sequence
from typing import Any

import pytest

from seesaw_cf.editors import load_editor
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.types import EditRequest
from tests.contract.test_editor_contract import LIGHT, QUICK
from tests.fakes import REQUESTS, slowly, tiny_model, tiny_texts, tiny_tokenizer

CONTENT = {"stop_below": 1e9}
"""The model gives every answer as well as that asks for, so no optimiser makes a step."""
OPTIMISED: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {**QUICK[name], **CONTENT}) for name in ("ft", "rome", "memit", "emmet", "alphaedit", "lora")},
    "r-rome": ("rome", {**QUICK["rome"], **CONTENT, "consistent_keys": True}),
    "p-rome": ("rome", {**QUICK["rome"], **CONTENT, "bare_keys": True}),
    "one step of rome": ("rome", {**QUICK["rome"], "steps": 1}),  # as published: the last pass makes no step
    "one step of memit": ("memit", {**QUICK["memit"], "steps": 1}),
}
CONTROLS = {
    kind: (kind, {"editor": "memit", "settings": {**QUICK["memit"], **CONTENT}})
    for kind in ("identity", "random", "unrelated")
}
OTHERS = {"mend": ("mend", {**LIGHT["mend"], "scale": 0.0}), **CONTROLS}


def deltas(kind: str, name: str, settings: dict[str, Any], requests: Sequence[EditRequest]) -> list[WeightDelta]:
    """One delta for all requests, and one for each where the editor can make them together."""
    model, tokenizer = tiny_model(kind), tiny_tokenizer()
    cls = load_editor(name)
    editor = cls(cls.config_class(**settings), corpus=tiny_texts()).fit(model, tokenizer)
    each = editor.edit_each(model, tokenizer, requests) if hasattr(editor, "edit_each") else []
    return [editor.edit(model, tokenizer, requests), *each]


@pytest.mark.parametrize("kind", ["gpt2", *slowly("llama", "gemma2", "olmo2")])
@pytest.mark.parametrize("name", OPTIMISED)
def test_no_step_is_no_change(kind: str, name: str) -> None:
    for delta in deltas(kind, *OPTIMISED[name], REQUESTS):
        assert delta.updates
        assert delta.is_zero()
        assert not any(delta.norms().values())


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_times_anything_is_no_change(name: str) -> None:
    for delta in deltas("llama", *OTHERS[name], REQUESTS[:2]):
        assert delta.updates
        assert delta.is_zero()
        assert not any(delta.norms().values())


@pytest.mark.parametrize("name", ["rome", "memit", "emmet", "alphaedit"])
def test_only_the_edits_that_took_no_step_are_zero(name: str) -> None:
    """Made together with others that did: `stop_below` lies between the first losses of two requests."""
    free = deltas("llama", name, QUICK[name], REQUESTS[:2])[1:]
    first = [delta.meta["diagnostics"][0]["first_loss"] for delta in free]
    found = deltas("llama", name, {**QUICK[name], "stop_below": sum(first) / 2}, REQUESTS[:2])[1:]
    assert [delta.is_zero() for delta in found] == [loss < sum(first) / 2 for loss in first]
    assert abs(first[0] - first[1]) > 0.01, "or the limit between them says nothing"
