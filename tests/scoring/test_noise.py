"""The noise floor: rounding in float32 is far below an edit's effect, in bfloat16 it is not."""

import json
import math
from collections.abc import Sequence

import pytest
import torch
from transformers import PreTrainedTokenizerBase

from seesaw_cf.run.questions import sample_clozes
from seesaw_cf.scoring import HFScorer, TrieScorer
from seesaw_cf.scoring.noise import measure_noise
from seesaw_cf.types import Cloze, ClozeScore
from tests.runner import small
from tests.scoring.models import make
from tests.scoring.work import clozes


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_spread_over_batch_shapes(tokenizer: PreTrainedTokenizerBase, dtype: torch.dtype) -> None:
    """Rounding, and no more; some processors add up alike in every shape, and then there is next to none.

    n roundings move a number by 4 * sqrt(n) * eps / 2 of its size at most (Higham and Mary 2019, but for a chance of
    e^-8), and about 50 lie between the embedding and a score.
    """
    scorer = TrieScorer(make("llama", dtype=dtype), tokenizer)
    noise = measure_noise(scorer, clozes(3))
    size = max(abs(score.logprob) for score in scorer.score(clozes(3)))
    assert 0 <= noise.rms <= noise.max < 2 * math.sqrt(50) * torch.finfo(dtype).eps * size
    assert noise.n == len(clozes(3))
    assert noise.shapes == ("as it is", "in two halves", "one sequence each", "one of 2 edits")
    assert json.loads(json.dumps(noise.record()))["rms"] == noise.rms


class _Uneven:
    """In batches of fewer than 101, the score of cloze k is k hundredths of a nat less, and cloze 100 is greedy."""

    def score(self, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        numbers, less = [int(cloze.target) for cloze in clozes], len(clozes) < 101
        return [ClozeScore(-1 - less * k / 100, n_tokens=1, greedy=less and k == 100) for k in numbers]


def test_spread_by_hand() -> None:
    """Spreads of 0, 0.01, ..., 1: 99 % of the 101 clozes move by 0.99 at most; root mean square of two shapes."""
    noise = measure_noise(_Uneven(), [Cloze("The number is", str(k)) for k in range(101)])
    assert (noise.n, noise.shapes, noise.flips) == (101, ("as it is", "in two halves"), 1)
    assert noise.rms == pytest.approx(math.sqrt(sum(k * k for k in range(101)) / 101) / 100)
    assert (noise.p99, noise.max) == pytest.approx((0.99, 1.0))
    assert noise.p99_probability == pytest.approx(math.exp(-1) - math.exp(-1.99))


def test_a_scorer_without_batches_has_no_noise(tokenizer: PreTrainedTokenizerBase) -> None:
    noise = measure_noise(HFScorer(make("llama", dtype=torch.bfloat16), tokenizer, 1), clozes(3))
    assert (noise.rms, noise.max, noise.flips, noise.n) == (0.0, 0.0, 0, len(clozes(3)))


def test_clozes_are_drawn_without_replacement_by_seed() -> None:
    everything = sample_clozes(small.cases(), 10_000)
    assert len(set(everything)) == len(everything) > 20
    assert sample_clozes(small.cases(), 20, seed=1) == sample_clozes(small.cases(), 20, seed=1)
    assert sample_clozes(small.cases(), 20, seed=1) != sample_clozes(small.cases(), 20, seed=2)
