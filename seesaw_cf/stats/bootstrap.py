"""Resampling whole clusters: the draws behind every interval.

One matrix of weights serves every group of a table, so that contrasts between groups keep their covariance and a table
costs two matrix products.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEVEL", "Floats", "cluster_weights", "interval", "ratio_draws"]

Floats = NDArray[np.float64]
LEVEL = 0.95


def cluster_weights(n_clusters: int, draws: int, seed: int) -> Floats:
    """How often each cluster is drawn in each bootstrap sample.

    Args:
        n_clusters: Number of clusters (cases, people).
        draws: Number of bootstrap samples.
        seed: Seed of the generator.

    Returns:
        Counts of shape (draws, n_clusters); each row sums to n_clusters.

    Source: Efron and Tibshirani (1993), chapter 6; clusters are the resampling unit (Cameron, Gelbach, Miller 2008).
    """
    rng = np.random.default_rng(seed)
    return rng.multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), size=draws).astype(np.float64)


def ratio_draws(weights: Floats, numerators: Floats, denominators: Floats) -> Floats:
    """The weighted ratio of sums in every bootstrap sample.

    Args:
        weights: (draws, clusters).
        numerators: (clusters, columns), the sum of values per cluster.
        denominators: (clusters, columns), the number of values per cluster.

    Returns:
        (draws, columns); NaN where a sample holds no value of that column.
    """
    below = weights @ denominators
    ratios: Floats = np.divide(weights @ numerators, below, out=np.full(below.shape, np.nan), where=below > 0)
    return ratios


def interval(draws: Floats, level: float = LEVEL) -> tuple[float, float, float]:
    """Percentile interval and standard error of one column of draws; NaN when fewer than two draws are finite."""
    finite = draws[np.isfinite(draws)]
    if finite.size < 2:
        return float("nan"), float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high), float(finite.std(ddof=1))
