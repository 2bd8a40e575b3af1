"""How much a score moves when nothing but the shape of the batch changes: effects below that cannot be claimed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.scoring.hf import HFScorer, Scorer
from seesaw_cf.scoring.tree import TrieScorer
from seesaw_cf.types import Cloze

__all__ = ["Noise", "measure_noise"]


@dataclass(frozen=True, slots=True)
class Noise:
    """Spread of log p over batch shapes, in nats, of one model that is not edited.

    Attributes:
        n: Clozes.
        shapes: Ways of batching that were compared.
        rms: Root mean square over clozes and pairs of shapes of the difference: the standard deviation of a
            "pre against pre" difference.
        p99: 99th percentile over clozes of the largest difference.
        max: Largest difference.
        flips: Clozes whose `greedy` is not the same in all shapes.
    """

    n: int
    shapes: tuple[str, ...]
    rms: float
    p99: float
    max: float
    flips: int

    def record(self) -> dict[str, Any]:
        """As the run's manifest keeps it."""
        return {**asdict(self), "shapes": list(self.shapes)}

    def __str__(self) -> str:
        return (
            f"{self.n} clozes in {len(self.shapes)} batch shapes: a score moves by {self.rms:.2g} nats (rms), "
            f"{self.p99:.2g} (99 % of clozes below), {self.max:.2g} at most; greedy answers that change: {self.flips}"
        )


def measure_noise(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, clozes: Sequence[Cloze], seed: int = 0
) -> Noise:
    """Scores the same clozes in several batch shapes and compares.

    Args:
        model: In eval mode.
        tokenizer: Its tokenizer.
        clozes: What to score; unscorable ones are left out.
        seed: Draws the halves that are scored apart.

    Returns:
        The spread; `n` may be 0, then the numbers are NaN.
    """
    work = sorted(set(clozes))
    trie = TrieScorer(model, tokenizer)
    scorers: dict[str, Scorer] = {
        f"tries, {size} tokens": replace(trie, max_tokens=size) for size in (64, 256, trie.tokens_per_pass)
    } | {f"one sequence each, {size} tokens": HFScorer(model, tokenizer, size) for size in (1, 256, 2048)}
    chosen = np.random.default_rng(seed).random(len(work)) < 0.5
    found = {name: scorer.score(work) for name, scorer in scorers.items()}
    halves = {side: trie.score([cloze for cloze, own in zip(work, chosen) if own == side]) for side in (True, False)}
    parts = {side: iter(scores) for side, scores in halves.items()}
    found["tries, in two halves"] = [next(parts[bool(side)]) for side in chosen]
    logprobs = np.array([[score.logprob for score in scores] for scores in found.values()]).reshape(len(found), -1)
    good = np.isfinite(logprobs).all(0)
    greedy = np.array([[score.greedy for score in scores] for scores in found.values()]).reshape(len(found), -1)
    values = logprobs[:, good]
    if not values.size:
        return Noise(0, tuple(found), float("nan"), float("nan"), float("nan"), 0)
    first, second = np.triu_indices(len(found), 1)
    spread = values.max(0) - values.min(0)
    return Noise(
        int(good.sum()),
        tuple(found),
        float(np.sqrt(np.mean((values[first] - values[second]) ** 2))),
        float(np.percentile(spread, 99)),
        float(spread.max()),
        int((greedy[:, good].min(0) != greedy[:, good].max(0)).sum()),
    )
