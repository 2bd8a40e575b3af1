"""Fine-tuning many requests at once, each by itself: the same as one after another."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from seesaw_cf.editors import ft as fine_tuning
from seesaw_cf.editors.ft import FT, FTConfig, LoRA, LoRAConfig
from seesaw_cf.editors.mend.factors import batch_of, log_p_at
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


@pytest.mark.parametrize("kind", ["gpt2", "llama", "opt", "gemma2"])
def test_log_p_is_that_of_the_whole_pass_at_the_asked_places(kind: str) -> None:
    model = tiny_model(kind, dtype=torch.float64)
    batch = batch_of(
        TOKENIZER, [Cloze("the city of Rome is", "in"), Cloze("Anna works in the field of", "law and order")]
    )
    places = batch.labels != -100
    with torch.no_grad():
        whole = model(input_ids=batch.ids, attention_mask=batch.mask).logits.log_softmax(-1)
        torch.testing.assert_close(log_p_at(model, batch, places), whole[places], rtol=1e-9, atol=1e-12)
