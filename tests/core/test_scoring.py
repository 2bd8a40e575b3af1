"""The scorer's laws: verified boundary, chain rule, and nothing but the cloze itself changes a score."""

import itertools
import math
import random

import pytest
import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerBase

from seesaw_cf.errors import PromptError
from seesaw_cf.scoring import HFScorer, encode_cloze
from seesaw_cf.types import Cloze
from tests.runner import small
from tests.tokenizer_styles import STYLES

CLOZES = [
    Cloze(context, target)
    for context, target in itertools.product(
        ("Ada Lovelace was born in", "Zora Neale Hurston's gender was", "The mother tongue of Marie Curie was", "X"),
        ("London", "female", "the United States of America", "Kraków", "東京"),
    )
]


@pytest.fixture(scope="module", params=STYLES)
def tokenizer(request: pytest.FixtureRequest) -> PreTrainedTokenizerBase:
    return STYLES[request.param]()


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    return small.model(vocab_size=600, width=32)


def _by_hand(model: LlamaForCausalLM, ids: tuple[int, ...], start: int) -> float:
    """Sum of log p(token | everything before it), one forward pass for each target token, no batch, no padding."""
    total = 0.0
    for place in range(start, len(ids)):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids[:place]])).logits[0, -1]
        total += float(logits.double().log_softmax(-1)[ids[place]])
    return total


def test_the_chain_rule_holds(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase) -> None:
    for cloze, score in zip(CLOZES, HFScorer(model, tokenizer).score(CLOZES), strict=True):
        ids, start = encode_cloze(tokenizer, cloze)
        assert score.status == "ok"
        assert score.n_tokens == len(ids) - start
        assert score.logprob == pytest.approx(_by_hand(model, ids, start), abs=1e-5)


def test_batch_size_order_duplicates_and_padding_change_nothing(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase
) -> None:
    alone = {cloze: HFScorer(model, tokenizer).score([cloze])[0] for cloze in CLOZES}
    for size, seed in itertools.product((1, 40, 100_000), (0, 1)):
        asked = random.Random(seed).sample(CLOZES * 2, 2 * len(CLOZES))
        for cloze, score in zip(asked, HFScorer(model, tokenizer, max_tokens=size).score(asked), strict=True):
            assert score.logprob == pytest.approx(alone[cloze].logprob, abs=1e-5)
            assert (score.n_tokens, score.n_greedy) == (alone[cloze].n_tokens, alone[cloze].n_greedy)
            assert score.greedy == (score.n_greedy == score.n_tokens)


def test_targets_are_decoded_back(tokenizer: PreTrainedTokenizerBase) -> None:
    """The published Llama scores are of a lone space token; here the ids after the boundary spell the target."""
    for cloze in CLOZES:
        ids, start = encode_cloze(tokenizer, cloze)
        assert str(tokenizer.decode(list(ids[start:]))).strip() == cloze.target
        assert str(tokenizer.decode(list(ids[:start]))).removeprefix("<s>").strip() == cloze.context


def test_bos_is_put_first_exactly_when_the_tokenizer_does() -> None:
    cloze = CLOZES[0]
    plain, bos = (encode_cloze(STYLES[name](), cloze) for name in ("byte_level", "byte_level_bos"))
    assert bos.ids == (1, *plain.ids)
    assert bos.start == plain.start + 1


def test_greedy_says_whether_every_token_is_the_most_likely(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase
) -> None:
    cloze = CLOZES[0]
    ids, start = encode_cloze(tokenizer, cloze)
    with torch.no_grad():
        best = model(input_ids=torch.tensor([ids])).logits[0].argmax(-1).tolist()
    expected = all(best[place - 1] == ids[place] for place in range(start, len(ids)))
    score = HFScorer(model, tokenizer).score([cloze])[0]
    assert score.greedy == expected
    assert score.first == tuple(best[start - 1 : -1])


@pytest.mark.parametrize(
    ("cloze", "message"),
    [
        (Cloze("Ada was", ""), "the target is '', expected text"),
        (Cloze("Ada was", "  "), "the target is '  '"),
        (Cloze("", "female"), "the context is '', expected text"),
        (Cloze("Ada was " * 40, "female"), "but the model's context holds 64"),
    ],
)
def test_what_cannot_be_scored_says_why(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerBase, cloze: Cloze, message: str
) -> None:
    good, bad, _ = HFScorer(model, tokenizer).score([CLOZES[0], cloze, CLOZES[1]])
    assert good.status == "ok"
    assert message in bad.status
    assert math.isnan(bad.logprob)
    with pytest.raises(PromptError) as caught:
        HFScorer(model, tokenizer, strict=True).score([cloze])
    assert message in str(caught.value)


def test_tokens_that_merge_across_the_boundary_are_shown() -> None:
    """A target that brings no space and continues the last word: "Lon" + "don" has no boundary in tokens."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    merging = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE({"a": 0, " ": 1, "b": 2, "a ": 3, "a b": 4}, [("a", " "), ("a ", "b")])),
        eos_token="b",
    )
    with pytest.raises(PromptError, match=r"merge across the boundary.*Context alone: \['a'\]; whole: \['a ', 'b'\]"):
        encode_cloze(merging, Cloze("a", "b"))
