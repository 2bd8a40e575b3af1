"""Fine-tuning many requests at once, each by itself: the same as one after another."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from seesaw_cf.editors import ft as fine_tuning
from seesaw_cf.editors.ft import FT, FTConfig
from seesaw_cf.editors.lora import LoRA, LoRAConfig
from seesaw_cf.editors.mend.factors import batch_of, forward, log_p_at
from seesaw_cf.editors.mend.network import Upper
from seesaw_cf.models.hooks import hooked
from seesaw_cf.types import Cloze
from tests.fakes import CONTRACT_MODELS, REQUESTS, tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
NEAR = 1e-7
"""Adam divides by |gradient| + 1e-8, so rounding (1e-16) of a gradient of nothing moves an entry by some 1e-9."""
EDITORS: dict[str, Any] = {
    "lora": LoRA(LoRAConfig(layers=(1, 2), rank=2, alpha=4, steps=12, learning_rate=2e-2)),
    "ft": FT(FTConfig(layers=(1,), learning_rate=1e-2, norm_constraint=5e-2, steps=12)),
    "ft, teacher-forced": FT(FTConfig(layers=(2,), learning_rate=1e-2, steps=12, objective="teacher_forced")),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONTRACT_MODELS)
@pytest.mark.parametrize("name", EDITORS)
def test_each_is_edited_as_if_alone(kind: str, name: str) -> None:
    model, editor = tiny_model(kind, dtype=torch.float64), EDITORS[name]
    together = editor.edit_each(model, TOKENIZER, REQUESTS)
    for request, delta in zip(REQUESTS, together, strict=True):
        alone = editor.edit(model, TOKENIZER, [request])
        assert delta.meta["losses"] == pytest.approx(alone.meta["losses"], rel=1e-9)
        for parameter in alone.updates:
            torch.testing.assert_close(delta.dense(parameter), alone.dense(parameter), rtol=0, atol=NEAR)


def test_those_that_are_finished_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests end after different numbers of steps, in one batch or in several."""
    model = tiny_model("llama", dtype=torch.float64)
    first = [LoRA(LoRAConfig(layers=(1,), steps=1)).edit(model, TOKENIZER, [r]).meta["losses"][0] for r in REQUESTS]
    editor = LoRA(LoRAConfig(layers=(1,), steps=40, learning_rate=5e-2, stop_below=min(first) - 0.05))
    together = editor.edit_each(model, TOKENIZER, REQUESTS)
    assert len({len(delta.meta["losses"]) for delta in together}) > 1
    monkeypatch.setattr(fine_tuning, "_groups_at_once", lambda *_: 1)
    for one, delta in zip(editor.edit_each(model, TOKENIZER, REQUESTS), together, strict=True):
        for parameter in one.updates:
            torch.testing.assert_close(delta.dense(parameter), one.dense(parameter), rtol=0, atol=NEAR)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_blocks_below_the_edited_ones_do_not_run_again_for_the_same_batch(kind: str) -> None:
    model = tiny_model(kind, dtype=torch.float64)
    texts = [Cloze("the city of Rome is", "in"), Cloze("Anna works in the field of", "law and order")]
    names = [name for name, _ in model.named_parameters() if ".3." in name and name.endswith("weight")][-1:]
    upper, ran = Upper(names), []
    handle = (
        model.get_decoder()
        .get_submodule("h.0.attn" if kind == "gpt2" else "layers.0.self_attn")
        .register_forward_hook(lambda *_: ran.append(1))
    )
    with torch.no_grad(), hooked([handle]):
        for clozes, runs in ((texts, True), (texts, False), (texts[:1], True), (texts, True)):
            batch = batch_of(TOKENIZER, clozes)
            real = batch.mask.bool()
            ran.clear()
            found = upper(model, batch)[real]
            assert bool(ran) == runs
            torch.testing.assert_close(found, forward(model, batch)[real], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "opt", "gemma2"])
def test_log_p_is_that_of_the_whole_pass_at_the_asked_places(kind: str) -> None:
    model = tiny_model(kind, dtype=torch.float64)
    batch = batch_of(
        TOKENIZER, [Cloze("the city of Rome is", "in"), Cloze("Anna works in the field of", "law and order")]
    )
    places = batch.labels != -100
    with torch.no_grad():
        whole = forward(model, batch).log_softmax(-1)
        torch.testing.assert_close(log_p_at(model, batch, places), whole[places], rtol=1e-9, atol=1e-12)
