"""Agreement between annotators: raw shares and chance-corrected coefficients, with intervals over items or groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.stats import agreement_interval as sums
from seesaw_cf.stats.agreement_interval import Coefficient, agreement_interval
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.simple import clustered_share

LEVELS = ("nominal", "ordinal", "interval")
NAN = float("nan")


def as_ratings(rows: Sequence[Sequence[float | None]], scale: Sequence[float] | None = None) -> Floats:
    """Return a table of ratings with NaN for missing labels.

    Args:
        rows: One list per item with one label per annotator, in the same order of annotators; None or NaN = missing.
        scale: The allowed labels; None allows any number.

    Returns:
        (items, annotators).

    Raises:
        RecordError: No items, lists of different lengths, fewer than two annotators, or a label outside the scale.
    """
    rows = checks.each("ratings", rows, lambda where, row: checks.each(where, row, _label))
    lengths = sorted({len(row) for row in rows})
    if len(lengths) != 1 or lengths[0] < 2:
        raise RecordError(
            f"ratings: items have {lengths} labels, expected the same number, at least two, for every item. "
            "Write None where an annotator gave no label."
        )
    table = np.array(rows, dtype=np.float64)
    if scale is not None:
        allowed = checks.each("scale", scale, checks.number)
        outside = ~np.isnan(table) & ~np.isin(table, allowed)
        if outside.any():
            item, annotator = np.argwhere(outside)[0]
            raise RecordError(
                f"ratings: {int(outside.sum())} labels outside the scale {list(scale)}, first: "
                f"{table[item, annotator]:g} of annotator {annotator + 1} on item {item}. "
                "Correct them or state the scale that was used."
            )
    return table


def _check_table(where: str, table: Floats, annotators: int = 2) -> None:
    if table.ndim != 2 or table.shape[1] < annotators:
        raise RecordError(f"{where}: the table has shape {table.shape}, expected (items, annotators).")


def _label(where: str, value: object) -> float:
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return NAN if missing else checks.number(where, value)


def cohen_kappa(table: Floats) -> float:
    """Return Cohen's kappa of the first two annotators, over items both labelled; NaN when chance agreement is 1.

    Raises:
        RecordError: There are fewer than two annotators.

    Source: Cohen (1960), unweighted.
    """
    _check_table("cohen_kappa", table)
    return _whole(sums.label_pairs, table[:, :2], sums.kappa_of)


def fleiss_kappa(table: Floats) -> float:
    """Return Fleiss' kappa of n annotators, over items that all labelled; NaN when chance agreement is 1.

    Raises:
        RecordError: There are fewer than two annotators.

    Source: Fleiss (1971).
    """
    _check_table("fleiss_kappa", table)
    return _whole(sums.fleiss_counts, table, sums.fleiss_of)


def _whole(parts: sums.Parts, table: Floats, figure: sums.Figure) -> float:
    """Return the figure over all items."""
    return Coefficient(parts, figure).of(parts(table, np.unique(table[~np.isnan(table)])))


def krippendorff_alpha(table: Floats, level: str = "nominal") -> float:
    """Return Krippendorff's alpha over all labels given; NaN when fewer than two different labels can be paired.

    Args:
        table: (items, annotators), NaN = missing.
        level: "nominal", "ordinal" or "interval" (on the labels' own values).

    Raises:
        RecordError: The table has another number of dimensions.
        UnknownNameError: Unknown `level`.

    Source: Krippendorff (2011).
    """
    checks.one_of("level of measurement", level, LEVELS)
    _check_table("krippendorff_alpha", table, 1)
    return _whole(sums.coincidences, table, sums.alpha_of(level, np.unique(table[~np.isnan(table)])))


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
        tables = {"percent": self.percent, "cohen": self.cohen, "krippendorff": self.krippendorff}
        shown = {key: {n: _shown(e) for n, e in table.items()} for key, table in tables.items()}
        shown["cohen"]["mean"] = {"value": float(np.mean([kappa.value for kappa in self.cohen.values()]))}
        row: JsonObject = {"percent": shown["percent"], "cohen": shown["cohen"], "fleiss": _shown(self.fleiss)}
        return row | shown | {name: getattr(self, name) for name in ("n_items", "n_missing", "majority_share")}


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
        ratings: See `as_ratings`.
        names: Names of the annotators; "1", "2", ... by default.
        scale: The allowed labels.
        groups: What each item belongs to, such as its edit: items of one are not independent; None = items.
        draws: Items invented for the error at each agreement, see `agreement_interval`; 0 leaves intervals out.
        seed: Of the generator.

    Returns:
        Every figure with an interval over items or groups, of these annotators: per cent as a share
        (`clustered_share`), coefficients by `agreement_interval`. None where fewer than five items or groups were
        rated; `note` holds the reason.

    Raises:
        RecordError: As `as_ratings`, or a wrong number of names or groups.
    """
    table = as_ratings(ratings, scale)
    labels = (
        [str(i + 1) for i in range(table.shape[1])]
        if names is None
        else [str(name) for name in np.ravel(np.asarray(names, object))]
    )
    if len(labels) != table.shape[1] or len(set(labels)) < len(labels):
        raise RecordError(
            f"ratings: {len(labels)} names for {table.shape[1]} annotators, {len(set(labels))} of them different; "
            "give each annotator a name of their own."
        )
    codes = np.arange(len(table)) if groups is None else _codes(groups, len(table))
    checks.draws("agreement: draws", draws)
    checks.seed("agreement: seed", seed)

    def figure(parts: sums.Parts, of: sums.Figure, columns: Sequence[int]) -> Estimate:
        own = table[:, list(columns)]
        value, low, high, note = agreement_interval(own, codes, Coefficient(parts, of), draws, seed)
        return Estimate(value, low, high, n=int((~np.isnan(own)).all(axis=1).sum()), note=note)

    def percent(columns: Sequence[int]) -> Estimate:
        own = table[:, list(columns)]
        rated = ~np.isnan(own).any(axis=1)
        equal, weights = (own == own[:, :1]).all(axis=1).astype(np.float64), rated / max(1, rated.sum())
        share = clustered_share(equal, weights, codes, fewest=MIN_EFFECTIVE)
        low, high = (100 * share.low, 100 * share.high) if draws else (NAN, NAN)
        return Estimate(100 * share.value, low, high, n=share.n, note=share.note)

    everyone = range(table.shape[1])
    pairs = {f"{labels[i]}/{labels[j]}": (i, j) for i, j in combinations(everyone, 2)}
    ratings_present = table[~np.isnan(table)]
    values = np.unique(ratings_present)
    return Agreement(
        percent={name: percent(pair) for name, pair in pairs.items()} | {"all": percent(everyone)},
        cohen={name: figure(sums.label_pairs, sums.kappa_of, pair) for name, pair in pairs.items()},
        fleiss=figure(sums.fleiss_counts, sums.fleiss_of, everyone),
        krippendorff={level: figure(sums.coincidences, sums.alpha_of(level, values), everyone) for level in LEVELS},
        n_items=len(table),
        n_missing=int(np.isnan(table).sum()),
        majority_share=float(np.unique(ratings_present, return_counts=True)[1].max() / ratings_present.size)
        if ratings_present.size
        else NAN,
    )


def _codes(groups: Sequence[object], items: int) -> NDArray[np.intp]:
    numbers: dict[str, int] = {}
    named = list(map(str, checks.items("agreement: groups", groups)))
    if len(named) != items:
        raise RecordError(f"agreement: {items} items and {len(named)} group codes, expected as many.")
    return np.array([numbers.setdefault(group, len(numbers)) for group in named], dtype=np.intp)
