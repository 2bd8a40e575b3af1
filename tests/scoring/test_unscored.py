"""What is not scored, and why; and what a score does not depend on: mode, and the neighbours of a text."""

import math
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from seesaw_cf.scoring import HFScorer, Scorer, TrieScorer
from seesaw_cf.types import Cloze
from tests.scoring.models import make
from tests.tokenizer_styles import byte_level

_SCORERS = (HFScorer, TrieScorer)
_WORDS = ["[UNK]", "ada", "was", "born", "in", "london", "paris", "malmo"]


def by_words() -> PreTrainedTokenizerBase:
    """A tokenizer of eight words, in lower case and without accents."""
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(_WORDS)}, unk_token="[UNK]"))
    steps = [normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()]
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Sequence(steps), pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")


@pytest.mark.parametrize("kind", _SCORERS)
def test_an_answer_that_the_tokenizer_does_not_know_is_not_scored(kind: type[HFScorer] | type[TrieScorer]) -> None:
    scorer = kind(make("llama"), by_words())
    known, unknown, strange = scorer.score([Cloze("Ada was born in", city) for city in ("London", "Oslo", "Paris Q")])
    assert known.status == "ok"
    for score in (unknown, strange):
        assert math.isnan(score.logprob)
        assert "the tokenizer does not know the answer (it becomes '[UNK]')" in score.status
        assert "Use another answer" in score.status


@pytest.mark.parametrize("kind", _SCORERS)
def test_scores_of_a_model_in_train_mode_are_those_of_eval_mode(kind: type[HFScorer] | type[TrieScorer]) -> None:
    clozes = [Cloze("Ada was born in", "London"), Cloze("The mother tongue of Ada is", "Polish")]
    model, tokenizer = make("gpt2"), byte_level(bos=False)
    expected = kind(model, tokenizer).score(clozes)
    model.train()
    model.transformer.h[0].eval()  # a mode of its own stays one
    assert kind(model, tokenizer).score(clozes) == expected
    assert [model.training, *(block.training for block in model.transformer.h)] == [True, False, True, True]


_ROPES = {"rope_type": "longrope", "rope_theta": 10_000.0, "factor": 4.0, "original_max_position_embeddings": 16}
_FACTORS = {"short_factor": [1.0] * 4, "long_factor": [1.0, 4.0, 9.0, 30.0]}
_SPARSE = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}
# What depends on the longest text of a pass from 17 tokens on: rotary frequencies, or the tokens that are looked at.
_LONG: dict[str, tuple[str, dict[str, Any]]] = {
    "longrope": ("llama", {"rope_parameters": _ROPES | _FACTORS}),
    "doge": ("doge", {"keep_window_size": 16}),
    "deepseek_v32": (
        "deepseek_v32",
        {**_SPARSE, "num_key_value_heads": 4, "index_topk": 16, "index_head_dim": 16, "index_n_heads": 2},
    ),
}


@pytest.mark.parametrize("name", _LONG)
@pytest.mark.parametrize("kind", _SCORERS)
def test_a_long_text_does_not_change_its_neighbours(kind: type[HFScorer] | type[TrieScorer], name: str) -> None:
    base, settings = _LONG[name]
    model, tokenizer = make(base, max_position_embeddings=64, **settings), byte_level(bos=False)
    short = [
        Cloze("Ada was born in", "London"),
        Cloze("Ada was born in", "Paris"),
        Cloze("Marie was born in", "London"),
    ]
    long = [Cloze("Ada was born in London and " * repeats + "in", "Paris") for repeats in (3, 4)]
    assert [len(tokenizer(cloze.context)["input_ids"]) > 16 for cloze in (*short, *long)] == [False] * 3 + [True] * 2
    together = _logprobs(kind(model, tokenizer), [*long, *short])
    alone = [_logprobs(HFScorer(model, tokenizer, 1), [cloze])[0] for cloze in (*long, *short)]
    torch.testing.assert_close(torch.tensor(together), torch.tensor(alone), rtol=0, atol=1e-4)


def _logprobs(scorer: Scorer, clozes: list[Cloze]) -> list[float]:
    return [score.logprob for score in scorer.score(clozes)]
