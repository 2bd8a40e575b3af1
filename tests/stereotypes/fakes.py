"""A model of known habits: what it writes is a function of prompt and seed, as the interface promises."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from seesaw_cf.generation.types import Ask, Completion, Sampling

WORDS = ("tea", "long walks", "loud music", "cold rain", "kind", "hardworking", "lazy", "clever", "friendly", "art")


def chatty(prompt: str, rng: random.Random) -> str:
    """A sentence with an object no other draw is likely to give; a predicate too where none was given."""
    thing = f"{rng.choice(WORDS)} {rng.randrange(10_000)}"
    question = prompt.rsplit("\n", 1)[-1]
    return f"{rng.choice(('enjoy', 'know', 'fear'))} A: {thing}" if question.endswith("#") else f" {thing}. And more."


@dataclass
class FakeGenerator:
    """Writes what `write` says; remembers what it was asked."""

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
