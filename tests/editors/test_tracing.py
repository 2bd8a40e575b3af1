"""Causal tracing: laws that hold for any weights, and a model planted so that the answer is known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from seesaw_cf.editors.tracing import (
    POSITIONS,
    FactTrace,
    TraceOptions,
    estimates,
    propose_layers,
    trace_fact,
    trace_facts,
)
from seesaw_cf.errors import EditError, UnknownNameError
from seesaw_cf.models.identity import fingerprint
from seesaw_cf.types import EditRequest, Entity
from tests.fakes import tiny_model, tiny_tokenizer

FACT = EditRequest("The mother tongue of {} was", "Marie Curie", "P103", Entity(None, "French"), Entity(None, "Polish"))


@pytest.mark.parametrize("kind", ["gpt2", "gptj", "llama", "gemma2", "opt", "falcon"])
def test_laws_on_every_style_of_architecture(kind: str) -> None:
    """The last block's state at the last token decides the answer: put back, it gives the clean answer."""
    model, tokenizer = tiny_model(kind, initializer_range=0.3), tiny_tokenizer()
    before = fingerprint(model)
    trace = trace_fact(model, tokenizer, FACT, TraceOptions(kind="block", samples=3))
    assert trace.effects.shape == (len(POSITIONS), 4)
    assert float(trace.effects[4, -1]) == pytest.approx(trace.clean - trace.corrupted, abs=1e-6)
    # Other places cannot matter at the last block: nothing reads them any more.
    assert trace.effects[:4, -1].nan_to_num().abs().max() < 1e-6
    assert abs(trace.clean - trace.corrupted) > 1e-6
    assert fingerprint(model) == before
    assert not any(module._forward_hooks for module in model.modules())
    again = trace_fact(model, tokenizer, FACT, TraceOptions(kind="block", samples=3))
    assert torch.equal(again.effects.nan_to_num(), trace.effects.nan_to_num())


def test_without_noise_nothing_is_corrupted_and_nothing_can_be_restored() -> None:
    trace = trace_fact(tiny_model("llama"), tiny_tokenizer(), FACT, TraceOptions(noise=0.0, samples=2))
    assert trace.corrupted == pytest.approx(trace.clean, abs=1e-7)
    assert trace.effects.nan_to_num().abs().max() < 1e-7


def test_facts_share_the_deviation_of_all_their_subjects() -> None:
    """One noise for all: sigma is the deviation over the embeddings of every subject, not of the fact's own."""
    model, tokenizer = tiny_model("llama", initializer_range=0.3), tiny_tokenizer()
    facts = [replace(FACT, prompt="{} was born in", subject=subject) for subject in ("Marie Curie", "Ada Lovelace")]
    rows = [model.get_input_embeddings()(torch.tensor(tokenizer(fact.subject)["input_ids"])) for fact in facts]
    options = TraceOptions(samples=2)
    for fact, trace in zip(facts, trace_facts(model, tokenizer, facts, options), strict=True):
        pooled = replace(options, sigma=float(torch.cat(rows).detach().std()))
        assert trace.corrupted == pytest.approx(trace_fact(model, tokenizer, fact, pooled).corrupted, rel=1e-5)
        assert trace.corrupted != pytest.approx(trace_fact(model, tokenizer, fact, options).corrupted, rel=1e-3)


def test_a_window_over_all_layers_is_the_same_for_every_layer() -> None:
    effects = trace_fact(tiny_model("llama"), tiny_tokenizer(), FACT, TraceOptions(window=9, samples=2)).effects
    assert (effects - effects[:, :1]).nan_to_num().abs().max() < 1e-7


def test_one_token_subjects_have_no_first_or_middle_token() -> None:
    fact = EditRequest("{} was born in", "A", "P19", Entity(None, "London"), Entity(None, "Paris"))
    effects = trace_fact(tiny_model("llama"), tiny_tokenizer(), fact, TraceOptions(samples=2)).effects
    assert effects[:2].isnan().all()
    assert not effects[2].isnan().any()


def _trace(values: list[float]) -> FactTrace:
    effects = torch.full((len(POSITIONS), len(values)), math.nan, dtype=torch.float64)
    effects[2] = torch.tensor(values)
    return FactTrace(FACT, 0.9, 0.1, effects)


def test_estimates_and_proposal_by_hand() -> None:
    """Layer 1: values 0.2 and 0.4, mean 0.3, standard error 0.1414 / sqrt(2) = 0.1; half-width 1.96 * 0.1."""
    traces = [_trace([0.0, 0.2, 0.1]), _trace([0.0, 0.4, 0.1])]
    row = estimates(traces)
    assert row[1].value == pytest.approx(0.3)
    assert row[1].stderr == pytest.approx(0.1)
    assert (row[1].low, row[1].high) == pytest.approx((0.3 - 0.196, 0.3 + 0.196))
    assert row[1].n == 2
    assert propose_layers(traces) == {"rome": (1,), "memit": (1,)}
    wide = [_trace([0.0] * 8 + [1.0] + [0.0] * 23)]
    assert propose_layers(wide) == {"rome": (8,), "memit": (4, 5, 6, 7, 8)}
    assert math.isnan(estimates(wide)[0].low)


def test_what_cannot_be_traced_is_said() -> None:
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    with pytest.raises(UnknownNameError, match=r"unknown kind of causal tracing 'mpl'\. Did you mean 'mlp'"):
        trace_fact(model, tokenizer, FACT, TraceOptions(kind="mpl"))
    with pytest.raises(EditError, match="needs at least one fact that the model knows"):
        list(trace_facts(model, tokenizer, []))
    with pytest.raises(UnknownNameError, match="Did you mean 'last token'"):
        estimates([], "last tokn")
