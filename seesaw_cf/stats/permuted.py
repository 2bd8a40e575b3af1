"""Contrasts between people of two kinds within edits, for many ways to label people: what a permutation test draws.

The t of `Crossing` (two clusterings, by edit and by person) again, to rounding, for many labellings at once. Labels are
few while people are many: what was measured is added up by label first, and what depends on labels follows from these
sums. People who were asked equally often under the same edits, a profile, have the same share in a contrast. No person
is on both sides of a contrast, so that a person's share is that of one side.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from seesaw_cf.base.errors import RecordError
from seesaw_cf.stats.bootstrap import Floats, check_rows
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.crossing import Codes

Matrix = sparse.csr_array | Floats
_LEAST = MIN_EFFECTIVE - 1e-6  # five equal clusters are five, whatever the last digits
_ROWS = 512  # people in one go: more numbers do not stay near the processor
_SPARSE = 0.2  # below this share of filled cells a sparse product is the faster one


@dataclass(frozen=True, slots=True)
class _Sides:
    """What labels make of each edit. The last axes are labellings, sides and contrasts.

    Attributes:
        inverse: (edits, ...) 1 / prompts of a side; 0 where an edit has people on one side only.
        wide: (edits, ...) the same, widened because the other people of an edit are known to be a sample.
        middle: (edits, values, ..., 1, ...) mean of everybody on either side.
        gap: (edits, values, ...) difference of the sides, without the axis of sides.
        sums: (4, edits, values, ...) centred values of a side; squares of a person's centred sum; its product with the
            person's prompts; squares of these prompts.
    """

    inverse: Floats
    wide: Floats
    middle: Floats
    gap: Floats
    sums: Floats

    def of(self, edits: slice, chosen: Codes) -> _Sides:
        """Return some edits and contrasts."""
        inverse, wide, middle, gap = (
            part[edits][..., chosen] for part in (self.inverse, self.wide, self.middle, self.gap)
        )
        return _Sides(inverse, wide, middle, gap, self.sums[:, edits][..., chosen])


class _Block:
    """Edits that are averaged, and who was asked under them."""

    def __init__(self, edits: slice, edit: Codes, person: Codes, counts: Floats, sums: Floats) -> None:
        """Find profiles.

        Args:
            edits: Places among all edits.
            edit, person: (cells,) codes of an edit of these, counted from the first, and of a person asked under it.
            counts, sums: (cells,) and (values, cells) prompts, and sums of their values.
        """
        self.edits, n_edits = edits, edits.stop - edits.start
        self.people, person = np.unique(person, return_inverse=True)
        shape = (len(self.people), n_edits)
        asked = sparse.csr_array((counts, (person, edit)), shape=shape)
        ends = zip(asked.indptr, asked.indptr[1:])
        rows = [asked.indices[start:end].tobytes() + asked.data[start:end].tobytes() for start, end in ends]
        _, first, self.profile = np.unique(np.array(rows, object), return_index=True, return_inverse=True)
        self._counts = _matrix(asked[first])
        ones, every = np.ones(len(self.people)), np.arange(len(self.people))
        self._alike = sparse.csr_array((ones, (self.profile, every)), shape=(len(first), len(self.people)))
        totals = [sparse.csr_array((own, (person, edit)), shape=shape) for own in sums]
        parts = [slice(start, start + _ROWS) for start in range(0, len(self.people), _ROWS)]
        self._totals = [(part, [_matrix(total[part]) for total in totals]) for part in parts]

    def p(self, sides: _Sides, kinds: Codes, labels: Floats) -> Floats:
        """Return p of t, (values, labellings, contrasts).

        Args:
            sides: Of these edits.
            kinds: (labellings, all people) row of `labels` that a person has.
            labels: (kinds, 2, contrasts) 1 where such a person is on this side.
        """
        compared = sides.inverse[:, :, 0] > 0
        edits = compared.sum(axis=0)
        k = np.maximum(edits, 1)
        value, (means, *squares) = sides.gap.sum(axis=0) / k, sides.sums.sum(axis=1) / k[:, None]
        bias, free, least, of_person = self._of_people(sides, k, means, kinds, labels)
        squared, crossed, counts = (total / k[:, None] for total in squares)
        of_cell = (squared - 2 * means * crossed + means**2 * counts).sum(axis=2)
        spread = (((sides.gap - value) * compared[:, None]) ** 2).sum(axis=0)
        of_edit, of_person = spread / np.maximum(k * (k - 1), 1), bias * of_person / k**2
        total = of_edit + of_person - of_cell
        variance = np.where(total > 0, total, np.maximum(of_edit, of_person))
        good = (edits >= _LEAST) & (np.minimum(free + 1, least) >= _LEAST) & (variance > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            df = variance**2 / (of_edit**2 / np.maximum(k - 1, 1e-9) + of_person**2 / np.maximum(free, 1e-9))
            p = 2 * special.stdtr(df, -np.abs(value) / np.sqrt(variance))
        return np.where(good, p, np.nan)

    def _of_people(
        self, sides: _Sides, k: Codes, means: Floats, kinds: Codes, labels: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return what `_satterthwaite` does, and squares of people's residuals, (values, labellings, contrasts)."""
        share = _product(self._counts, sides.inverse) / k[:, None]
        own = labels.take(kinds.T[self.people], axis=0)
        people = _product(self._alike, own)
        scale = 1 / (1 - np.minimum(share, 0.99))
        squares = share * share
        powers = [squares, scale * squares]
        powers += [powers[-1] * share, powers[-1] * squares, powers[-1] ** 2]
        powers.append(powers[-1] * share)
        sums = np.array([np.einsum("ubsc,ubsc->bsc", people, power) for power in powers])
        subtracted = _product(self._counts, sides.wide[:, None] * sides.middle) + (share * k[:, None])[:, None] * means
        squares = np.zeros(sides.gap.shape[1:])
        for part, totals in self._totals:
            profile = self.profile[part]
            weights = own[part] * scale.take(profile, axis=0)
            for at, total in enumerate(totals):
                residual = _product(total, sides.wide) - subtracted[:, at].take(profile, axis=0)
                squares[at] += np.einsum("pbsc,pbsc,pbsc->bc", weights, residual, residual)
        return *_satterthwaite(sums), squares


class LabelledPeople:
    """Who was asked under which edit, with the values of one or more measures of the same prompts.

    The first block is all edits together; each further block is the edits with one code.

    Attributes:
        n_blocks: How many there are.
    """

    def __init__(self, edit: Codes, person: Codes, block: Codes, values: Floats, n_people: int) -> None:
        """Add values up over the prompts of a person under an edit.

        Args:
            edit, person, block: (n,) codes of every prompt; an edit of two blocks is two edits.
            values: (n, measures) finite observations.
            n_people: People with labels, also those who were not asked.

        Raises:
            RecordError: Lengths differ, or values are not finite.
        """
        check_rows("labelled people", ("edit", "person", "block"), edit=edit, person=person, block=block, values=values)
        if not np.isfinite(values).all():
            raise RecordError("labelled people: values are not all finite. Leave unscored rows out and count them.")
        within = np.unique(block, return_inverse=True)[1]
        _, first, edit = np.unique(within * (edit.max() + 1) + edit, return_index=True, return_inverse=True)
        means = np.array([np.bincount(edit, column) for column in values.T]) / np.bincount(edit)
        cell, code = np.unique(edit * n_people + person, return_inverse=True)
        self._edit, self._person = np.divmod(cell, n_people)
        n = np.bincount(code).astype(np.float64)
        # what an edit does to everybody cancels in every contrast; without it less is lost to rounding
        sums = np.array([np.bincount(code, column - mean[edit]) for column, mean in zip(values.T, means)])
        self._cells = [n, n * n, *sums, *(n * sums), *(sums * sums)]
        self._shape = (len(first), len(sums))
        ends = [0, *(np.flatnonzero(np.diff(within[first])) + 1), len(first)]  # edits of a block follow each other
        self.n_blocks = len(ends)
        slices = [slice(0, len(first)), *(slice(int(a), int(b)) for a, b in pairwise(ends))]
        self._blocks = []
        for own in slices:
            rows = (self._edit >= own.start) & (self._edit < own.stop)
            self._blocks.append(_Block(own, self._edit[rows] - own.start, self._person[rows], n[rows], sums[:, rows]))

    def p(self, kinds: Codes, member: Floats, other: Floats, tested: NDArray[np.bool_] | None = None) -> Floats:
        """Return the two-sided p of t with Satterthwaite's degrees of freedom.

        Args:
            kinds: (labellings, people) row of `member` and `other` that each person has.
            member, other: (kinds, contrasts) 1.0 where such a person is on this side of the contrast, else 0.0.
            tested: (1 + blocks, contrasts) which are computed; all when None.

        Returns:
            (1 + blocks, measures, labellings, contrasts); NaN below the floor of effective edits or people on a side,
            and for what is not computed.
        """
        labels = np.stack([member, other], axis=1)
        sides = self._sides(kinds, labels)
        out = np.full((len(self._blocks), self._shape[1], len(kinds), member.shape[1]), np.nan)
        for at, block in enumerate(self._blocks):
            chosen = np.arange(member.shape[1]) if tested is None else np.flatnonzero(tested[at])
            if chosen.size:
                out[at][:, :, chosen] = block.p(sides.of(block.edits, chosen), kinds, labels[:, :, chosen])
        return out

    def _sides(self, kinds: Codes, labels: Floats) -> _Sides:
        """Add up by edit and side."""
        (edits, values), size = self._shape, len(kinds) * len(labels)
        code = (self._edit[:, None] * size + np.arange(0, size, len(labels)) + kinds.T[self._person]).ravel()
        shape, flat = (edits, len(kinds), *labels.shape[1:]), labels.reshape(len(labels), -1)

        def by_side(column: Floats) -> Floats:
            by_kind = np.bincount(code, np.repeat(column, len(kinds)), edits * size)
            return np.reshape(by_kind.reshape(-1, len(labels)) @ flat, shape)

        n, nn, *more = map(by_side, self._cells)
        y, yn, yy = np.moveaxis(np.reshape(more, (3, values, *n.shape)), 1, 2)
        count = n.sum(axis=2, keepdims=True)
        inverse = (n > 0).all(axis=2, keepdims=True) / np.maximum(n, 1)
        wide = inverse * np.sqrt(count / np.maximum(count - 1, 1))
        middle = y.sum(axis=3, keepdims=True) / np.maximum(count, 1)[:, None]
        gaps = y * inverse[:, None]
        apart = yn - middle * nn[:, None]
        sums = [
            wide[:, None] * (y - n[:, None] * middle),
            wide[:, None] ** 2 * (yy - middle * (yn + apart)),
            (wide * inverse)[:, None] * apart,
            np.broadcast_to((inverse**2 * nn)[:, None], y.shape),
        ]
        return _Sides(inverse, wide, middle, gaps[:, :, :, 0] - gaps[:, :, :, 1], np.array(sums))


def _matrix(whole: sparse.csr_array) -> Matrix:
    return whole if whole.nnz < _SPARSE * np.prod(whole.shape) else np.asarray(whole.toarray())


def _product(matrix: Matrix, of_edits: Floats) -> Floats:
    """Return (rows, ...) of (rows, edits) and (edits, ...)."""
    return np.asarray(matrix @ of_edits.reshape(len(of_edits), -1)).reshape(-1, *of_edits.shape[1:])


def _satterthwaite(powers: Floats) -> tuple[Floats, Floats, Floats]:
    """Return bias factor, degrees of freedom and effective people of the smaller side.

    As `seesaw_cf.stats.crossing` has them, where each person is on one side: traces of either side add up.

    Args:
        powers: (6, labellings, sides, contrasts) sums over people of a^2, s a^2, s a^3, s a^4, s^2 a^4, s^2 a^5; a:
            share, s: scale.
    """
    a2, s2, s3, s4, r4, r5 = powers
    first = (s2 + a2 * s2 - 2 * s3).sum(axis=1)
    second = (r4 + 2 * (a2 * r4 - 2 * r5) + (a2 * s2 - s3) ** 2 - 2 * s2 * (a2 * s3 - s4) + s3**2).sum(axis=1)
    good = (first > 0) & (second > 0)
    bias = np.where(good, a2.sum(axis=1) / np.where(good, first, 1), 1.0)
    return bias, np.where(good, first**2 / np.where(good, second, 1), 0.0), 1 / np.maximum(a2.max(axis=1), 1e-12)
