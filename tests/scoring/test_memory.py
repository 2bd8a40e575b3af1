"""A stated budget makes passes small; running out of memory makes them smaller, and the run goes on."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerBase

import seesaw_cf.scoring.edited_scorer
import seesaw_cf.scoring.hf_scorer
from seesaw_cf.scoring import EditedScorer, HFScorer, TrieScorer
from seesaw_cf.scoring.encode import encode_many
from seesaw_cf.scoring.forward import logit_bytes, token_bytes
from tests.fakes import low_rank
from tests.scoring.models import make
from tests.scoring.test_edited import by_hand
from tests.scoring.work import candidates, clozes, worst


def _scarce_logits(model: Any, rows: int) -> list[int]:
    """Refuses memory for the logits of more than `rows` tokens, as a GPU would; what it refused, as it happens."""
    refused: list[int] = []

    def check(head: Any, args: tuple[Any, ...]) -> None:
        if (asked := args[0].numel() // head.in_features) > rows:
            refused.append(asked)
            raise torch.OutOfMemoryError("CUDA out of memory")

    model.get_output_embeddings().register_forward_pre_hook(check)
    return refused


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_logits_that_do_not_fit_make_passes_smaller(dtype: torch.dtype, tokenizer: PreTrainedTokenizerBase) -> None:
    """The largest single piece of memory is what a GPU refuses first."""
    model = make("llama").to(dtype)
    scorer = TrieScorer(model, tokenizer)
    expected = scorer.score(candidates(60))
    refused = _scarce_logits(model, 20)
    found = scorer.score(candidates(60))
    assert worst(found, expected) < (1e-4 if dtype == torch.float32 else 0.2)
    assert refused


def test_edits_go_one_after_the_other_when_memory_runs_out(
    tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = make("llama")
    jobs = [(low_rank(model, (2,), seed), clozes(2)) for seed in range(3)]

    def fails(*_: Any) -> Any:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(seesaw_cf.scoring.edited_scorer, "hidden_below", fails)
    with caplog.at_level(logging.WARNING):
        scores = EditedScorer(TrieScorer(model, tokenizer), "together").score(jobs)
    expected = by_hand(model, tokenizer, jobs)
    assert max(worst(got, wanted) for got, wanted in zip(scores, expected, strict=True)) < 1e-4
    assert caplog.messages == ["out of memory with 3 edits at once; going on one after the other"]


def test_a_budget_bounds_tokens_and_logits(tokenizer: PreTrainedTokenizerBase) -> None:
    model = make("llama")
    budget = 40 * token_bytes(model) + 40 * logit_bytes(model)
    scorer = TrieScorer(model, tokenizer, memory=budget)
    assert scorer.tokens_per_pass < TrieScorer(model, tokenizer).tokens_per_pass
    work = clozes()
    assert worst(scorer.score(work), HFScorer(model, tokenizer).score(work)) < 1e-4
    sizes: list[int] = []
    model.get_input_embeddings().register_forward_pre_hook(lambda _, args: sizes.append(args[0].numel()))
    scorer.score(work)
    assert len(sizes) > 1
    assert max(sizes) <= max(scorer.tokens_per_pass, 4 * 20)


def test_edited_models_keep_the_budget_with_many_texts(
    tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small budget cuts the texts into slabs; numbers are those of one slab, and each text is encoded once a slab."""
    model = make("llama")
    jobs = [(low_rank(model, (2,), seed), clozes(3)[seed:]) for seed in range(2)]
    expected = EditedScorer(TrieScorer(model, tokenizer), "together").score(jobs)
    monkeypatch.setattr(TrieScorer, "texts_at_once", 10)
    sizes = []

    def counted(tokenizer: Any, some: Any, limit: Any = None) -> Any:
        sizes.append(len(some))
        return encode_many(tokenizer, some, limit)

    monkeypatch.setattr(seesaw_cf.scoring.hf_scorer, "encode_many", counted)
    found = EditedScorer(TrieScorer(model, tokenizer), "together").score(jobs)
    assert max(sizes) <= 10
    assert sum(sizes) == len({cloze for _, asked in jobs for cloze in asked})
    assert max(worst(got, wanted) for got, wanted in zip(found, expected, strict=True)) < 1e-4
