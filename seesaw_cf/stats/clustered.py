"""Means of clustered values: standard errors that know which values share an edit, a person or a target.

Values of one table are crossed (every edit is seen by many people, most people by many edits), so they are not
independent along either dimension. The variance adds what each dimension contributes and takes off what was counted
twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.errors import RecordError
from seesaw_cf.stats.bootstrap import LEVEL, Floats

__all__ = ["MIN_EFFECTIVE", "Inference", "case_weights", "clustered_mean", "effective_number"]

Codes = NDArray[np.intp]
# Below this effective number of clusters no interval is given: cluster-robust errors are then far too small.
MIN_EFFECTIVE = 5.0


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
        effective: Effective number of clusters per dimension (`effective_number`); the smallest drives `df`.
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


def effective_number(shares: Floats) -> float:
    """How many equal clusters would weigh as much as these: 1 / sum of squared shares.

    Args:
        shares: Weight per cluster, any scale; absolute values count.

    Source: Kish (1965); Carter, Schnepel and Steigerwald (2017) for its use with cluster-robust errors.
    """
    total = np.abs(shares).sum()
    return float(total**2 / (shares**2).sum()) if total > 0 else 0.0


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

    Source: Cameron, Gelbach and Miller (2011), inclusion-exclusion over dimensions; Bell and McCaffrey (2002), CR2
        correction of each cluster's residual; t distribution with (effective clusters - 1) degrees of freedom.
    Deviates: a combined variance below the largest single-dimension one is replaced by that one, so that crossing never
        makes an error smaller.
    """
    _check(values, parts, clusters)
    signs = (1.0, -1.0)
    means = [float(part @ values) for part in parts]
    value = means[0] - (means[1] if len(means) > 1 else 0.0)
    influence = sum(sign * part * (values - mean) for sign, part, mean in zip(signs, parts, means))
    used = np.any([part != 0 for part in parts], axis=0)
    codes = {name: pd.factorize(code[used])[0] for name, code in clusters.items()}
    shares = {name: [_sums(code, part[used]) for part in parts] for name, code in codes.items()}
    counts = {name: int(code.max(initial=-1)) + 1 for name, code in codes.items()}
    effective = {name: min(effective_number(share) for share in rows) for name, rows in shares.items()}
    nan = float("nan")
    few = [f"{name}: {n:.1f}" for name, n in effective.items() if n < min_effective]
    base = (int(used.sum()), counts, effective, f"clustered by {' and '.join(clusters)} (CR2, t)")
    if few:
        missing = int(np.ceil(min_effective - min(effective.values())))
        note = f"too few clusters ({', '.join(few)} effective); about {missing} more equal ones are needed"
        return Inference(value, nan, nan, nan, nan, nan, *base, note)
    stderr = float(np.sqrt(_variance(np.asarray(influence)[used], codes, shares)))
    df = min(effective.values()) - 1
    if stderr <= 1e-12 * max(1e-300, np.abs(values[used]).max()):
        return Inference(value, nan, nan, nan, nan, df, *base, "all values equal: no error to estimate")
    half = float(stats.t.ppf((1 + level) / 2, df)) * stderr
    p = float(2 * stats.t.sf(abs(value) / stderr, df))
    return Inference(value, value - half, value + half, stderr, p, df, *base)


def _sums(code: Codes, values: Floats) -> Floats:
    return np.bincount(code, values).astype(np.float64)


def _variance(influence: Floats, codes: Mapping[str, Codes], shares: Mapping[str, list[Floats]]) -> float:
    total, single = 0.0, []
    for size in range(1, len(codes) + 1):
        for names in combinations(codes, size):
            code = codes[names[0]]
            for name in names[1:]:
                code = pd.factorize(code * (codes[name].max() + 1) + codes[name])[0]
            sums = _sums(code, influence)
            leverage = np.max(shares[names[0]], axis=0) if size == 1 else np.zeros(sums.size)
            part = float((sums**2 / (1 - np.minimum(leverage, 0.99))).sum())
            total += part if size % 2 else -part
            single += [part] if size == 1 else []
    return max(total, *single)


def _check(values: Floats, parts: list[Floats], clusters: Mapping[str, Codes]) -> None:
    lengths = {"values": values.size, **{name: code.size for name, code in clusters.items()}}
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
