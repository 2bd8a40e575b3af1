"""A model spread over devices by accelerate is scored like one on a single device."""

from __future__ import annotations

import importlib.util

import pytest
import torch

from seesaw_cf.errors import UnknownNameError
from seesaw_cf.models.load import load_model
from seesaw_cf.scoring import EditedScorer, TrieScorer
from tests.scoring.test_edited import low_rank
from tests.scoring.work import clozes, worst


@pytest.mark.slow
def test_a_spread_model_gives_the_same_scores() -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    model, tokenizer = load_model("seesaw-tiny", device="balanced")
    alone, _ = load_model("seesaw-tiny", device="cpu")
    if not torch.cuda.is_available():
        assert model.device.type == "cpu"
    assert worst(TrieScorer(model, tokenizer).score(clozes(2)), TrieScorer(alone, tokenizer).score(clozes(2))) < 1e-4
    jobs = [(low_rank(alone, (2,), seed), clozes(1)) for seed in range(2)]
    first, second = (EditedScorer(TrieScorer(m, tokenizer), "together").score(jobs) for m in (model, alone))
    assert max(worst(a, b) for a, b in zip(first, second, strict=True)) < 1e-4


def test_without_accelerate_a_spread_model_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnknownNameError, match="device 'balanced' needs accelerate"):
        load_model("seesaw-tiny", device="balanced")
