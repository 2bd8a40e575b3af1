"""TF32 is on while a model that asks for it is scored or edited, and nowhere else; what is cached is float32."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch

from seesaw_cf.editors.locate.moments import second_moments
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.hooks import evaluating, frozen
from seesaw_cf.models.load import load_model
from seesaw_cf.models.tf32 import exact_products, has_tf32, use_tf32
from seesaw_cf.scoring import TrieScorer
from seesaw_cf.scoring.noise import measure_noise
from seesaw_cf.types import Cloze
from tests.fakes import tiny_model, tiny_texts, tiny_tokenizer

CLOZES = [Cloze(f"{text} was born in", "London") for text in tiny_texts()[:4]]


def _model(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A model that says, while it is asked to use TF32, that it is on a GPU."""
    model = tiny_model("llama")
    with monkeypatch.context() as there:
        there.setattr(type(model), "device", torch.device("cuda"))
        use_tf32(model)
    return model


def _seen(model: Any, do: Callable[[], object]) -> set[bool]:
    """Whether TF32 was on in the forward passes of something."""
    switch, seen = torch.backends.cuda.matmul, set[bool]()
    handle = model.register_forward_pre_hook(lambda *_: seen.add(switch.allow_tf32))
    do()
    handle.remove()
    assert not switch.allow_tf32
    return seen


def test_scores_and_their_noise_are_in_tf32_and_second_moments_and_the_trial_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tokenizer = _model(monkeypatch), tiny_tokenizer()
    scorer = TrieScorer(model, tokenizer)
    assert _seen(model, lambda: scorer.support) == {False}
    assert scorer.support.layout == "packed"
    assert _seen(model, lambda: scorer.score(CLOZES)) == {True}
    assert _seen(model, lambda: measure_noise(scorer, CLOZES, quick=True)) == {True}
    parts = model_parts(model)
    assert _seen(model, lambda: second_moments(parts, tokenizer, [1], tiny_texts(), cache=tmp_path)) == {False}
    assert has_tf32(model)


def test_blocks_nest_and_leave_the_switch_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    model, other, switch = _model(monkeypatch), tiny_model("llama"), torch.backends.cuda.matmul
    with frozen(model), exact_products(model), evaluating(model):
        assert not switch.allow_tf32
    with pytest.raises(KeyError), frozen(model):
        raise KeyError
    assert not switch.allow_tf32
    with evaluating(other), exact_products(other):
        assert not switch.allow_tf32
    with evaluating(model), evaluating(other):
        assert switch.allow_tf32


def test_attention_that_plans_for_each_shape_is_off_while_a_model_is_used_and_on_again_after() -> None:
    """On a GPU cuDNN's attention takes up to half a second for a shape that it has not seen."""
    model, seen = tiny_model("llama"), set[bool]()
    switch: Callable[[], bool] = torch.backends.cuda.cudnn_sdp_enabled
    handle = model.register_forward_pre_hook(lambda *_: seen.add(switch()))
    assert switch()
    TrieScorer(model, tiny_tokenizer()).score(CLOZES)
    with pytest.raises(KeyError), frozen(model), evaluating(model):
        raise KeyError
    handle.remove()
    assert seen == {False}
    assert switch()


def test_attention_is_back_after_the_last_of_blocks_that_overlap() -> None:
    """Two threads that each use a model overlap like this."""
    switch: Callable[[], bool] = torch.backends.cuda.cudnn_sdp_enabled
    with ExitStack() as first, ExitStack() as second:
        for stack in (first, second):
            stack.enter_context(evaluating(tiny_model("llama")))
        first.close()
        assert not switch()
    assert switch()


def test_without_a_gpu_it_is_float32_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    model, _ = load_model("seesaw-tiny", device="cpu", dtype="tf32", progress=False)
    assert model.dtype == torch.float32
    assert not has_tf32(model)
    assert "--dtype tf32 changes nothing on cpu: only NVIDIA's GPUs have it. Use float32." in caplog.text
