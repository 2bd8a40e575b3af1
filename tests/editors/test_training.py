"""LoRA is a low-rank change, trained through hooks; many requests at once are fine-tuned as each by itself."""

from typing import Any

import pytest
import torch

from seesaw_cf.editors import ft as fine_tuning
from seesaw_cf.editors.ft import FT, FTConfig, LoRA, LoRAConfig
from seesaw_cf.editors.mend.factors import batch_of, log_p_at
from seesaw_cf.errors import EditError, UnsupportedModelError
from seesaw_cf.models.weights import applied
from seesaw_cf.types import Cloze
from tests.contract.checks import new_log_probability
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


def config(**changes: Any) -> LoRAConfig:
    return LoRAConfig(**{"layers": (1, 2), "rank": 2, "alpha": 4, "steps": 15, "learning_rate": 2e-2, **changes})


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_the_delta_is_the_change_that_was_trained(kind: str) -> None:
    """One more pass after the last step sees the same loss through the weights as through the hooks.

    `steps` and `steps + 1` passes share their first `steps`; the loss of the extra pass is that of the shorter run's
    final factors, and must equal -log p per token under `applied`.
    """
    model = tiny_model(kind, dtype=torch.float64)
    short = LoRA(config(steps=5)).edit(model, TOKENIZER, REQUESTS[:1])
    longer = LoRA(config(steps=6)).edit(model, TOKENIZER, REQUESTS[:1])
    text = f"{REQUESTS[0].text} {REQUESTS[0].target_new.label}"
    count = len(TOKENIZER(text)["input_ids"]) - len(TOKENIZER(REQUESTS[0].text)["input_ids"])
    loss = -new_log_probability(model, TOKENIZER, REQUESTS[0], short) / count
    assert loss == pytest.approx(longer.meta["losses"][-1], rel=1e-9)


def test_batches_only_change_the_steps_not_the_first_loss() -> None:
    model = tiny_model("llama")
    whole = LoRA(config(steps=1)).edit(model, TOKENIZER, REQUESTS)
    alone = [LoRA(config(steps=1)).edit(model, TOKENIZER, [asked]).meta["losses"][0] for asked in REQUESTS]
    assert whole.meta["losses"][0] == pytest.approx(sum(alone) / 3, rel=1e-5)  # padding changes nothing


def test_seed_decides_the_start_and_a_small_loss_ends_it() -> None:
    model = tiny_model("llama")
    zero, one = (LoRA(config(seed=seed, steps=2)).edit(model, TOKENIZER, REQUESTS) for seed in (0, 1))
    assert not all(torch.equal(zero.dense(name), one.dense(name)) for name in zero.updates)
    assert len(LoRA(config(stop_below=1e9, steps=50)).edit(model, TOKENIZER, REQUESTS).meta["losses"]) == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_models(dtype: torch.dtype) -> None:
    model = tiny_model("llama", dtype=dtype)
    delta = LoRA(config()).edit(model, TOKENIZER, REQUESTS[:1])
    assert all(part.dtype == torch.float32 for part in delta.tensors())
    with applied(model, delta):
        assert model.dtype == dtype
    assert new_log_probability(model, TOKENIZER, REQUESTS[0], delta) > new_log_probability(
        model, TOKENIZER, REQUESTS[0]
    )


@pytest.mark.parametrize("changes", [{"rank": 0}, {"alpha": 0.0}, {"steps": 0}, {"learning_rate": -1.0}])
def test_settings_that_cannot_work_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(EditError, match="expected a"):
        config(**changes)


def test_a_layer_the_model_lacks_and_a_loss_that_is_no_number_are_named() -> None:
    model = tiny_model("llama")
    with pytest.raises(UnsupportedModelError, match="has 4 blocks"):
        LoRA(config(layers=(9,))).edit(model, TOKENIZER, REQUESTS)
    with torch.no_grad():
        model.get_parameter("model.norm.weight").fill_(float("nan"))
    with pytest.raises(EditError, match=r"the loss is nan in pass 1 over 3.*Lower learning_rate"):
        LoRA(config()).edit(model, TOKENIZER, REQUESTS)
