"""Agreement between annotators: raw shares and chance-corrected coefficients, with intervals over items or groups.

Every coefficient is a function of a table of pairs of labels that is added up over items. An interval is the outer of
a jackknife's and of a score interval. Where a label is rare, a sample without it has a small error by every resampling;
the score interval asks how far from an agreement of a a sample with these labels would be, and holds every a that the
value is near enough to. Where annotators differ in ways that its model has not, the jackknife is the wider.

Source: Cohen (1960), unweighted; Fleiss (1971); Krippendorff (2011); Quenouille (1956) and Tukey (1958), the jackknife;
Fisher (1921), its scale; Donner and Eliasziw (1992), Statistics in Medicine 11, 1511-1519, the score interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse, stats

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.stats.bootstrap import LEVEL, Floats
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.simple import clustered_share

Kind = Literal["cohen", "fleiss", "nominal", "ordinal", "interval"]
LEVELS: tuple[Kind, ...] = ("nominal", "ordinal", "interval")
"""Of measurement, for Krippendorff's alpha."""
MIN_RARE = 2  # groups with a label other than the commonest; with fewer an interval would hang on one of them
NAN = float("nan")
_AGREEMENTS = np.array([0, 0.2, 0.4, 0.6, 0.8, 0.95])
_TESTED = np.linspace(0, 1, 201)  # values of agreement that an interval may hold
_NEAR = 1 - 1e-9  # full agreement, whatever the last digits
_CELLS = 2_000_000  # numbers held at once


def _read_ratings(rows: Sequence[Sequence[float | None]], scale: Sequence[float] | None) -> Floats:
    """Return ratings as a table, (items, annotators), with NaN for missing labels."""
    rows = checks.each("ratings", rows, lambda where, row: checks.each(where, row, _label))
    lengths = sorted({len(row) for row in rows})
    if len(lengths) != 1 or lengths[0] < 2:
        expected = "the same number, at least two, for every item. Write None where an annotator gave no label."
        raise RecordError(f"ratings: items have {lengths} labels, expected {expected}")
    table = np.array(rows, dtype=np.float64)
    allowed = table if scale is None else checks.each("scale", scale, checks.number)
    outside = np.argwhere(~np.isnan(table) & ~np.isin(table, allowed))
    for item, annotator in outside[:1]:
        first = f"{table[item, annotator]:g} of annotator {annotator + 1} on item {item}"
        got = f"{len(outside)} labels outside the scale {allowed}, first: {first}"
        raise RecordError(f"ratings: {got}. Correct them or state the scale that was used.")
    return table


def _label(where: str, value: object) -> float:
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return NAN if missing else checks.number(where, value)


@dataclass(frozen=True, eq=False, slots=True)
class Coefficient:
    """A measure of agreement beyond chance.

    Attributes:
        kind: "cohen" (of the first two annotators) or "fleiss", over items that all labelled; or a level of
            Krippendorff's alpha.
        values: Labels that can occur, sorted.
    """

    kind: Kind
    values: Floats

    def parts(self, table: Floats) -> sparse.csr_array:
        """Return the pairs of labels of each item, (items, values squared), from (items, annotators)."""
        table = table[:, :2] if self.kind == "cohen" else table
        there = ~np.isnan(table)
        if self.kind in ("cohen", "fleiss"):
            there &= there.all(axis=1, keepdims=True)
        at = np.searchsorted(self.values, np.where(there, table, self.values[:1].sum()))
        pairs = [(0, 1)] if self.kind == "cohen" else list(permutations(range(table.shape[1]), 2))
        both = [np.flatnonzero(there[:, first] & there[:, other]) for first, other in pairs]
        cells = [at[rows, first] * self.values.size + at[rows, other] for rows, (first, other) in zip(both, pairs)]
        rows = np.concatenate(both)
        placed = (1.0 / (there.sum(axis=1)[rows] - 1), (rows, np.concatenate(cells)))
        return sparse.csr_array(placed, shape=(len(table), self.values.size**2))

    def figure(self, sums: Floats) -> Floats:
        """Return the value of each table, (samples,) from (samples, values squared); NaN without a chance to differ."""
        table = sums.reshape(len(sums), self.values.size, self.values.size)
        rows, columns, total = table.sum(axis=2), table.sum(axis=1), sums.sum(axis=1)
        if self.kind in ("cohen", "fleiss"):
            agree = _ratio(np.trace(table, axis1=1, axis2=2), total)
            chance = _ratio((rows * columns).sum(axis=1), total**2)
            return _ratio(agree - chance, np.where(chance < 1 - 1e-12, 1 - chance, 0))
        scaled = np.ldexp(self.values, -np.frexp(np.abs(self.values).max(initial=0.0))[1])
        place = np.cumsum(rows, axis=1) - rows / 2 if self.kind == "ordinal" else scaled[None]
        far = (place[:, :, None] - place[:, None, :]) ** 2
        far = np.broadcast_to(1 - np.eye(self.values.size) if self.kind == "nominal" else far, table.shape)
        by_chance = np.einsum("ni,nij,nj->n", rows, far, rows)
        return np.asarray(1 - _ratio((table * far).sum(axis=(1, 2)) * (total - 1), by_chance))

    def of(self, parts: sparse.csr_array) -> float:
        """Return the value of these items."""
        return float(self.figure(_total(parts))[0])

    def influences(self, parts: sparse.csr_array) -> Floats:
        """Return how far each item moves the value, (items,): leaving it out, times the items left."""
        total, (n, columns) = _total(parts), parts.shape
        step = max(1, _CELLS // max(1, columns))
        without = [self.figure(total - parts[at : at + step].toarray()) for at in range(0, n, step)]
        return np.asarray((n - 1) * (self.figure(total) - np.concatenate(without)))


def _total(parts: sparse.csr_array) -> Floats:
    return np.asarray(parts.sum(axis=0), np.float64).reshape(1, -1)


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.asarray(np.divide(above, below, out=np.full(np.shape(below), NAN), where=below > 0))


def agreement(kind: Kind, table: Floats) -> float:
    """Return a coefficient over all items; NaN where chance agreement is 1 or no two different labels can be paired.

    Args:
        kind: See `Coefficient`.
        table: (items, annotators), NaN = missing.

    Raises:
        RecordError: There are fewer than two annotators.
    """
    if table.ndim != 2 or table.shape[1] < 2:
        raise RecordError(f"agreement: the table has shape {table.shape}, expected (items, annotators), at least two.")
    coefficient = Coefficient(kind, np.unique(table[~np.isnan(table)]))
    return coefficient.of(coefficient.parts(table))


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of annotators; `n` of every figure: items that all of its annotators labelled.

    Attributes:
        percent: Pair of annotators ("A1/A2") -> how often they agree, in per cent; "all": all of them agree.
        cohen: Pair of annotators -> kappa.
        fleiss: Kappa of all of them.
        krippendorff: Level of measurement -> alpha.
        n_items: Items given.
        n_missing: Labels that were not given.
        majority_share: How common the commonest label is: what a constant answer agrees with.
    """

    percent: Mapping[str, Estimate]
    cohen: Mapping[str, Estimate]
    fleiss: Estimate
    krippendorff: Mapping[str, Estimate]
    n_items: int
    n_missing: int
    majority_share: float

    def row(self) -> JsonObject:
        """Return the figures by name; `cohen` also has the mean over pairs."""
        tables = {name: getattr(self, name) for name in ("percent", "cohen", "krippendorff")}
        shown = {name: {of: _shown(own) for of, own in table.items()} for name, table in tables.items()}
        shown["cohen"]["mean"] = {"value": float(np.mean([kappa.value for kappa in self.cohen.values()]))}
        counts = {name: getattr(self, name) for name in ("n_items", "n_missing", "majority_share")}
        return {**shown, "fleiss": _shown(self.fleiss), **counts}


def _shown(estimate: Estimate) -> JsonObject:
    return estimate.columns("value", "low", "high", "n")


def annotator_agreement(
    ratings: Sequence[Sequence[float | None]],
    *,
    names: Sequence[str] | None = None,
    scale: Sequence[float] | None = None,
    groups: Sequence[object] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> Agreement:
    """Return every agreement figure of one table of ratings.

    Args:
        ratings: One list per item with one label per annotator, in the same order; None or NaN = missing.
        names: Names of the annotators; "1", "2", ... by default.
        scale: The allowed labels; None allows any number.
        groups: What each item belongs to, such as its edit: items of one are not independent; None = items.
        draws: Items invented for the error at each agreement tested; 0 leaves intervals out.
        seed: Of the generator.

    Returns:
        Every figure with an interval over items or groups: per cent as a share, coefficients by `agreement_interval`.

    Raises:
        RecordError: No items, lists of different lengths, fewer than two annotators, a label outside the scale, or a
            wrong number of names or groups.
    """
    table = _read_ratings(ratings, scale)
    everyone = range(table.shape[1])
    labels = [str(number + 1) for number in everyone] if names is None else list(map(str, np.ravel(names).tolist()))
    if len(labels) != table.shape[1] or len(set(labels)) < len(labels):
        got = f"{len(labels)} names for {table.shape[1]} annotators, {len(set(labels))} of them different"
        raise RecordError(f"ratings: {got}; give each annotator a name of their own.")
    named = range(len(table)) if groups is None else list(map(str, checks.items("agreement: groups", groups)))
    if len(named) != len(table):
        raise RecordError(f"agreement: {len(table)} items and {len(named)} group codes, expected as many.")
    codes = np.asarray(pd.factorize(np.array(named))[0], np.intp)
    checks.draws("agreement: draws", draws)
    checks.seed("agreement: seed", seed)
    given = table[~np.isnan(table)]
    counts = np.unique(given, return_counts=True)[1]

    def figure(kind: Kind, columns: Sequence[int] = everyone) -> Estimate:
        own = table[:, list(columns)]
        coefficient = Coefficient(kind, np.unique(own[~np.isnan(own)]))
        return agreement_interval(own, codes, coefficient, draws, seed)

    def percent(columns: Sequence[int]) -> Estimate:
        own = table[:, list(columns)]
        rated = ~np.isnan(own).any(axis=1)
        equal, weights = (own == own[:, :1]).all(axis=1).astype(np.float64), rated / max(1, rated.sum())
        share = clustered_share(equal, weights, codes, fewest=MIN_EFFECTIVE)
        low, high = (100 * share.low, 100 * share.high) if draws else (NAN, NAN)
        return Estimate(100 * share.value, low, high, n=share.n, note=share.note)

    pairs = {f"{labels[one]}/{labels[other]}": (one, other) for one, other in combinations(everyone, 2)}
    return Agreement(
        percent={name: percent(pair) for name, pair in pairs.items()} | {"all": percent(everyone)},
        cohen={name: figure("cohen", pair) for name, pair in pairs.items()},
        fleiss=figure("fleiss"),
        krippendorff={level: figure(level) for level in LEVELS},
        n_items=len(table),
        n_missing=table.size - given.size,
        majority_share=float(counts.max() / given.size) if given.size else NAN,
    )


def agreement_interval(
    table: Floats, groups: NDArray[np.intp], coefficient: Coefficient, draws: int, seed: int
) -> Estimate:
    """Return a coefficient with its 95 % interval over items or groups of them: of other items, by these annotators.

    No interval is claimed of fewer than five groups, or `MIN_RARE` with a rarer label.

    Args:
        table: (items, annotators), NaN = missing.
        groups: (items,) codes, such as the edit that an item is about.
        coefficient: What is measured.
        draws, seed: See `annotator_agreement`.
    """
    parts = coefficient.parts(table)
    used = np.diff(parts.indptr) > 0
    by_item, rated, code = parts[used], table[used], np.unique(groups[used], return_inverse=True)[1]
    n = int(code.max(initial=-1)) + 1
    value = coefficient.of(by_item)
    found = Estimate(value, n=int((~np.isnan(table)).all(axis=1).sum()))
    if reason := _no_interval(rated, code, n, value) or "not asked for" * (not draws):
        return replace(found, note=reason)
    adds: sparse.csr_array = sparse.csr_array((np.ones(code.size), (code, np.arange(code.size))))
    # the jackknife's errors; 0 where no value changes, NaN where one has none
    moved = [coefficient.influences(own) for own in (by_item, (adds @ by_item).tocsr())]
    alone, error = (float(np.std(moves, ddof=1) / len(moves) ** 0.5) for moves in moved)
    # items of a group count as one until they are seen to differ
    together = max(1.0, (error / alone) ** 2) if alone > 0 else code.size / n
    variances = _variances(rated, coefficient, draws, seed) * together / code.size
    if not np.isfinite(variances).all():
        return replace(found, note=f"labels too rare for {draws} draws")
    quantile = float(stats.t.isf((1 - LEVEL) / 2, n - 1))
    errors = np.sqrt((1 - _TESTED) * np.interp(_TESTED, _AGREEMENTS, variances))
    near = _TESTED[np.abs(value - _TESTED) <= quantile * errors]
    low, high = float(near.min(initial=value)), float(near.max(initial=value))
    if low <= 0:  # agreement below chance is tested with the error of none
        low = min(low, value - quantile * float(errors[0]))
    if error > 0 and abs(value) < _NEAR:  # the jackknife, on Fisher's scale, on which it does not pass full agreement
        half = quantile * error / (1 - value**2)
        low, high = min(low, math.tanh(math.atanh(value) - half)), max(high, math.tanh(math.atanh(value) + half))
    return replace(found, low=max(-1.0, low), high=min(1.0, high))


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


def _variances(rated: Floats, coefficient: Coefficient, draws: int, seed: int) -> Floats:
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
    for level in _AGREEMENTS:
        invented = np.where(copied < level**0.5, of_item[:, None], by_chance)
        moves = coefficient.influences(coefficient.parts(np.where(there, invented, NAN)))
        moves = moves[np.isfinite(moves)]
        variances.append(np.var(moves) / (1 - level) if moves.size else NAN)
    return np.array(variances)
