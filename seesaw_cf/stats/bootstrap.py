"""Resampling whole clusters: the draws behind every interval.

One matrix of weights serves every group of a table, so that contrasts between groups keep their covariance and a table
costs two matrix products.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError

# Arrays that describe the same rows.


def check_rows(where: str, codes: Collection[str] = (), **arrays: NDArray[np.generic]) -> None:
    """Refuse arrays that cannot describe the same rows.

    Args:
        where: For the message.
        codes: Names of those that count clusters from 0.
        **arrays: Name -> (n, ...) array.

    Raises:
        RecordError: Unequal lengths, or a code below 0.
    """
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise RecordError(f"{where}: lengths {lengths}; expected one entry per row in each.")
    for name in codes:
        if arrays[name].size and arrays[name].min() < 0:
            raise RecordError(f"{where}: {name} has {arrays[name].min()}, expected codes that count from 0.")


Floats = NDArray[np.float64]
LEVEL = 0.95
_NONE = (float("nan"),) * 3


def cluster_weights(n_clusters: int, draws: int, seed: int) -> Floats:
    """Return how often each cluster is drawn in each bootstrap sample.

    Args:
        n_clusters: Number of clusters (cases, people).
        draws: Number of bootstrap samples.
        seed: Seed of the generator.

    Returns:
        Counts of shape (draws, n_clusters); each row sums to n_clusters.

    Raises:
        RecordError: No cluster is given, or draws or seed are outside what `seesaw_cf.base.checks` allows.

    Source: Efron and Tibshirani (1993), chapter 6; clusters are the resampling unit (Cameron, Gelbach, Miller 2008).
    """
    checks.whole("bootstrap: clusters", n_clusters, 1)
    checks.draws("bootstrap: draws", draws)
    rng = np.random.default_rng(checks.seed("bootstrap: seed", seed))
    return rng.multinomial(n_clusters, np.full(n_clusters, 1 / n_clusters), size=draws).astype(np.float64)


def interval(draws: Floats) -> tuple[float, float, float]:
    """Return percentile interval and standard error of one column of draws; NaN when all finite draws are one value."""
    finite = draws[np.isfinite(draws)]
    if finite.size < 2 or np.ptp(finite) <= 1e-12 * np.abs(finite).max():
        return _NONE  # always the same NaN, so that two estimates without an interval are equal
    low, high = np.quantile(finite, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high), float(finite.std(ddof=1))


def mean_interval(values: Floats, counts: Floats, draws: int, seed: int) -> tuple[float, float, float]:
    """Return the `interval` of a mean over clusters that are drawn whole.

    Args:
        values: (clusters,) the sum of values per cluster.
        counts: (clusters,) the number of values per cluster.
        draws, seed: Of the bootstrap.
    """
    weights = cluster_weights(len(values), draws, seed)
    below = weights @ counts
    return interval(np.divide(weights @ values, below, out=np.full(draws, np.nan), where=below > 0))
