"""Many tests at once: corrections over declared families, by p alone or by what permutations of labels make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.stats.bootstrap import Floats, check_rows


def adjust(p_values: ArrayLike) -> Floats:
    """Correct the p-values of one family by Holm's method; NaN (no test was done) stays NaN and is not counted.

    Args:
        p_values: p-values in 0..1 or NaN.

    Raises:
        RecordError: A value outside 0..1.

    Source: Holm (1979).
    """
    p = np.asarray(p_values, dtype=np.float64)
    tested = ~np.isnan(p)
    if ((p[tested] < 0) | (p[tested] > 1)).any():
        raise RecordError(f"p-values: range {np.nanmin(p):g}..{np.nanmax(p):g}, expected 0..1.")
    out = np.full(p.shape, np.nan)
    if not tested.any():
        return out
    order = np.argsort(p[tested], kind="stable")
    stepped = p[tested][order] * np.arange(order.size, 0, -1)
    adjusted = np.empty(order.size)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(stepped))
    out[tested] = adjusted
    return out


@dataclass(frozen=True, slots=True)
class Adjusted:
    """An estimate of a family of tests.

    Attributes:
        estimate: With its own p.
        p_adjusted: p after Holm's correction over the family; NaN when not tested.
    """

    estimate: Estimate
    p_adjusted: float

    def row(self) -> JsonObject:
        """Return the columns of a table row."""
        return self.columns("value", "low", "high", "p", "n", "note")

    def columns(self, *names: str) -> JsonObject:
        """Return some fields of the estimate by name, and `p_adjusted`."""
        return self.estimate.columns(*names) | {"p_adjusted": self.p_adjusted}


def adjusted(family: Mapping[str, Estimate]) -> dict[str, Adjusted]:
    """Return every estimate of one family with its p after Holm's correction."""
    values = adjust([estimate.p for estimate in family.values()])
    return {name: Adjusted(estimate, float(p)) for (name, estimate), p in zip(family.items(), values)}


def adjust_families(table: pd.DataFrame, family: Sequence[str]) -> pd.DataFrame:
    """Add `p_adjusted`, `family` and `family_size` to a table of tests.

    Args:
        table: Has a column `p`.
        family: The columns that name a family, such as ["editor", "axis"]; [] = the whole table is one family.
            Declare it before looking at the results.

    Raises:
        RecordError: A column is missing.
    """
    if missing := [name for name in ("p", *family) if name not in table]:
        raise RecordError(f"adjust: columns {missing} are missing; the table has {list(table)}.")
    out = table.copy()
    parts = [table[name].astype(str) for name in family] or [pd.Series("all", table.index)]
    names = pd.Series(["/".join(row) for row in zip(*parts)], table.index)
    out["family"] = names
    out["family_size"] = table["p"].notna().groupby(names).transform("sum")
    out["p_adjusted"] = np.nan
    for rows in names.groupby(names).groups.values():
        out.loc[rows, "p_adjusted"] = adjust(table.loc[rows, "p"].to_numpy())
    return out


_TIE = 1 + 1e-6  # a permutation that repeats the labels as they are gives the same p but for its last digits


def step_down(p_values: Floats, drawn: Floats) -> Floats:
    """Return adjusted p of one family: how often chance makes a smaller p anywhere among those not yet rejected.

    Args:
        p_values: (tests,) p of the statistic, of any calibration; NaN: not a test.
        drawn: (permutations, tests) the same after each permutation; NaN: it could not be tested there, which counts as
            p = 1.

    Returns:
        (tests,) at least 1 / (permutations + 1).

    Source: Westfall and Young (1993), step-down min-p; Phipson and Smyth (2010), (b + 1) / (m + 1).
    """
    check_rows("step-down", p_values=p_values, drawn=drawn.T)
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested], kind="stable")]
    least = np.minimum.accumulate(np.where(np.isnan(drawn), 1, drawn)[:, order[::-1]], axis=1)[:, ::-1]
    out = np.full(p_values.shape, np.nan)
    out[order] = np.maximum.accumulate((1 + (least <= _TIE * p_values[order]).sum(axis=0)) / (1 + len(drawn)))
    return out


def permutation_p(p_values: Floats, drawn: Floats) -> Floats:
    """Return p of each test alone: the share of permutations, of those that could test it, with a p as small.

    Args:
        p_values, drawn: See `step_down`.
    """
    check_rows("permutation", p_values=p_values, drawn=drawn.T)
    smaller, there = (drawn <= _TIE * p_values).sum(axis=0), (~np.isnan(drawn)).sum(axis=0)
    return np.where(np.isnan(p_values), np.nan, (1 + smaller) / (1 + there))


def permutation_level(drawn: Floats, level: float) -> Floats:
    """Return the p that a share `level` of the permutations stays below: where a test alone becomes significant.

    Args:
        drawn: See `step_down`.
        level: Of the test.

    Returns:
        (tests,) the floor(level (m + 1))-th smallest of m p, at least the smallest; `level` itself where m is 0.
    """
    ordered, there = np.sort(drawn, axis=0), (~np.isnan(drawn)).sum(axis=0)
    place = np.maximum(np.floor(level * (there + 1)).astype(np.intp), 1) - 1
    return np.where(there > 0, np.take_along_axis(ordered, place[None], axis=0)[0], level)
