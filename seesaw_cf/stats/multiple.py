"""Many tests at once: corrections over declared families, and max-T by permuting people's labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.stats.bootstrap import Floats, check_rows

Correction = Literal["holm", "bh", "by"]


def adjust(p_values: ArrayLike, method: Correction = "holm") -> Floats:
    """Adjusted p-values of one family; NaN (no test was done) stays NaN and does not count as a test.

    Args:
        p_values: p-values in 0..1 or NaN.
        method: "holm" (family-wise error), "bh" (false discovery rate, independent or positively dependent tests) or
            "by" (false discovery rate under any dependence).

    Raises:
        UnknownNameError: Unknown `method`.
        RecordError: A value outside 0..1.

    Source: Holm (1979); Benjamini and Hochberg (1995); Benjamini and Yekutieli (2001).
    """
    checks.one_of("correction", method, get_args(Correction))
    p = np.asarray(p_values, dtype=np.float64)
    tested = ~np.isnan(p)
    if ((p[tested] < 0) | (p[tested] > 1)).any():
        raise RecordError(f"p-values: range {np.nanmin(p):g}..{np.nanmax(p):g}, expected 0..1.")
    out = np.full(p.shape, np.nan)
    if not tested.any():
        return out
    if method != "holm":
        out[tested] = stats.false_discovery_control(p[tested], method=method)
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

    def row(self) -> dict[str, object]:
        """The columns of a table."""
        return self.columns("value", "low", "high", "p", "n", "note")

    def columns(self, *names: str) -> dict[str, object]:
        """Some of the fields of the estimate by name, and `p_adjusted`."""
        return self.estimate.columns(*names) | {"p_adjusted": self.p_adjusted}


def adjusted(family: Mapping[str, Estimate]) -> dict[str, Adjusted]:
    """Every estimate of one family with its p after Holm's correction."""
    values = adjust([estimate.p for estimate in family.values()])
    return {name: Adjusted(estimate, float(p)) for (name, estimate), p in zip(family.items(), values)}


def adjust_families(table: pd.DataFrame, family: Sequence[str], method: Correction = "holm") -> pd.DataFrame:
    """Add `p_adjusted`, `family` and `family_size` to a table of tests.

    Args:
        table: Has a column `p`.
        family: The columns that name a family, such as ["editor", "axis"]; [] = the whole table is one family.
            Declare it before looking at the results.
        method: See `adjust`.

    Raises:
        RecordError: A column is missing.
    """
    if missing := [name for name in ("p", *family) if name not in table]:
        raise RecordError(f"adjust: columns {missing} are missing; the table has {list(table)}.")
    out = table.copy()
    names = table[list(family)].astype(str).agg("/".join, axis=1) if len(family) else pd.Series("all", table.index)
    out["family"] = names
    out["family_size"] = table["p"].notna().groupby(names).transform("sum")
    out["p_adjusted"] = np.nan
    for rows in names.groupby(names).groups.values():
        out.loc[rows, "p_adjusted"] = adjust(table.loc[rows, "p"].to_numpy(), method)
    return out


def label_permutation(
    person_values: Floats,
    member: NDArray[np.bool_],
    strata: NDArray[np.intp],
    *,
    permutations: int = 2000,
    seed: int = 0,
) -> tuple[Floats, Floats, Floats]:
    """Test "this group differs from the rest" for all groups of a table by shuffling people's labels.

    Args:
        person_values: (people,) one value per person, free of edit effects (mean over the person's prompts of the
            difference from the case mean).
        member: (people, groups) group tags; a person's tags move together.
        strata: (people,) labels are shuffled within strata only, such as the target a person holds.
        permutations: Number of shuffles.
        seed: Seed of the generator.

    Returns:
        statistic (groups,): standardised difference from the stratified expectation; p (groups,): two-sided, one test
        at a time; p_max (groups,): adjusted over the table by max-T. NaN for groups that no shuffle can change.

    Raises:
        RecordError: Lengths differ, no permutations, or a seed that no generator takes.

    Source: Westfall and Young (1993), single-step max-T; Phipson and Smyth (2010), (b + 1) / (m + 1).
    """
    check_rows("label permutation", ("strata",), person_values=person_values, member=member, strata=strata)
    if member.ndim != 2:
        raise RecordError(f"label permutation: member has shape {member.shape}, expected (people, groups).")
    checks.whole("label permutation: permutations", permutations, 1, checks.MOST_DRAWS)
    rng = np.random.default_rng(checks.seed("label permutation: seed", seed))
    sizes = np.bincount(strata)
    centred = person_values - (np.bincount(strata, person_values) / np.maximum(sizes, 1))[strata]
    labels = member.astype(np.float64)
    order = np.argsort(strata, kind="stable")
    sums = np.empty((permutations, member.shape[1]))
    for row in range(permutations):
        shuffled = np.empty_like(order)
        shuffled[order] = np.argsort(strata + rng.random(strata.size))
        sums[row] = centred[shuffled] @ labels
    observed = centred @ labels
    spread = np.vstack([observed, sums]).std(axis=0)  # the observed labels are one of the possible shuffles
    movable = sums.std(axis=0) > 1e-12 * max(1e-300, float(np.abs(centred).max(initial=0.0)))
    statistic = np.full(member.shape[1], np.nan)
    statistic[movable] = observed[movable] / spread[movable]
    drawn = np.abs(sums[:, movable]) / spread[movable]
    p, p_max = np.full_like(statistic, np.nan), np.full_like(statistic, np.nan)
    seen = np.abs(statistic[movable]) - 1e-9
    p[movable] = (1 + (drawn >= seen).sum(axis=0)) / (1 + permutations)
    if movable.any():
        p_max[movable] = (1 + (drawn.max(axis=1)[:, None] >= seen).sum(axis=0)) / (1 + permutations)
    return statistic, p, p_max
