"""A real, tiny text classifier on the disk, and scorers of known opinions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from transformers import BertConfig, BertForSequenceClassification

from seesaw_cf.effects.regard import REGARDS
from seesaw_cf.texts.graph.scores import SentenceScore, SentenceScorer
from tests.fakes import tiny_tokenizer


def save_classifier(folder: Path, labels: Sequence[str] = REGARDS) -> Path:
    """A random BERT of one layer with these labels."""
    tokenizer = tiny_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=128,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertForSequenceClassification(config)
        model.classifier.weight.data.normal_(0, 3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def known_regard(label: Callable[[str], str]) -> SentenceScorer:
    """Says what it is told to of a sentence."""
    values = {"positive": 1.0, "negative": -1.0}

    def score(texts: Sequence[str]) -> list[SentenceScore]:
        return [SentenceScore(values.get(name, 0.0), name) for name in map(label, texts)]

    return SentenceScorer("known regard", score)


def known_attack(value: Callable[[str], float | None]) -> SentenceScorer:
    """Says what it is told to of a sentence; None = no score."""

    def score(texts: Sequence[str]) -> list[SentenceScore]:
        return [SentenceScore(v, status="ok" if v is not None else "time-out") for v in map(value, texts)]

    return SentenceScorer("known attack", score)
