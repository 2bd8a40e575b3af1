"""Tries give the numbers of separate sequences, on every architecture, and feed hardly more than the trie's nodes."""

import logging
import math
import random
import shutil
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerBase

from seesaw_cf.errors import PromptError, UnknownNameError, UnsupportedModelError
from seesaw_cf.scoring import HFScorer, TrieScorer, make_scorer
from seesaw_cf.scoring.encode import encode_many
from seesaw_cf.scoring.layout import unique_nodes
from seesaw_cf.types import Cloze
from tests.fakes import every_kind
from tests.scoring.models import CONFIGS, make
from tests.scoring.work import candidates, clozes, worst
from tests.tokenizer_styles import STYLES


@pytest.mark.parametrize("kind", every_kind(CONFIGS))
def test_equal_to_separate_sequences_on_every_architecture(kind: str, tokenizer: PreTrainedTokenizerBase) -> None:
    model = make(kind)
    scorer = TrieScorer(model, tokenizer, max_tokens=300)
    assert scorer.support.layout == CONFIGS[kind][1]
    assert worst(scorer.score(clozes()), HFScorer(model, tokenizer).score(clozes())) < 1e-4


@pytest.mark.parametrize("kind", ["gpt2", "gptj"])
@pytest.mark.parametrize("style", STYLES)
def test_every_tokenizer_style(kind: str, style: str) -> None:
    model, tokenizer = make(kind), STYLES[style]()
    assert worst(TrieScorer(model, tokenizer).score(clozes(3)), HFScorer(model, tokenizer).score(clozes(3))) < 1e-4


@pytest.mark.parametrize("kind", ["llama", "gptj"])
def test_tokens_fed_stay_at_the_nodes_of_the_trie(kind: str, tokenizer: PreTrainedTokenizerBase) -> None:
    work = clozes() + candidates(1500)
    items = encode_many(tokenizer, work).asked
    model = make(kind)
    scorer = TrieScorer(model, tokenizer)
    scorer.score(work * 3)
    asked = {item.ids[:place] for item in items for place in range(item.start, len(item.ids))}
    assert scorer.counts.tokens <= 1.05 * unique_nodes(items)
    assert scorer.counts.padded <= 1.15 * scorer.counts.tokens
    assert scorer.counts.logit_rows <= 1.05 * len(asked)
    assert scorer.counts.tokens < 0.25 * sum(len(item.ids) for item in items)


def test_one_more_candidate_costs_its_unseen_tokens_only(tokenizer: PreTrainedTokenizerBase) -> None:
    def fed(work: list[Cloze]) -> int:
        scorer = TrieScorer(make("llama"), tokenizer)
        scorer.score(work)
        return scorer.counts.tokens

    few, more = candidates(40), candidates(41)
    before, after = (encode_many(tokenizer, work).asked for work in (few, more))
    assert fed(more) - fed(few) == unique_nodes(after) - unique_nodes(before)
    assert fed(few + few) == fed(few)


@pytest.mark.parametrize("kind", ["llama", "gptj"])
def test_the_same_set_gives_the_same_bytes_in_any_order(kind: str, tokenizer: PreTrainedTokenizerBase) -> None:
    scorer = TrieScorer(make(kind), tokenizer, max_tokens=200)
    first = dict(zip(clozes(), scorer.score(clozes()), strict=True))
    for seed in range(3):
        mixed = random.Random(seed).choices(clozes(), k=400) + clozes()
        assert dict(zip(mixed, scorer.score(mixed), strict=True)) == first


def test_what_is_asked_again_of_other_weights_is_laid_out_once(
    tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make("llama")
    kept, fresh = TrieScorer(model, tokenizer), TrieScorer(model, tokenizer)
    before = kept.score(clozes(3))
    with torch.no_grad():
        next(model.parameters()).mul_(0.5)
    after = fresh.score(clozes(3))
    for name in ("make_rows", "lay_out"):
        monkeypatch.setattr(f"seesaw_cf.scoring.trie_scorer.{name}", None)
    assert before != kept.score(clozes(3)[::-1])[::-1] == after


@pytest.mark.parametrize("kind", ["gpt2", "gemma3"])
def test_what_cannot_be_scored_says_why_as_the_plain_scorer_does(kind: str, tokenizer: PreTrainedTokenizerBase) -> None:
    model = make(kind)
    bad = [Cloze("Ada was", " "), Cloze("", "x"), Cloze("Ada was " * 80, "female"), Cloze("Ada was", "female")]
    tree, plain = TrieScorer(model, tokenizer).score(bad), HFScorer(model, tokenizer).score(bad)
    assert [s.status for s in tree] == [s.status for s in plain]
    assert tree[3].status == "ok"
    assert all(math.isnan(s.logprob) for s in tree[:3])
    with pytest.raises(PromptError, match="the context is '', expected text"):
        TrieScorer(model, tokenizer, strict=True).score(bad)


@pytest.mark.parametrize(
    ("kind", "window"), [("mistral", 12), ("gpt_neo", 12), ("gemma2", 12), ("gemma3_text", 12), ("gemma3", 12)]
)
def test_texts_longer_than_a_sliding_window_go_the_plain_way(
    kind: str, window: int, tokenizer: PreTrainedTokenizerBase
) -> None:
    changes: Any = {"window_size" if kind == "gpt_neo" else "sliding_window": window}
    model = make(kind, **changes)
    scorer = TrieScorer(model, tokenizer)
    lengths = {len(item.ids) for item in encode_many(tokenizer, clozes()).asked}
    assert min(lengths) <= window < max(lengths)
    assert worst(scorer.score(clozes()), HFScorer(model, tokenizer).score(clozes())) < 1e-4
    assert scorer.counts.tokens > 0


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("bloom", "takes no position_ids"),
        ("mpt", "takes no position_ids"),
        ("falcon_alibi", "ALiBi positions are counted along the sequence"),
    ],
)
def test_models_that_reject_tries_are_scored_plainly_and_say_so_once(
    kind: str, reason: str, tokenizer: PreTrainedTokenizerBase, caplog: pytest.LogCaptureFixture
) -> None:
    scorer = TrieScorer(make(kind), tokenizer)
    with caplog.at_level(logging.WARNING):
        scorer.score(clozes(1))
        scorer.score(clozes(2))
    assert [reason in message for message in caplog.messages] == [True]
    assert scorer.describe()["layout"] == "plain"
    assert reason in str(scorer.describe()["reason"])


def test_a_model_that_ignores_the_mask_is_found_out(
    tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make("llama", attention="eager")
    inner = model.model.forward

    def careless(*args: Any, attention_mask: Any = None, **kwargs: Any) -> Any:
        plain = attention_mask if attention_mask is not None and attention_mask.ndim == 2 else None
        return inner(*args, attention_mask=plain, **kwargs)

    monkeypatch.setattr(model.model, "forward", careless)
    scorer = TrieScorer(model, tokenizer)
    assert scorer.support.layout == "plain"
    assert "a trial differs by" in scorer.support.reason
    assert worst(scorer.score(clozes(2)), HFScorer(model, tokenizer).score(clozes(2))) == 0.0


def test_the_model_is_left_as_it_was(tokenizer: PreTrainedTokenizerBase) -> None:
    model = make("gpt2")
    before = {name: dict(part.__dict__) for name, part in model.named_modules()}
    TrieScorer(model, tokenizer).score(clozes(2))
    assert {name: dict(part.__dict__) for name, part in model.named_modules()} == before
    assert not any(part._forward_pre_hooks or part._forward_hooks for part in model.modules())


def test_the_scorer_of_a_run_is_chosen_by_name(tokenizer: PreTrainedTokenizerBase) -> None:
    scorer, record = make_scorer(make("llama"), tokenizer)
    assert isinstance(scorer, TrieScorer)
    assert record == {"scorer": "TrieScorer", "max_tokens": 3072, "layout": "packed", "reason": "", "device": "cpu"}
    plain, record = make_scorer(make("llama"), tokenizer, "plain", 99)
    assert isinstance(plain, HFScorer)
    assert record == {"scorer": "HFScorer", "max_tokens": 99, "device": "cpu"}
    assert make_scorer(make("bloom"), tokenizer)[1]["layout"] == "plain"
    with pytest.raises(UnsupportedModelError, match=r"BloomForCausalLM cannot be scored with tries: .*position_ids"):
        make_scorer(make("bloom"), tokenizer, "trie")
    with pytest.raises(UnknownNameError, match=r"unknown scorer 'tri'. Did you mean 'trie'"):
        make_scorer(make("llama"), tokenizer, "tri")


@pytest.mark.slow(120)
@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's compiler about its own functions
def test_a_model_with_flex_attention_is_scored_in_packed_tries(tokenizer: PreTrainedTokenizerBase) -> None:
    if shutil.which("c++") is None:
        pytest.skip("flex attention needs a C++ compiler on a CPU")
    model = make("llama")
    expected = TrieScorer(model, tokenizer).score(clozes(20))
    model.set_attn_implementation("flex_attention")
    assert TrieScorer(model, tokenizer).score(clozes(20)) == expected
