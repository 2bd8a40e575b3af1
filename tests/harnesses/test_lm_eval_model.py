"""The model `seesaw` of lm_eval gives what lm_eval's own `hf` gives, with and without an edit."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from seesaw_cf.errors import RecordError
from seesaw_cf.models.weights import applied
from seesaw_cf.sharing import save_delta
from tests.fakes import low_rank, tiny_model, tiny_tokenizer

pytest.importorskip("lm_eval", reason="needs the extra harness: pip install 'seesaw_cf[harness]'")

from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
from lm_eval.models.huggingface import HFLM

from seesaw_cf.harnesses.lm_eval_model import SeesawLM

WORDS = ["Ada", "Marie", "was", "born", "in", "London", "Kraków", "a", "citizen", "of", "Poland", ".", ",", "the"]
KINDS = ("gpt2", "llama", "gemma3_text", "falcon")


def _model(kind: str) -> PreTrainedModel:
    return tiny_model(kind, alibi=True) if kind == "falcon" else tiny_model(kind)


def _instances(kind: str, asked: Sequence[tuple[Any, ...]]) -> list[Instance]:
    return [Instance(request_type=kind, doc={}, arguments=args, idx=0) for args in asked]


def _asked(seed: int) -> list[tuple[str, str]]:
    """Choices after contexts that are shared: empty, with a space at the end, longer than the model takes."""
    draw = random.Random(seed)
    contexts = ["", "Ada was born in ", *(" ".join(draw.choices(WORDS, k=draw.randint(1, 40))) for _ in range(6))]
    contexts.append(" ".join(draw.choices(WORDS, k=90)))
    choices = [" London", " Kraków or Poland", ".", "  the citizen"]
    return [(context, choice) for context in contexts for choice in draw.sample(choices, 3)]


def _close(own: Sequence[tuple[float, bool]], other: Sequence[tuple[float, bool]]) -> None:
    assert [greedy for _, greedy in own] == [greedy for _, greedy in other]
    assert [value for value, _ in own] == pytest.approx([value for value, _ in other], abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_loglikelihoods_are_those_of_hf(kind: str) -> None:
    model, tokenizer = _model(kind), tiny_tokenizer()
    asked = _instances("loglikelihood", _asked(1))
    own, other = SeesawLM(model, tokenizer), HFLM(model, tokenizer=tokenizer, batch_size=8)
    assert (own.scorer.support.layout == "plain") is (kind == "falcon")
    _close(own.loglikelihood(asked, disable_tqdm=True), other.loglikelihood(asked, disable_tqdm=True))
    fed = own.scorer.counts.tokens
    assert fed < 0.6 * sum(len(tokenizer(context + choice)["input_ids"]) for context, choice in _asked(1))


def test_a_tokenizer_with_a_first_token_and_a_shorter_window_are_heeded() -> None:
    model, tokenizer = tiny_model("llama"), tiny_tokenizer(bos=True)
    options: dict[str, Any] = {"max_length": 24, "add_bos_token": False}
    asked = _instances("loglikelihood", _asked(2))
    own, other = SeesawLM(model, tokenizer, **options), HFLM(model, tokenizer=tokenizer, batch_size=8, **options)
    _close(own.loglikelihood(asked, disable_tqdm=True), other.loglikelihood(asked, disable_tqdm=True))


def test_a_continuation_that_no_window_holds_is_refused() -> None:
    own = SeesawLM(tiny_model("llama"), tiny_tokenizer(), max_length=8)
    with pytest.raises(RecordError, match=r"a continuation of \d+ tokens, expected at most 8\."):
        own.loglikelihood(_instances("loglikelihood", [("Ada", " sees a river" * 9)]), disable_tqdm=True)


@pytest.mark.parametrize("kind", KINDS)
def test_rolling_loglikelihoods_are_those_of_hf(kind: str) -> None:
    model, tokenizer = _model(kind), tiny_tokenizer()
    draw = random.Random(3)
    texts = [" ".join(draw.choices(WORDS, k=length)) for length in (1, 20, 150, 90)]
    asked = _instances("loglikelihood_rolling", [(text,) for text in (*texts, "")])
    own = SeesawLM(model, tokenizer).loglikelihood_rolling(asked, disable_tqdm=True)
    other = HFLM(model, tokenizer=tokenizer, batch_size=1).loglikelihood_rolling(asked, disable_tqdm=True)
    assert own == pytest.approx(other, abs=1e-3)  # sums of up to 600 tokens


@pytest.mark.parametrize("edit", ["delta", "peft"])
def test_an_edit_is_that_of_the_edited_weights(edit: str, tmp_path: Path) -> None:
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    model.save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    delta = low_rank(model, (2,), 4, scale=0.5)
    save_delta(delta, tmp_path / "edit", model)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    own = get_model("seesaw")(str(tmp_path / "base"), batch_size=4, **{edit: str(tmp_path / "edit")})
    asked = _instances("loglikelihood", _asked(5))
    written = _instances("generate_until", [(" ".join(WORDS[:n]), {"until": ["."], "max_gen_toks": 8}) for n in (3, 6)])
    with applied(model, delta):
        other = HFLM(model, tokenizer=tokenizer, batch_size=4)
        _close(own.loglikelihood(asked, disable_tqdm=True), other.loglikelihood(asked, disable_tqdm=True))
        assert own.generate_until(written, disable_tqdm=True) == other.generate_until(written, disable_tqdm=True)
    assert own.get_model_info()["delta_sha256"] == json.loads((tmp_path / "edit" / "delta.json").read_text())["sha256"]
    assert all(torch.equal(before[name], parameter) for name, parameter in own.model.named_parameters())


def test_an_option_that_nothing_would_heed_is_refused() -> None:
    with pytest.raises(RecordError, match=r"got the options \['parallelize'\], expected some of .*--model hf"):
        SeesawLM(tiny_model("gpt2"), tiny_tokenizer(), parallelize=True)


def test_a_delta_of_a_given_model_needs_its_tokenizer() -> None:
    with pytest.raises(RecordError, match="Give tokenizer="):
        SeesawLM(tiny_model("gpt2"), delta="anywhere")
