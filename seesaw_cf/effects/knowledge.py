"""What the unedited model knew: rank and share of an answer among candidates.

Known means: the right answer is first among the candidates that were asked, by more than rounding. That is less than
knowledge in general: another wording, or an answer that was not asked, may come before it.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.simple import BOUNDS, above


class Knowledge(TypedDict):
    """What a model knew of one fact; None where it is unknown.

    Attributes:
        n_candidates: Answers with a score.
        true_rank: Rank of the right answer, 1 = first; ties count against it.
        true_share: p(right) over the sum of the candidates' probabilities, in 0..1.
        known: The rank is 1.
    """

    n_candidates: int | None
    true_rank: int | None
    true_share: float | None
    known: bool | None


def gold_rank(logprobs: Floats, gold: NDArray[np.bool_], nats: float = BOUNDS["float32"]) -> int:
    """Return the rank of the best gold candidate: 1 when it beats every other candidate; ties count against it.

    Args:
        logprobs: (candidates,), nats.
        gold: (candidates,), which of them are true; at least one.
        nats: Log-probabilities no further apart than this are a tie, see `seesaw_cf.stats.simple`.
    """
    return 1 + int((~above(logprobs[gold].max(), logprobs[~gold], nats)).sum())


def gold_odds(logprobs: Floats, gold: NDArray[np.bool_]) -> float:
    """Return log of the gold candidates' probability over that of the rest, nats: the log-odds of their share.

    Args:
        logprobs: (candidates,), nats.
        gold: (candidates,), which of them are true.
    """
    return float(logsumexp(logprobs[gold]) - logsumexp(logprobs[~gold])) if gold.any() and not gold.all() else np.nan


def knowledge(logprobs: Floats, true: NDArray[np.bool_], nats: float = BOUNDS["float32"]) -> Knowledge:
    """Return rank and share of the right answer among candidates; a common factor of probabilities changes neither.

    Args:
        logprobs: (candidates,), nats, summed over target tokens; NaN where a candidate has no score, it is left out.
        true: (candidates,), which is right; exactly one.
        nats: See `gold_rank`.

    Returns:
        The numbers; all None when the right answer or every other one has no score.

    Raises:
        RecordError: Unequal lengths, or not exactly one right answer.
    """
    if len(logprobs) != len(true) or np.count_nonzero(true) != 1:
        raise RecordError(
            f"knowledge: {len(logprobs)} log-probabilities and right answers {shown(true.tolist())}; expected equal "
            "lengths and exactly one right answer."
        )
    scored = np.isfinite(logprobs)
    values, own = logprobs[scored], true[scored]
    if not own.any() or own.all():
        return {"n_candidates": None, "true_rank": None, "true_share": None, "known": None}
    rank = gold_rank(values, own, nats)
    share = float(np.exp(values[own][0] - logsumexp(values)))
    return {"n_candidates": len(values), "true_rank": rank, "true_share": share, "known": rank == 1}
