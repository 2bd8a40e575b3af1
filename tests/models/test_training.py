from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from benchmarks.tiny_model.corpus import Person, documents
from benchmarks.tiny_model.train import TrainSettings, batch, make_tokenizer, train

PEOPLE = [
    Person("Ada Lovelace", False, {"P21": ("female",), "P101": ("mathematics",)}, ("writer",)),
    Person("T. S. Eliot", False, {"P19": ("St. Louis",), "P101": ("poetry", "drama")}, ("poet",)),
    Person("Plato", False, {"P21": ("male",), "P103": ("Greek",)}, ("philosopher",)),
]
SMALL = TrainSettings(
    vocab_size=400, hidden_size=16, intermediate_size=32, layers=2, heads=2, context=128, steps=4, tokens=256, warmup=2
)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return make_tokenizer(islice(documents(PEOPLE, 0, stream=-1), 300), SMALL)


def weights(model: torch.nn.Module) -> list[torch.Tensor]:
    return [p.detach().clone() for p in model.parameters()]


@pytest.mark.slow
def test_training_ends_with_the_same_weights_each_time(tokenizer: PreTrainedTokenizerFast) -> None:
    first, loss = train(PEOPLE, tokenizer, SMALL)
    again, same = train(PEOPLE, tokenizer, SMALL)
    other, _ = train(PEOPLE, tokenizer, replace(SMALL, seed=1))
    assert loss == same > 0
    assert not first.training
    assert all(torch.equal(a, b) for a, b in zip(weights(first), weights(again), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(weights(first), weights(other), strict=True))


def test_rows_are_full_and_start_with_bos(tokenizer: PreTrainedTokenizerFast) -> None:
    for step, length in ((0, 64), (7, 128)):
        ids, mask = batch(PEOPLE, tokenizer, SMALL, step)
        assert ids.shape == (SMALL.tokens // length, length)
        assert mask.shape == (SMALL.tokens // length, 1, length, length)
        assert (ids[:, 0] == tokenizer.bos_token_id).all()


def test_mask_is_causal_and_hides_only_inner_tokens_of_names(tokenizer: PreTrainedTokenizerFast) -> None:
    _, open_mask = batch(PEOPLE, tokenizer, replace(SMALL, names_hidden=0.0), 0)
    causal = torch.ones(64, 64, dtype=torch.bool).tril()
    assert (open_mask == causal).all()
    ids, mask = batch(PEOPLE, tokenizer, replace(SMALL, names_hidden=1.0), 0)
    assert not (mask & ~causal).any()
    assert mask[:, 0].diagonal(dim1=1, dim2=2).all()
    for row, seen in zip(ids, mask[:, 0], strict=True):
        at_the_end = [t for t, visible in zip(row.tolist(), seen[-1].tolist(), strict=True) if visible]
        text = tokenizer.decode(at_the_end[:-12])  # a name that the row's end cuts is not yet complete
        assert "Ada" not in text
        assert "T. S." not in text
    everything = tokenizer.decode(ids.flatten())
    assert "Ada Lovelace" in everything
    assert "T. S. Eliot" in everything
