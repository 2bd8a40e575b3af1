"""Resampling whole clusters: the draws behind every interval.

One matrix of weights serves every group of a table, so that contrasts between groups keep their covariance and a table
costs two matrix products.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

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


def ratio_draws(weights: Floats, numerators: Floats, denominators: Floats) -> Floats:
    """Return the weighted ratio of sums in every bootstrap sample.

    Args:
        weights: (draws, clusters).
        numerators: (clusters, columns), the sum of values per cluster.
        denominators: (clusters, columns), the number of values per cluster.

    Returns:
        (draws, columns); NaN where a sample holds no value of that column.
    """
    if not weights.ndim == numerators.ndim == 2 or numerators.shape != denominators.shape:
        raise RecordError(f"ratio draws: shapes {weights.shape}, {numerators.shape}, {denominators.shape}.")
    check_rows("ratio draws", weights=weights.T, numerators=numerators)
    below = weights @ denominators
    ratios: Floats = np.divide(weights @ numerators, below, out=np.full(below.shape, np.nan), where=below > 0)
    return ratios


def interval(draws: Floats, level: float = LEVEL) -> tuple[float, float, float]:
    """Return percentile interval and standard error of one column of draws; NaN when all finite draws are one value."""
    checks.number("interval: level", level, 0, 1)
    finite = draws[np.isfinite(draws)]
    if finite.size < 2 or np.ptp(finite) <= 1e-12 * np.abs(finite).max():
        return _NONE  # always the same NaN, so that two estimates without an interval are equal
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high), float(finite.std(ddof=1))


def mean_interval(values: Floats, counts: Floats, draws: int, seed: int) -> tuple[float, float, float]:
    """Return the `interval` of a mean over clusters that are drawn whole.

    Args:
        values: (clusters,) the sum of values per cluster.
        counts: (clusters,) the number of values per cluster.
        draws, seed: Of the bootstrap.
    """
    weights = cluster_weights(len(values), draws, seed)
    return interval(ratio_draws(weights, values[:, None], counts[:, None])[:, 0])


def pigeonhole_draws(
    case: NDArray[np.intp],
    person: NDArray[np.intp],
    values: Floats,
    members: list[NDArray[np.intp]],
    *,
    draws: int,
    seed: int,
    chunk: int = 250,
) -> Floats:
    """Return means of case means in samples that resample edits and people independently (crossed bootstrap).

    A person drawn twice counts twice in every edit; an edit drawn twice counts twice for every person.

    Args:
        case, person: (n,) codes.
        values: (n,) finite values.
        members: Row numbers of every group.
        draws: Number of samples.
        seed: Seed of the generator.
        chunk: Samples at a time; only memory depends on it.

    Returns:
        (draws, groups); NaN where a sample has no member of a group.

    Source: Owen (2007), the pigeonhole bootstrap; mildly conservative for crossed random effects.
    """
    checks.whole("pigeonhole: chunk", chunk, 1)
    check_rows("pigeonhole", ("case", "person"), case=case, person=person, values=values)
    n_cases, n_people = int(case.max(initial=-1)) + 1, int(person.max(initial=-1)) + 1
    tables = [
        tuple(
            sparse.csr_array((data, (case[rows], person[rows])), shape=(n_cases, n_people))
            for data in (values[rows], np.ones(rows.size))
        )
        for rows in members
    ]
    edits = cluster_weights(n_cases, draws, seed)
    people_rng = np.random.default_rng([seed, 1])
    out = np.empty((draws, len(members)))
    for start in range(0, draws, chunk):
        stop = min(start + chunk, draws)
        counts = people_rng.multinomial(n_people, np.full(n_people, 1 / n_people), size=stop - start)
        people = np.ascontiguousarray(counts.T, dtype=np.float64)
        for column, (sums, ones) in enumerate(tables):
            n, top = np.asarray(ones @ people), np.asarray(sums @ people)
            means = np.divide(top, n, out=np.zeros_like(n), where=n > 0)
            weight = edits[start:stop].T * (n > 0)
            total = weight.sum(axis=0)
            weighted = (weight * means).sum(axis=0)
            out[start:stop, column] = np.divide(weighted, total, out=np.full(total.shape, np.nan), where=total > 0)
    return out
