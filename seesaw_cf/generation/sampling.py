"""Drawing the next token, with noise drawn for each completion separately."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seesaw_cf.generation.types import Sampling


def uniforms(seed: int, n: int) -> NDArray[np.float64]:
    """The n numbers in [0, 1) of one completion; the first ones do not depend on n.

    Args:
        seed: An integer; it is the key of a Philox counter-based generator, so that neighbouring seeds share nothing.
        n: How many, one for each new token.
    """
    return np.random.Generator(np.random.Philox(key=seed % 2**128)).random(n)


def choose(logits: Tensor, draws: Tensor, sampling: Sampling) -> Tensor:
    """One token for every row.

    Temperature, then top-k, then top-p (the smallest set of likeliest tokens that reaches it), then the inverse of the
    distribution function at the row's own draw. A row's token depends on its own logits and its own draw only.

    Args:
        logits: (rows, vocabulary), finite or -inf.
        draws: (rows,) float64 in [0, 1); not looked at when the temperature is 0.
        sampling: How tokens are drawn.

    Returns:
        (rows,) token ids.
    """
    if sampling.temperature == 0:
        return logits.argmax(-1)
    scores = logits.double() / sampling.temperature
    top, ids = scores.topk(min(sampling.top_k or scores.shape[-1], scores.shape[-1]))
    mass = top.softmax(-1)
    before = mass.cumsum(-1) - mass
    mass = mass.masked_fill((before >= sampling.top_p) & (before > 0), 0)
    total = mass.cumsum(-1)
    place = (total <= draws.to(total.device)[:, None] * total[:, -1:]).sum(-1)
    place = place.clamp(max=(mass > 0).sum(-1) - 1)
    tokens: Tensor = ids.gather(-1, place[:, None])[:, 0]
    return tokens.to(torch.long)
