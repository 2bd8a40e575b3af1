"""The variance of a mean of crossed values: weights and clusters prepared once, for any number of vectors of values.

Every edit is seen by many people and most people by many edits, so values are independent along neither dimension. The
variance adds what each dimension contributes and takes off what was counted twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.stats.bootstrap import Floats, check_rows

Codes = NDArray[np.intp]
_SIGNS = (1.0, -1.0)


@dataclass(frozen=True, slots=True)
class _Dimension:
    """One way of clustering: what it adds to (sign 1) or takes off (sign -1) the variance.

    Attributes:
        sign: Inclusion-exclusion.
        code: (rows,) cluster of every row.
        shares: One (clusters,) weight vector per part.
        scale, cube: (clusters,) small-sample corrections of each squared and each cubed cluster sum.
        df: Satterthwaite degrees of freedom of the sum.
        balanced: Both parts weight every cluster the same, so that its own effect cancels in their difference.
    """

    sign: int
    code: Codes
    shares: list[Floats]
    scale: Floats
    cube: Floats
    df: float
    balanced: bool


ClusterSums = tuple[Floats, Floats, Floats, float]
"""The parts of a mean, or of a difference of two, by cluster: (2, clusters) weighted sums of the values in either part
(of a mean the second is 0), and sums of the weights; (clusters,) correction of each squared sum; degrees of freedom."""


class Crossing:
    """The weights of a mean, or of a difference of two, with the clusters of its rows.

    Attributes:
        used: (n,) which rows have weight.
        counts: Dimension -> clusters with weight.
        sides: Dimension -> 1 / sum(share^2) of each part: as many equal clusters would carry it.
        effective: Dimension -> the least of its sides and of Satterthwaite's degrees of freedom plus 1. A side of one
            cluster has residual 0, adds nothing to the variance and so is not seen by the degrees of freedom.

    Source: Cameron, Gelbach and Miller (2011), inclusion-exclusion over dimensions; Bell and McCaffrey (2002),
        correction of residuals and degrees of freedom, here with cluster effects as the working model (Imbens and
        Kolesar 2016); MacKinnon, Nielsen and Webb (2024), no less than any dimension alone.
    """

    def __init__(self, parts: Sequence[Floats], clusters: Mapping[str, Codes]) -> None:
        """Prepare the sums.

        Args:
            parts: One weight vector (n,) that adds up to 1 for a mean; two for a difference, first minus second.
            clusters: Dimension -> (n,) cluster codes.

        Raises:
            RecordError: Lengths differ.
        """
        parts = [np.asarray(part) for part in parts]
        check_rows("crossing", **{f"part {number}": part for number, part in enumerate(parts)}, **clusters)
        self.used: NDArray[np.bool_] = np.any([part != 0 for part in parts], axis=0)
        self._parts = [part[self.used] for part in parts]
        self._weight: Floats = self._parts[0] - self._parts[1] if len(parts) > 1 else self._parts[0]
        codes = {name: _ranks(code[self.used]) for name, code in clusters.items()}
        self._dimensions = [
            self._dimension(codes, names) for size in range(1, len(codes) + 1) for names in combinations(codes, size)
        ]
        own = dict(zip(codes, self._dimensions))
        self._within = next((code for name, code in codes.items() if own[name].balanced), None)
        self.counts = {name: dimension.scale.size for name, dimension in own.items()}
        self.sides = {name: [1 / max(float(a @ a), 1e-12) for a in dimension.shares] for name, dimension in own.items()}
        self.side_counts = {
            name: [int(np.count_nonzero(a)) for a in dimension.shares] for name, dimension in own.items()
        }
        self.effective = {name: min(dimension.df + 1, *self.sides[name]) for name, dimension in own.items()}

    def _dimension(self, codes: Mapping[str, Codes], names: Sequence[str]) -> _Dimension:
        code = codes[names[0]]
        for name in names[1:]:
            pair = code * (int(codes[name].max()) + 1) + codes[name]
            steps = np.diff(pair, prepend=pair[:1])
            code = np.cumsum(steps > 0) if (steps >= 0).all() else pd.factorize(pair)[0]  # rows in order need no search
        n = int(code.max(initial=-1)) + 1
        shares = [np.bincount(code, part, n).astype(np.float64) for part in self._parts]
        balanced = len(shares) == 2 and bool(np.abs(shares[0] - shares[1]).max(initial=0.0) <= 1e-9)
        if len(names) > 1:
            return _Dimension(-1 if len(names) % 2 == 0 else 1, code, shares, np.ones(n), np.ones(n), np.inf, balanced)
        scale = 1 / (1 - np.minimum(np.max(shares, axis=0), 0.99))
        bias, df = _satterthwaite(shares, scale)
        cube = np.array([_cube(share) for share in shares])[np.argmax(shares, axis=0)]
        return _Dimension(1, code, shares, scale * bias, cube, df, balanced)

    def errors(self, values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the estimate, its standard error, degrees of freedom and skewness.

        Args:
            values: (n, columns) finite observations; each column is a separate data set.

        Returns:
            Four (columns,) arrays. The third cumulant adds and takes off what the variance does.
        """
        check_rows("crossing", weights=self.used, values=values)
        y = np.ascontiguousarray(values[self.used].T)  # sums along rows that lie apart would be slow
        estimate = np.asarray(sum(sign * (y @ part) for sign, part in zip(_SIGNS, self._parts)))
        centred = self._centred(y)
        total, third, singles = np.zeros(len(estimate)), np.zeros(len(estimate)), []
        for dimension in self._dimensions:
            residuals = self._residuals(dimension, y if dimension.balanced else centred)
            squares = residuals * residuals
            singles.append(squares @ dimension.scale)
            total += dimension.sign * singles[-1]
            third += dimension.sign * ((squares * residuals) @ dimension.cube)
        own = np.array(singles[: len(self.counts)])
        variance = np.maximum(total, own.max(axis=0))  # a difference of noisy parts; near 0 t would have no df
        free = 1 / np.maximum([dimension.df for dimension in self._dimensions[: len(self.counts)]], 1e-9)
        with np.errstate(invalid="ignore", divide="ignore"):
            return estimate, np.sqrt(variance), variance**2 / (own.T**2 @ free), third / variance**1.5

    def cluster_sums(self, values: Floats) -> ClusterSums:
        """Return what the first dimension makes the statistic of, cluster by cluster, for `seesaw_cf.stats.multiple`.

        Args:
            values: (n,) finite observations.
        """
        first, y = self._dimensions[0], values[self.used]
        sums = [np.bincount(first.code, part * y, first.scale.size) for part in self._parts]
        none = [np.zeros(first.scale.size)] * (2 - len(sums))
        return np.array(sums + none), np.array(first.shares + none), first.scale, first.df

    def _residuals(self, dimension: _Dimension, y: Floats) -> Floats:
        """Return (columns, clusters) weighted sums of every cluster, without what they add to the estimate."""
        sums = np.array([np.bincount(dimension.code, column * self._weight) for column in y])
        for sign, share, part in zip(_SIGNS, dimension.shares, self._parts):
            sums -= sign * np.outer(y @ part, share)
        return sums

    def _centred(self, y: Floats) -> Floats:
        """Remove each cluster's mean, which a contrast within clusters cancels; residuals keep their variance.

        Otherwise effects on a whole cluster would be taken off twice from the other dimensions.
        """
        if self._within is None:
            return y
        counts = np.bincount(self._within).astype(np.float64)
        means = by_cluster(self._within, y) / counts
        scale = np.sqrt(counts / np.maximum(counts - 1, 1))[self._within]
        centred = means[:, self._within]  # no second copy, for want of memory
        np.subtract(y, centred, out=centred)
        centred *= scale
        return centred


def _ranks(code: Codes) -> Codes:
    """Return codes from 0 in the order of these, without gaps."""
    if code.size and code.dtype.kind == "i" and code.min() >= 0 and code.max() < 8 * code.size:  # as codes mostly are
        return np.asarray((np.cumsum(np.bincount(code) > 0) - 1)[code], np.intp)
    return np.unique(code, return_inverse=True)[1]


def by_cluster(code: Codes, values: Floats) -> Floats:
    """Return (columns, clusters) sums of (columns, rows) by the cluster of each row."""
    return np.array([np.bincount(code, column) for column in values])


def _cube(share: Floats) -> float:
    """Return what makes a sum of cubed residuals unbiased when every cluster has a separate, skewed effect.

    For n equal clusters it is n^2 / ((n - 1) (n - 2)).
    """
    cubes = share**3
    expected = cubes @ ((1 - share) ** 3 + cubes - cubes.sum())
    return float(cubes.sum() / expected) if expected > 0 else 1.0


def _satterthwaite(shares: Sequence[Floats], scale: Floats) -> tuple[float, float]:
    """Return the bias factor and degrees of freedom of `scale @ sums**2` when every cluster has a separate effect.

    With independent cluster effects u of variance 1 the centred cluster sums of a part with shares a are
    (diag(a) - a a') u, so their covariance V is diag(a^2) plus a matrix of rank two. The sum of squares has mean tr(CV)
    and variance 2 tr(CVCV) with C = diag(scale); the variance of the mean itself is a'a.
    """
    columns = np.column_stack([column for a in shares for column in (a, a**2)])
    diagonal = np.sum([a**2 for a in shares], axis=0)
    inner = np.zeros((columns.shape[1], columns.shape[1]))
    for number, a in enumerate(shares):
        at = 2 * number
        inner[at : at + 2, at : at + 2] = [[float(a @ a), -1.0], [-1.0, 0.0]]
    weighted = columns * scale[:, None]
    cross = columns.T @ weighted @ inner
    first = float(scale @ diagonal + np.trace(cross))
    outer = inner @ (weighted.T @ (diagonal[:, None] * weighted))
    second = float((scale**2) @ diagonal**2 + 2 * np.trace(outer) + np.trace(cross @ cross))
    if first <= 0 or second <= 0:
        return 1.0, 0.0
    return float(diagonal.sum()) / first, first**2 / second
