"""Means of clustered values, with intervals and tests that know which values share an edit, a person or a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.errors import RecordError
from seesaw_cf.stats.bootstrap import LEVEL, Floats
from seesaw_cf.stats.crossing import Codes, Crossing

__all__ = ["MIN_EFFECTIVE", "Inference", "case_weights", "clustered_mean", "clustered_means"]

# Below this effective number of clusters, in any dimension, there is no interval, no p and no star. Satterthwaite's
# approximation is trusted from four degrees of freedom on (Pustejovsky and Tipton 2018, section 5), which is five equal
# clusters; in benchmarks/simulation.py the error stays near its nominal level down to there.
MIN_EFFECTIVE = 5.0
_EXACT = 1e-6  # five equal clusters are five, whatever the last digits


@dataclass(frozen=True, slots=True)
class Inference:
    """An estimate with what can honestly be said about it.

    Attributes:
        value: The estimate.
        low, high: Ends of the confidence interval; NaN when refused.
        stderr: Standard error; NaN when refused.
        p: Two-sided p-value for "value is 0"; NaN when refused.
        df: Degrees of freedom of the t distribution behind interval and p.
        n: Number of observations with weight.
        clusters: Number of clusters per dimension, such as {"edit": 286, "person": 512}.
        effective: Effective number of clusters per dimension: how many equal clusters would tell as much about the
            error (`Crossing`).
        method: How it was made, in words.
        note: Why there is no interval; "" when there is one.
    """

    value: float
    low: float
    high: float
    stderr: float
    p: float
    df: float
    n: int
    clusters: dict[str, int] = field(default_factory=dict)
    effective: dict[str, float] = field(default_factory=dict)
    method: str = ""
    note: str = ""


def case_weights(case: Codes, member: NDArray[np.bool_]) -> Floats:
    """Weights that make a weighted sum the mean of case means over the member rows; they add up to 1.

    Args:
        case: (n,) case code of every row.
        member: (n,) which rows count.
    """
    per_case = np.bincount(case[member], minlength=int(case.max(initial=-1)) + 1).astype(np.float64)
    weights = np.zeros(case.size)
    if member.any():
        weights[member] = 1 / (per_case[case[member]] * np.count_nonzero(per_case))
    return weights


def clustered_mean(
    values: Floats,
    parts: list[Floats],
    clusters: Mapping[str, Codes],
    *,
    level: float = LEVEL,
    min_effective: float = MIN_EFFECTIVE,
) -> Inference:
    """A weighted mean, or a difference of two, with multi-way cluster-robust standard error.

    Args:
        values: (n,) finite observations.
        parts: One weight vector (n,) that adds up to 1 for a mean; two for a difference, first minus second.
        clusters: Dimension -> (n,) cluster codes, one to three dimensions.
        level: Confidence level.
        min_effective: Refuse when a dimension has fewer effective clusters than this.

    Returns:
        The `Inference`. With too few clusters, interval, error and p are NaN and `note` says how many are missing.

    Raises:
        RecordError: Lengths differ, values are not finite, or weights do not add up to 1.

    Source: Cameron, Gelbach and Miller (2011), inclusion-exclusion over dimensions; Bell and McCaffrey (2002),
        corrected residuals and Satterthwaite degrees of freedom. See `Crossing`.
    """
    return clustered_means(values[:, None], parts, clusters, level=level, min_effective=min_effective)[0]


def clustered_means(
    values: Floats,
    parts: list[Floats],
    clusters: Mapping[str, Codes],
    *,
    level: float = LEVEL,
    min_effective: float = MIN_EFFECTIVE,
) -> list[Inference]:
    """`clustered_mean` of several columns with the same weights and clusters, such as one effect on two scales.

    Args:
        values: (n, columns) finite observations.
        parts, clusters, level, min_effective: See `clustered_mean`.

    Returns:
        One `Inference` per column.

    Raises:
        RecordError: As `clustered_mean`.
    """
    _check(values, parts, clusters)
    crossing = Crossing(parts, clusters)
    nan = float("nan")
    base = Inference(nan, nan, nan, nan, nan, nan, int(crossing.used.sum()), crossing.counts, crossing.effective)
    base = replace(base, method=f"clustered by {' and '.join(clusters)} (CR2, Satterthwaite df)")
    few = [f"{name}: {n:.1f}" for name, n in crossing.effective.items() if n < min_effective - _EXACT]
    if few:
        missing = int(np.ceil(min_effective - min(crossing.effective.values()) - _EXACT))
        note = f"too few clusters ({', '.join(few)} effective); about {missing} more equal ones are needed"
        weight = parts[0] - (parts[1] if len(parts) > 1 else 0.0)
        return [replace(base, value=float(v), note=note) for v in weight @ values]
    found = []
    for estimate, stderr, df, largest in zip(*crossing.errors(values), np.abs(values[crossing.used]).max(axis=0)):
        if stderr <= 1e-12 * max(1e-300, largest):
            note = "all values equal: no error to estimate"
            found.append(replace(base, value=float(estimate), note=note))
            continue
        half = float(stats.t.ppf((1 + level) / 2, df)) * float(stderr)
        p = float(2 * stats.t.sf(abs(estimate) / stderr, df))
        value, low, high = float(estimate), float(estimate - half), float(estimate + half)
        found.append(replace(base, value=value, low=low, high=high, stderr=float(stderr), p=p, df=float(df)))
    return found


def _check(values: Floats, parts: list[Floats], clusters: Mapping[str, Codes]) -> None:
    lengths = {"values": len(values), **{name: code.size for name, code in clusters.items()}}
    lengths |= {f"weights {i}": part.size for i, part in enumerate(parts)}
    if len(set(lengths.values())) > 1 or len(parts) not in (1, 2) or not clusters:
        raise RecordError(
            f"clustered mean: lengths {lengths}; give equal lengths, one or two weight vectors, clusters."
        )
    if not np.isfinite(values).all():
        raise RecordError("clustered mean: values are not all finite. Leave unscored rows out and count them.")
    for part in parts:
        if abs(part.sum() - 1) > 1e-9:
            raise RecordError(f"clustered mean: weights add up to {part.sum():g}, expected 1 (is the group empty?).")
