"""Agreement as sums over items, so that leaving each item out in turn costs as much as one matrix.

Every coefficient is a function of something that is added up over items: a table of two annotators' labels,
Krippendorff's coincidences. Without an item the sums are those of all minus its part.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from seesaw_cf.stats.bootstrap import Floats

Figure = Callable[[Floats], Floats]
"""Sums of shape (samples, columns) -> one value per sample."""
Parts = Callable[[Floats, Floats], sparse.csr_array]
"""(items, annotators) labels and the (values,) that they can have -> what each item adds, (items, columns)."""


def _labels(table: Floats, values: Floats) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return (items, annotators) indices into the values, and where there is a label."""
    there = ~np.isnan(table)
    return np.searchsorted(values, np.where(there, table, values[:1].sum())).astype(np.intp), there


def label_pairs(table: Floats, values: Floats) -> sparse.csr_array:
    """Return, per item, the cell of two annotators' table of labels that it falls into, (items, values squared)."""
    at, there = _labels(table, values)
    rows = np.flatnonzero(there.all(axis=1))
    cells = at[rows, 0] * values.size + at[rows, 1]
    return sparse.csr_array((np.ones(rows.size), (rows, cells)), shape=(len(table), values.size**2))


def kappa_of(sums: Floats) -> Floats:
    """Return Cohen's kappa of two annotators' tables, unweighted; NaN when chance agreement is 1."""
    table = _square(sums)
    total = table.sum(axis=(1, 2))
    agree = _ratio(np.trace(table, axis1=1, axis2=2), total)
    chance = _ratio((table.sum(axis=1) * table.sum(axis=2)).sum(axis=1), total**2)
    return _beyond(agree, chance)


def fleiss_counts(table: Floats, values: Floats) -> sparse.csr_array:
    """Return, per item that all labelled, the shares of labels and of agreeing pairs, (items, values + 1)."""
    at, there = _labels(table, values)
    whole = np.asarray(there.all(axis=1))
    counts = np.zeros((len(table), values.size))
    complete = there & whole[:, None]
    np.add.at(counts, (np.nonzero(complete)[0], at[complete]), 1.0)
    n = table.shape[1]
    pairs = np.where(whole, (counts**2).sum(axis=1) - n, 0.0) / (n * (n - 1))
    return sparse.csr_array(np.column_stack([counts / n, pairs]))


def fleiss_of(sums: Floats) -> Floats:
    """Return Fleiss' kappa; NaN when chance agreement is 1."""
    counts, n_items = sums[:, :-1], sums[:, :-1].sum(axis=1)
    return _beyond(_ratio(sums[:, -1], n_items), _ratio((counts**2).sum(axis=1), n_items**2))


def coincidences(table: Floats, values: Floats) -> sparse.csr_array:
    """Return Krippendorff's coincidences of each item, (items, values squared)."""
    at, there = _labels(table, values)
    rows, cells, shares = [], [], []
    for first in range(table.shape[1]):
        for other in range(table.shape[1]):
            common = np.flatnonzero(there[:, first] & there[:, other]) if first != other else np.empty(0, np.intp)
            rows.append(common)
            cells.append(at[common, first] * values.size + at[common, other])
            shares.append(1.0 / (there[common].sum(axis=1) - 1))
    placed = (np.concatenate(shares), (np.concatenate(rows), np.concatenate(cells)))
    return sparse.csr_array(placed, shape=(len(table), values.size**2))


def alpha_of(level: str, values: Floats) -> Figure:
    """Return the function from coincidences to Krippendorff's alpha; NaN without two different labels to pair.

    Source: Krippendorff (2011).
    """
    scaled = np.ldexp(values, -np.frexp(np.abs(values).max(initial=0.0))[1])

    def alpha(sums: Floats) -> Floats:
        table = _square(sums)
        counts = table.sum(axis=2)
        if level == "nominal":
            far = np.broadcast_to(1.0 - np.eye(values.size), table.shape)
        elif level == "interval":
            far = np.broadcast_to((scaled[:, None] - scaled) ** 2, table.shape)
        else:
            upto = np.cumsum(counts, axis=1) - counts / 2
            far = (upto[:, :, None] - upto[:, None, :]) ** 2
        seen = (table * far).sum(axis=(1, 2))
        by_chance = np.einsum("ni,nij,nj->n", counts, far, counts)
        return np.asarray(1 - _ratio(seen * (counts.sum(axis=1) - 1), by_chance))

    return alpha


def _square(sums: Floats) -> Floats:
    size = int(np.sqrt(sums.shape[1]))
    return np.asarray(sums).reshape(len(sums), size, size)


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(np.shape(below), np.nan), where=below > 0))


def _beyond(agree: Floats, chance: Floats) -> Floats:
    below = np.full(agree.shape, np.nan)
    return np.asarray(np.divide(agree - chance, 1 - chance, out=below, where=chance < 1 - 1e-12))
