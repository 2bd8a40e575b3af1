"""Contrasts between people of two kinds within edits, for many ways to label people: what a permutation test draws.

The t of `Crossing` (two clusterings, by edit and by person) again, to rounding, for many labellings at once; of a
thousand cells (a person under an edit) or more in single precision. Labels are few while people are many: what was
measured is added up by label first, and what depends on labels follows from these sums. No person is on both sides of a
contrast, so that a person's share is that of one side.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.crossing import Codes

Matrix = sparse.csr_array | Floats
_LEAST = MIN_EFFECTIVE - 1e-4  # five equal clusters are five, whatever the last digits
_SINGLE_FROM = 1 << 10
"""Cells from which sums are taken in single precision, in half the time: p of t above 1e-10 is right to 1e-3 then."""
_TIE_SLACK = 1 - 1e-3  # what such a p is multiplied by, so that equal ones stay equal: never in favour of a claim
_TINY = np.finfo(np.float64).tiny
_CELLS, _EDITS, _PEOPLE = 1 << 22, 1 << 15, 1 << 17
"""Cells x labellings, and edits and people x contrasts x labellings, in one go: more do not stay near the processor."""
_SPARSE = 0.05  # below this share of filled cells a sparse product is the faster one


class _Block:
    """Edits that are averaged, and the people who were asked under them.

    Attributes:
        edits: Their codes.
        people: Indices of these people.
    """

    def __init__(self, edits: slice, edit: Codes, person: Codes, counts: Floats, sums: Floats) -> None:
        """Prepare what does not depend on labels.

        Args:
            edits: Their codes.
            edit, person: (cells,) codes of an edit of these, and of a person asked under it.
            counts, sums: (cells,) and (measures, cells) prompts, and sums of their values.
        """
        self.edits = edits
        self.people, place = np.unique(person, return_inverse=True)
        shape = (self.people.size, edits.stop - edits.start)
        at = (place.astype(np.int32), (edit - edits.start).astype(np.int32))  # half the bytes
        asked = sparse.csr_array((counts, at), shape=shape)
        own = (sparse.csr_array((column, at), shape=shape) for column in sums)
        self._matrices = [_matrix(asked), *(_matrix(sparse.hstack([column, asked], "csr")) for column in own)]

    def p(self, sums: Floats, weights: Floats, sides: Floats) -> Floats:
        """Return p of t, (measures, contrasts, labellings).

        Args:
            sums, weights: See `LabelledPeople._by_edit`; of the block's edits.
            sides: (contrasts, 2, labellings, people) 1.0 where a person of the block is on this side.
        """
        n_measures = len(self._matrices) - 1
        edits, *totals = sums.sum(axis=-1, dtype=np.float64)
        k = np.maximum(edits, 1)
        value, of_squares, *cells = np.array(totals).reshape(10, n_measures, *k.shape) / k
        means, squared, crossed, counts = np.reshape(cells, (4, 2, n_measures, *k.shape))
        share, *values = self._of_people(weights / k[..., None].astype(weights.dtype), sides)
        scale = 1 / (1 - np.minimum(share, 0.99))
        terms = np.empty((6 + n_measures, *share.shape), share.dtype)
        a2, s2, s3, s4, r4, r5 = terms[:6]  # as `_satterthwaite` names their sums
        np.multiply(share, share, out=a2)
        np.multiply(scale, a2, out=s2)
        np.multiply(s2, share, out=s3)
        np.multiply(s2, a2, out=s4)
        np.multiply(s2, s2, out=r4)
        np.multiply(r4, share, out=r5)
        squares = []
        for own, out in zip(values, terms[6:]):
            weighted = scale * own
            squares.append(_dot(weighted, own))
            np.multiply(weighted, share, out=out)
        across = np.moveaxis(terms, 0, -2) @ np.moveaxis(sides, 1, -1)  # (contrasts, labellings, terms, sides)
        powers = np.moveaxis(across, (-2, -1), (0, 1)).astype(np.float64)
        bias, free, least = _satterthwaite(powers[:6])
        crossing = means**2 * powers[1][:, None] - 2 * means * powers[6:].swapaxes(0, 1)
        of_person = bias * (np.array(squares) + crossing.sum(axis=0))
        of_cell = (squared - 2 * means * crossed + means**2 * counts).sum(axis=0) / k
        of_edit = np.maximum(of_squares - value**2, 0) / np.maximum(k - 1, 1)
        variance = np.maximum(of_edit + of_person - of_cell, np.maximum(of_edit, of_person))
        good = (edits >= _LEAST) & (np.minimum(free + 1, least) >= _LEAST) & (variance > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            df = variance**2 / (of_edit**2 / np.maximum(k - 1, 1e-9) + of_person**2 / np.maximum(free, 1e-9))
            p = 2 * special.stdtr(df, -np.abs(value) / np.sqrt(variance))
        return np.where(good, p, np.nan)

    def _of_people(self, weights: Floats, sides: Floats) -> Floats:
        """Return what weights make of each person's prompts, and of their values: (1 + measures, contrasts, ...)."""
        out = np.empty((len(self._matrices), len(sides), *sides.shape[2:]), sides.dtype)
        of_matrix = np.split(weights, np.arange(1, len(weights), 2))
        for one, matrix, own in zip(out, self._matrices, of_matrix):
            parts = np.concatenate(own.reshape(len(own), -1, own.shape[-1]), axis=1)  # (sides, parts x edits)
            whole = parts @ matrix.T if isinstance(matrix, np.ndarray) else np.asarray(matrix @ parts.T).T
            first, second = whole.reshape(*own.shape[1:-1], -1)
            np.multiply(first, sides[:, 0], out=one)
            second *= sides[:, 1]
            one += second
        return out


class LabelledPeople:
    """Who was asked under which edit, with the values of one or more measures of the same prompts.

    The first block is all edits together; each further block is the edits with one code.

    Attributes:
        n_blocks: How many there are.
        dtype: Of the sums.
    """

    def __init__(self, edit: Codes, person: Codes, block: Codes, values: Floats, n_people: int) -> None:
        """Add values up over the prompts of a person under an edit.

        Args:
            edit, person, block: (n,) codes of every prompt; an edit of two blocks is two edits.
            values: (n, measures) finite observations.
            n_people: People with labels, also those who were not asked.
        """
        within = np.unique(block, return_inverse=True)[1]
        _, first, edit = np.unique(within * (edit.max() + 1) + edit, return_index=True, return_inverse=True)
        means = np.array([np.bincount(edit, column) for column in values.T]) / np.bincount(edit)
        cell, code = np.unique(edit * n_people + person, return_inverse=True)
        self._edit, self._person = np.divmod(cell, n_people)
        self.dtype: np.dtype[Any] = np.dtype(np.float64 if len(cell) < _SINGLE_FROM else np.float32)
        n: Floats = np.asarray(np.bincount(code), self.dtype)
        # what an edit does to everybody cancels in every contrast; without it less is lost to rounding
        sums = np.array([np.bincount(code, column - mean[edit]) for column, mean in zip(values.T, means)])
        sums /= np.maximum(np.abs(sums).max(axis=1, keepdims=True), _TINY)  # t has no unit; squares in float32 need one
        y: Floats = np.asarray(sums, self.dtype)
        columns = [n, n**2, *y, *(n * y), *(y * y)]
        different = {column.tobytes(): column for column in columns}  # several are one where everybody is asked once
        self._place = [list(different).index(column.tobytes()) for column in columns]
        self._columns = np.column_stack(list(different.values()))
        starts = [0, *(np.flatnonzero(np.diff(within[first])) + 1)]  # edits of a block follow each other
        self._n_edits, self._measures, self._blocks = len(first), len(y), []
        for start, stop in [(0, len(first)), *pairwise([*starts, len(first)])]:
            rows = slice(*np.searchsorted(self._edit, [start, stop]))
            self._blocks.append(_Block(slice(start, stop), self._edit[rows], self._person[rows], n[rows], y[:, rows]))
        self.n_blocks = len(self._blocks)

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
        labels = np.stack([member, other]).astype(self.dtype).T  # (contrasts, kinds, sides)
        labels = np.ascontiguousarray(labels.swapaxes(1, 2))
        tested = np.ones((self.n_blocks, len(labels)), bool) if tested is None else tested
        out = np.full((self.n_blocks, self._measures, len(labels), len(kinds)), np.nan)
        for rows in _slices(len(kinds), _EDITS // (len(labels) * self._n_edits), _CELLS // len(self._edit)):
            sums, weights = self._by_edit(kinds[rows], labels)
            for at in np.flatnonzero(tested.any(axis=1)):
                found, block, chosen = out[at], self._blocks[at], np.flatnonzero(tested[at])
                own, asked = labels[chosen], kinds[rows, block.people]
                own_sums, own_weights = (made[..., block.edits][..., chosen, :, :] for made in (sums, weights))
                for part in _slices(len(asked), _PEOPLE // (chosen.size * block.people.size)):
                    p = block.p(own_sums[..., part, :], own_weights[..., part, :], own.take(asked[part], axis=2))
                    found[:, chosen, rows.start + part.start : rows.start + part.stop] = p
        return out.swapaxes(2, 3) * (_TIE_SLACK if self.dtype == np.float32 else 1.0)

    def _by_edit(self, kinds: Codes, labels: Floats) -> tuple[Floats, Floats]:
        """Return what labels make of each edit; the last axes are contrasts, labellings and edits.

        Args:
            kinds: See `p`.
            labels: (contrasts, sides, kinds) 1.0 where such a person is on this side.

        Returns:
            (1 + 10 measures, ...) whether both sides were asked, then for all measures: the difference of the sides,
            its square, and of each side: centred values, squares of a person's centred sum, its product with the
            person's prompts, squares of these prompts; (1 + 2 measures, sides, ...) weights of a person's prompts:
            1 / prompts of the side, then of each measure what its sum is multiplied by, and what centres it.
        """
        times, size = len(kinds), labels.shape[2] * len(kinds) * self._n_edits
        place = (kinds.T * times + np.arange(times)) * self._n_edits
        index_type: type[np.signedinteger[Any]] = np.int32 if size < 2**31 else np.int64
        code = place.astype(index_type).take(self._person, axis=0) + self._edit.astype(index_type)[:, None]
        ones, each = np.ones(code.size, self._columns.dtype), np.arange(0, code.size + 1, times)
        rows = sparse.csc_array((ones, code.ravel(), each), shape=(size, len(code)))  # of a cell: one in each labelling
        by_kind = (rows @ self._columns).reshape(labels.shape[2], -1, self._columns.shape[1])
        by_side = labels.swapaxes(0, 1).reshape(-1, labels.shape[2]) @ np.ascontiguousarray(by_kind.transpose(2, 0, 1))
        every = by_side.reshape(-1, 2, len(labels), times, self._n_edits)[self._place]
        (n, nn), (y, yn, yy) = every[:2], every[2:].reshape(3, self._measures, *every.shape[1:])
        count = n[0] + n[1]
        both = (n[0] > 0) & (n[1] > 0)
        inverse = both / np.maximum(n, 1)
        wider = both * np.sqrt(count / np.maximum(count - 1, 1))  # the other people of an edit are known to be a sample
        wide = wider * inverse
        middle = ((y[:, 0] + y[:, 1]) / np.maximum(count, 1))[:, None]
        mean = y * inverse
        gap = mean[:, 0] - mean[:, 1]
        apart = yn - middle * nn
        of_sides = np.array(
            [
                (mean - middle) * wider,
                (yy - middle * (yn + apart)) * wide**2,
                apart * wide * inverse,
                np.broadcast_to(inverse**2 * nn, y.shape),
            ]
        )
        sums = np.concatenate([both[None], gap, gap**2, of_sides.swapaxes(1, 2).reshape(-1, *both.shape)])
        weights = [inverse, *(part for own in middle for part in (wide, -wide * own))]
        return sums, np.array(weights)


def _slices(number: int, *sizes: int) -> Iterator[slice]:
    """Yield slices of at most so many, at least one, that together are all."""
    size = max(1, min(sizes))
    for start in range(0, number, size):
        yield slice(start, min(start + size, number))


def _matrix(whole: sparse.csr_array) -> Matrix:
    return whole if whole.nnz < _SPARSE * np.prod(whole.shape) else np.asarray(whole.toarray())


def _dot(first: Floats, second: Floats) -> Floats:
    """Return sums of products over the last axis."""
    return np.asarray(np.vecdot(first, second), np.float64)


def _satterthwaite(powers: Floats) -> tuple[Floats, Floats, Floats]:
    """Return bias factor, degrees of freedom and effective people of the smaller side.

    As `seesaw_cf.stats.crossing` has them, where each person is on one side: traces of either side add up.

    Args:
        powers: (6, sides, contrasts, labellings) sums over people of a^2, s a^2, s a^3, s a^4, s^2 a^4, s^2 a^5; a:
            share, s: scale.
    """
    a2, s2, s3, s4, r4, r5 = powers
    first = (s2 + a2 * s2 - 2 * s3).sum(axis=0)
    second = (r4 + 2 * (a2 * r4 - 2 * r5) + (a2 * s2 - s3) ** 2 - 2 * s2 * (a2 * s3 - s4) + s3**2).sum(axis=0)
    good = (first > 0) & (second > 0)
    bias = np.where(good, a2.sum(axis=0) / np.where(good, first, 1), 1.0)
    return bias, np.where(good, first**2 / np.where(good, second, 1), 0.0), 1 / np.maximum(a2.max(axis=0), 1e-12)
