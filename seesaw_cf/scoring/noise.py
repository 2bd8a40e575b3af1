"""How much a score moves when nothing but the shape of the batch changes: effects below that cannot be claimed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from seesaw_cf.base.types import Cloze, JsonObject
from seesaw_cf.models.architectures import transformer_blocks
from seesaw_cf.models.weights import LowRank, WeightDelta
from seesaw_cf.scoring.edited_scorer import EditedScorer
from seesaw_cf.scoring.hf_scorer import HFScorer, Scorer
from seesaw_cf.scoring.trie_scorer import TrieScorer


@dataclass(frozen=True, slots=True)
class Noise:
    """Spread of log p over batch shapes, in nats, of one model that is not edited.

    Attributes:
        n: Clozes.
        shapes: Ways of batching that were compared.
        rms: Root mean square over clozes and pairs of shapes of the difference: the standard deviation of a
            "pre against pre" difference.
        p99: 99th percentile over clozes of the largest difference.
        p99_probability: The same percentile of the difference in probability.
        max: Largest difference.
        flips: Clozes with a `greedy` that differs between shapes.
    """

    n: int
    shapes: tuple[str, ...]
    rms: float
    p99: float
    p99_probability: float
    max: float
    flips: int

    def record(self) -> JsonObject:
        """Return it as the run's manifest keeps it: None in the place of NaN."""
        values = {name: None if value != value else value for name, value in asdict(self).items()}
        return {**values, "shapes": list(self.shapes)}


def measure_noise(scorer: Scorer, clozes: Sequence[Cloze], seed: int = 0) -> Noise:
    """Score the same clozes in the ways in which a run asks them, and compare: together, in halves, beside edits.

    Args:
        scorer: The scorer to measure. A `TrieScorer` is also compared with one sequence at a time, its fallback,
            and with itself next to other edits, as after an edit. An `HFScorer` with one token in a pass ("single")
            has no batches, and no noise.
        clozes: What to score; unscorable ones are left out.
        seed: Draws the halves that are scored apart.

    Returns:
        The spread; `n` may be 0, then the numbers are NaN.
    """
    work = sorted(set(clozes))
    chosen = np.random.default_rng(seed).random(len(work)) < 0.5
    runs = {"as it is": scorer.score(work)}
    halves = {side: scorer.score([cloze for cloze, own in zip(work, chosen) if own == side]) for side in (True, False)}
    parts = {side: iter(scores) for side, scores in halves.items()}
    runs["in two halves"] = [next(parts[bool(side)]) for side in chosen]
    if isinstance(scorer, TrieScorer):
        runs["one sequence each"] = HFScorer(scorer.model, scorer.tokenizer, 2 * scorer.tokens_per_pass).score(work)
        if (nothing := _nothing(scorer.model)) is not None:
            runs["one of 2 edits"] = EditedScorer(scorer, "together").score([(nothing, work)] * 2)[0]
    logprobs = np.array([[score.logprob for score in scores] for scores in runs.values()]).reshape(len(runs), -1)
    good = np.isfinite(logprobs).all(0)
    greedy = np.array([[score.greedy for score in scores] for scores in runs.values()]).reshape(len(runs), -1)
    values = logprobs[:, good]
    if not values.size:
        nan = float("nan")
        return Noise(0, tuple(runs), rms=nan, p99=nan, p99_probability=nan, max=nan, flips=0)
    first, second = np.triu_indices(len(runs), 1)
    spread = values.max(0) - values.min(0)
    return Noise(
        int(good.sum()),
        tuple(runs),
        float(np.sqrt(np.mean((values[first] - values[second]) ** 2))),
        float(np.percentile(spread, 99)),
        float(np.percentile(np.exp(values.max(0)) - np.exp(values.min(0)), 99)),
        float(spread.max()),
        int((greedy[:, good].min(0) != greedy[:, good].max(0)).sum()),
    )


def _nothing(model: PreTrainedModel) -> WeightDelta | None:
    """Return an edit of the middle block that changes nothing; None where no linear layer is found there."""
    blocks = transformer_blocks(model)
    if blocks is None:
        return None
    names = {module: name for name, module in model.named_modules()}
    linear = [part for part in blocks[len(blocks) // 2].modules() if isinstance(part, (nn.Linear, Conv1D))]
    if not linear:
        return None
    rows, columns = linear[-1].weight.shape
    return WeightDelta({f"{names[linear[-1]]}.weight": LowRank(torch.zeros(rows, 1), torch.zeros(1, columns))})
