"""Intervals of agreement beyond chance: the outer of a jackknife's and of a score interval.

Where a label is rare, few items say how well annotators agree on it. A sample without any of these items has a small
error by every resampling. The score interval asks instead: with these labels, how far from an agreement of a would a
sample be? It holds every a that the value is near enough to. Where annotators differ in ways that its model has not,
the jackknife is the wider of the two.

Source: Quenouille (1956) and Tukey (1958), the jackknife; Fisher (1921), its scale; Donner and Eliasziw (1992),
Statistics in Medicine 11, 1511-1519, an interval of kappa from the error at the kappa tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from seesaw_cf.stats.bootstrap import LEVEL, Floats
from seesaw_cf.stats.clustered import MIN_EFFECTIVE

Figure = Callable[[Floats], Floats]
"""Sums of shape (samples, columns) -> one value per sample."""
Parts = Callable[[Floats, Floats], sparse.csr_array]
"""(items, annotators) labels and the (values,) that they can have -> what each item adds, (items, columns)."""
_AGREEMENTS = np.array([0, 0.2, 0.4, 0.6, 0.8, 0.95])
_TESTED = np.linspace(0, 1, 201)  # values of agreement that an interval may hold
_NEAR = 1 - 1e-9  # full agreement, whatever the last digits
_CELLS = 2_000_000  # numbers held at once


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A measure of agreement beyond chance: what items add, and what the sums make."""

    parts: Parts
    figure: Figure

    def of(self, parts: sparse.csr_array) -> float:
        """Return the value of these items, from (items, columns)."""
        return float(self.figure(_total(parts))[0])

    def influences(self, parts: sparse.csr_array) -> Floats:
        """Return how far each item moves the value, (items,): leaving it out, times the items left."""
        total, (n, columns) = _total(parts), parts.shape
        step = max(1, _CELLS // max(1, columns))
        without = [self.figure(total - parts[at : at + step].toarray()) for at in range(0, n, step)]
        return np.asarray((n - 1) * (self.figure(total) - np.concatenate(without)))


def _total(parts: sparse.csr_array) -> Floats:
    return np.asarray(parts.sum(axis=0), np.float64).reshape(1, -1)


def agreement_interval(
    table: Floats, groups: NDArray[np.intp], coefficient: Coefficient, draws: int, seed: int
) -> tuple[float, float, float, str]:
    """Return a coefficient, its 95 % interval over items or groups of them, and why there is none ("": there is one).

    It speaks of other items rated by these annotators, not of other annotators.

    Args:
        table: (items, annotators), NaN = missing.
        groups: (items,) codes, such as the edit that an item is about.
        coefficient: What is measured.
        draws, seed: Items that are invented for each agreement tested, and of which generator; 0 leaves the interval
            out.

    Returns:
        Value, low, high, reason. No interval is claimed where one label stands alone, below five groups, and where
        fewer than `MIN_RARE` groups have a label other than the commonest.
    """
    values = np.unique(table[~np.isnan(table)])
    parts = coefficient.parts(table, values)
    used = np.diff(parts.indptr) > 0
    by_item, rated, code = parts[used], table[used], np.unique(groups[used], return_inverse=True)[1]
    n = int(code.max(initial=-1)) + 1
    value = coefficient.of(by_item)
    if reason := _no_interval(rated, code, n, value):
        return value, np.nan, np.nan, reason
    if not draws:
        return value, np.nan, np.nan, "not asked for"
    adds: sparse.csr_array = sparse.csr_array((np.ones(code.size), (code, np.arange(code.size))))
    moves, of_items = coefficient.influences((adds @ by_item).tocsr()), coefficient.influences(by_item)
    alone, error = _error(of_items), _error(moves)
    quantile = float(stats.t.isf((1 - LEVEL) / 2, n - 1))
    # items of a group count as one until they are seen to differ
    together = max(1.0, (error / alone) ** 2) if alone > 0 else code.size / n
    variances = _variances(rated, values, coefficient, draws, seed) * together / code.size
    if not np.isfinite(variances).all():
        return value, np.nan, np.nan, f"labels too rare for {draws} draws"
    ends = np.array([_jackknifed(value, error, quantile), _scored(value, variances, quantile)])
    return value, max(-1.0, float(ends[:, 0].min())), min(1.0, float(ends[:, 1].max())), ""


MIN_RARE = 2
"""Groups with a label other than the commonest, below which an interval would hang on one of them."""


def _no_interval(rated: Floats, code: NDArray[np.intp], n: int, value: float) -> str:
    if np.isnan(value):
        return "no two different ratings"
    if n < MIN_EFFECTIVE:
        return f"too few items or groups ({n})"
    there = ~np.isnan(rated)
    values, counts = np.unique(rated[there], return_counts=True)
    rare = there & (rated != values[counts.argmax()])
    n_rare = np.unique(code[rare.any(axis=1)]).size
    return f"{n_rare} with another label than the commonest: too few" if n_rare < MIN_RARE else ""


def _error(influences: Floats) -> float:
    """Return the jackknife's standard error; 0 where no value changes, NaN where one has none."""
    return float(np.std(influences, ddof=1) / len(influences) ** 0.5)


def _jackknifed(value: float, error: float, quantile: float) -> tuple[float, float]:
    """Return the interval on Fisher's scale, on which it does not pass full agreement."""
    if not error > 0 or abs(value) >= _NEAR:
        return value, value
    half = quantile * error / (1 - value**2)
    return float(np.tanh(np.arctanh(value) - half)), float(np.tanh(np.arctanh(value) + half))


def _scored(value: float, variances: Floats, quantile: float) -> tuple[float, float]:
    """Return the least and the greatest agreement that the value is near enough to.

    Args:
        value: Of the coefficient.
        variances: (_AGREEMENTS,) of an estimate, divided by 1 - agreement.
        quantile: Of t.
    """
    errors = np.sqrt((1 - _TESTED) * np.interp(_TESTED, _AGREEMENTS, variances))
    near = _TESTED[np.abs(value - _TESTED) <= quantile * errors]
    low, high = near.min(initial=value), near.max(initial=value)
    if low <= 0:  # agreement below chance is tested with the error of none
        low = min(low, value - quantile * errors[0])
    return float(low), float(high)


def _variances(rated: Floats, values: Floats, coefficient: Coefficient, draws: int, seed: int) -> Floats:
    """Return the variance of one item's influence at each of `_AGREEMENTS`, divided by 1 - agreement.

    Items have a label that an annotator gives with probability sqrt(agreement), and else one of all labels by chance,
    so that any two of them agree that far beyond chance. Labels are as common, and as often missing, as they are.
    """
    rng = np.random.default_rng(seed)
    there = ~np.isnan(rated)[np.arange(draws) % len(rated)]
    labels = np.sort(rated[~np.isnan(rated)])
    of_item = labels[(np.arange(draws) + 0.5).astype(np.intp) * labels.size // draws][rng.permutation(draws)]
    by_chance, copied = labels[rng.integers(labels.size, size=there.shape)], rng.random(there.shape)
    variances = []
    for agreement in _AGREEMENTS:
        invented = np.where(copied < agreement**0.5, of_item[:, None], by_chance)
        parts = coefficient.parts(np.where(there, invented, np.nan), values)
        moves = coefficient.influences(parts)
        moves = moves[np.isfinite(moves)]
        variances.append(np.var(moves) / (1 - agreement) if moves.size else np.nan)
    return np.array(variances)


# Every coefficient is a function of something that is added up over items: a table of two annotators' labels,
# Krippendorff's coincidences. Leaving each item out in turn then costs as much as one matrix.


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
