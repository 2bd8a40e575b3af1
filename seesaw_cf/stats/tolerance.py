"""Which differences of scores are rounding: one limit per run, in nats, for every "more likely than".

The same text scored in another batch differs in its last digits. Two log-probabilities that are closer than the limit
are a tie: neither is raised, neither wins, and the tie is counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

BOUNDS: dict[str, float] = {"float64": 1e-9, "float32": 1e-4, "float16": 0.05, "bfloat16": 0.2}
"""Nats by which two scores of a text may differ where nothing was measured: the engine's own bound in float32
(docs/engine.md), and for the others that of their digits against float32's, rounded up for float64, down for the
short types, whose noise every run measures."""


def tolerance(manifest: Mapping[str, Any]) -> tuple[float, str]:
    """The limit of a run and where it comes from.

    Args:
        manifest: The run's `manifest.json`: twice the largest spread in `machine["noise"]` (a difference has two
            scores), or else the bound for the dtype of its weights.

    Returns:
        Nats, and "measured" or "bound for float32" (or another dtype; float32's when none is named).
    """
    largest = ((manifest.get("machine") or {}).get("noise") or {}).get("max")
    if isinstance(largest, (int, float)) and math.isfinite(largest):
        return 2 * float(largest), "measured"
    dtype = str((manifest.get("model") or {}).get("dtype", "")).removeprefix("torch.")
    dtype = dtype if dtype in BOUNDS else "float32"
    return BOUNDS[dtype], f"bound for {dtype}"


def above(first: ArrayLike, second: ArrayLike, nats: float) -> NDArray[np.bool_]:
    """Whether log-probabilities are higher than others by more than rounding; NaN is not.

    Args:
        first, second: Log-probabilities, nats, of shapes that broadcast.
        nats: The limit, see `tolerance`; a difference of exactly 0 is never above.
    """
    return np.asarray(np.subtract(first, second, dtype=np.float64) > max(nats, 0.0))


def tied(first: ArrayLike, second: ArrayLike, nats: float) -> NDArray[np.bool_]:
    """Whether log-probabilities are within rounding of others; NaN is not."""
    return np.asarray(np.abs(np.subtract(first, second, dtype=np.float64)) <= max(nats, 0.0))
