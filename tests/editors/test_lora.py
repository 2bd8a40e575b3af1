"""LoRA fine-tuning: a low-rank change, trained through hooks, equal to what the hooks added."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from seesaw_cf.editors.ft import LoRA, LoRAConfig
from seesaw_cf.errors import EditError, UnsupportedModelError
from seesaw_cf.models.weights import applied
from tests.contract.checks import new_log_probability
from tests.fakes import REQUESTS, tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()


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
    delta = LoRA(config(stop_below=1e9, steps=50)).edit(model, TOKENIZER, REQUESTS)
    assert len(delta.meta["losses"]) == 1


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
