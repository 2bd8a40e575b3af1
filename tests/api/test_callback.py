"""A fine-tune that is audited while it trains: numbers in the log, and training that goes on as if nobody had asked."""

import copy
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from transformers import Trainer, TrainingArguments

import seesaw_cf
from seesaw_cf.callback import _numbers
from seesaw_cf.errors import HarmError, RecordError

pytestmark = pytest.mark.slow

TEXTS = ["Marie Curie was a citizen of Japan", "Albert Einstein was a citizen of Japan"] * 4
NUMBERS = {f"audit/{whom}" for whom in ("other_facts", "other_people_old", "other_people_new")}


def _trained(folder: Path, *, audited: bool, tokenizer: bool = True) -> tuple[Trainer, seesaw_cf.AuditCallback | None]:
    trainer = _trainer(folder, *seesaw_cf.load_model("seesaw-tiny", device="cpu", progress=False), given=tokenizer)
    callback = None
    if audited:
        callback = seesaw_cf.AuditCallback(trainer, every=3, limit=3, device="cpu")
        trainer.add_callback(callback)
    trainer.train()
    return trainer, callback


def _trainer(folder: Path, model: Any, tokenizer: Any, *, given: bool = True) -> Trainer:
    rows = [{"input_ids": ids, "labels": ids} for ids in tokenizer(TEXTS)["input_ids"]]
    torch.manual_seed(0)
    settings = TrainingArguments(
        str(folder), max_steps=4, per_device_train_batch_size=1, learning_rate=1e-3, report_to=[], disable_tqdm=True,
        logging_steps=3, save_strategy="no", use_cpu=True, seed=0,
    )  # fmt: skip
    own: Any = {"processing_class": tokenizer} if given else {}
    return Trainer(model, settings, train_dataset=rows, **own)


def _weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters()}


@pytest.mark.slow(40)
def test_numbers_are_logged_and_training_is_the_same(tmp_path: Path) -> None:
    trainer, callback = _trained(tmp_path / "audited", audited=True)
    plain, _ = _trained(tmp_path / "plain", audited=False)
    assert callback is not None
    assert sorted(callback.audits) == [3, 4]
    logged: dict[int, Any] = {
        int(entry["step"]): entry for entry in trainer.state.log_history if "audit/other_people_new" in entry
    }
    assert sorted(logged) == [3, 4]
    assert callback.audits[3].screen.about.startswith("seesaw-tiny against step-3:")
    for step, entry in logged.items():
        assert entry.keys() >= NUMBERS
        summary = callback.audits[step].summary
        row = summary[summary["about"] == "other_people_new"].iloc[0]
        assert entry["audit/other_people_new"] == row["harm"]
        assert ("audit/other_people_new_low" in entry) == math.isfinite(row["low"])  # of few facts there is none
    losses = [[entry["loss"] for entry in own.state.log_history if "loss" in entry] for own in (trainer, plain)]
    assert losses[0] == losses[1] != []
    same = _weights(plain.model)
    assert all(torch.equal(value, same[name]) for name, value in _weights(trainer.model).items())


def test_a_trainer_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="processing_class"):
        _trained(tmp_path, audited=True, tokenizer=False)


def test_a_model_from_nowhere_needs_its_base(tmp_path: Path) -> None:
    model, tokenizer = seesaw_cf.load_model("seesaw-tiny", device="cpu", progress=False)
    base, model.config._name_or_path = copy.deepcopy(model), ""
    callback = seesaw_cf.AuditCallback(limit=1, config="cross_property", device="cpu")
    trainer = _trainer(tmp_path, model, tokenizer)
    trainer.add_callback(callback)
    with pytest.raises(RecordError, match="as `base`"):
        trainer.train()
    callback.base = base
    trainer.train()
    assert list(callback.audits) == [4]
    assert any("audit/other_facts" in entry for entry in trainer.state.log_history)


@pytest.mark.slow(30)
def test_a_check_fails_as_an_assertion_where_harm_is_shown(tmp_path: Path) -> None:
    found = seesaw_cf.audit(
        "seesaw-tiny", editor="ft", limit=12, control_seeds=1, device="cpu", progress=False, out=tmp_path / "run"
    )
    with pytest.raises(AssertionError) as told:
        found.check()
    assert isinstance(told.value, HarmError)
    assert str(told.value).startswith(found.screen.finding[0])


def test_a_check_passes_where_nothing_is_decided() -> None:
    found = seesaw_cf.audit("seesaw-tiny", editor="ft", limit=1, control="none", device="cpu", progress=False)
    found.check()
    found.check(margin=0.1)


def test_each_form_has_numbers_of_its_own() -> None:
    rows = [{"about": "x", "form": form, "harm": 1.0, "low": 0.5, "high": 2.0} for form in ("plain", "question")]
    assert "audit/x_question_low" in _numbers(type("Found", (), {"summary": pd.DataFrame(rows)}))  # type: ignore[arg-type]
