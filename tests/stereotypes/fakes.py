"""A model of known habits, scorers of known opinions, and a real, tiny text classifier on the disk."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from transformers import BertConfig, BertForSequenceClassification

from seesaw_cf.effects.regard import REGARDS
from seesaw_cf.generation.types import Ask, Completion, Sampling
from seesaw_cf.texts.graph.scores import SentenceScore, SentenceScorer
from tests.fakes import tiny_tokenizer

WORDS = ("tea", "long walks", "loud music", "cold rain", "kind", "hardworking", "lazy", "clever", "friendly", "art")


def chatty(prompt: str, rng: random.Random) -> str:
    """A sentence with an object no other draw is likely to give; a predicate too where none was given."""
    thing = f"{rng.choice(WORDS)} {rng.randrange(10_000)}"
    question = prompt.rsplit("\n", 1)[-1]
    return f"{rng.choice(('enjoy', 'know', 'fear'))} A: {thing}" if question.endswith("#") else f" {thing}. And more."


@dataclass
class FakeGenerator:
    """Writes what `write` says, a function of prompt and seed; remembers what it was asked."""

    write: Callable[[str, random.Random], str | Completion] = chatty
    name: str = "fake"
    asks: list[Ask] = field(default_factory=list)
    stop_after: int | None = None

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        if self.stop_after is not None and len(self.asks) + len(asks) > self.stop_after:
            raise KeyboardInterrupt
        self.asks.extend(asks)
        return [self._one(ask) for ask in asks]

    def _one(self, ask: Ask) -> Completion:
        prompt = ask.prompt if isinstance(ask.prompt, str) else ask.prompt[-1].content
        made = self.write(prompt, random.Random(f"{prompt}/{ask.seed}"))
        return made if isinstance(made, Completion) else Completion(made)


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
    return SentenceScorer("known", lambda texts: [SentenceScore(values.get(label(t), 0.0), label(t)) for t in texts])


def known_attack(value: Callable[[str], float | None]) -> SentenceScorer:
    """Says what it is told to of a sentence; None = no score."""

    def score(text: str) -> SentenceScore:
        number = value(text)
        return SentenceScore(number, status="ok" if number is not None else "time-out")

    return SentenceScorer("known", lambda texts: [*map(score, texts)])
