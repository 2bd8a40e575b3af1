"""Contrasts between people of two kinds within edits, for many ways to label people: what a permutation test draws.

The t of `Crossing` (two clusterings, by edit and by person) again, to rounding, for many labellings at once; of a
thousand cells (a person under an edit) or more in single precision. Labels are few while people are many: what was
measured is added up by label first, and what depends on labels follows from these sums. No person is on both sides of a
contrast, so that a person's share is that of one side. All edits together are the sum of their blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
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
_SPARSE = 0.05  # below this share of filled cells a sparse product is the faster one

_Sums = tuple[Floats, Floats, Floats, Floats, Floats]
"""What labels make of some edits; sums of several blocks add up. The last axes are contrasts and labellings.

Edits with people on both sides; (measures, ...) sums over edits of the difference of the sides, and of its square;
(4, measures, sides, ...) sums over edits: centred values of a side, squares of a person's centred sum, its product with
the person's prompts, squares of these prompts; (1 + measures, ..., people of the block) sums over a person's prompts of
1 / prompts of the own side, and of their centred values over the same."""


def _p(sums: _Sums, sides: Floats) -> Floats:
    """Return p of t, (measures, contrasts, labellings).

    Args:
        sums: Of some edits.
        sides: (contrasts, labellings, 2, people) 1.0 where a person is on this side.
    """
    edits, gap, of_squares, of_cells, of_people = sums
    k = np.maximum(edits, 1)
    value, (means, *squares) = gap / k, of_cells / k
    share, values = of_people[0] / k[..., None].astype(of_people.dtype), of_people[1:]
    scale = 1 / (1 - np.minimum(share, 0.99))
    weighted = scale * values
    terms = np.empty((6 + len(weighted), *share.shape), share.dtype)
    a2, s2, s3, s4, r4, r5 = terms[:6]  # as `_satterthwaite` names their sums
    np.multiply(share, share, out=a2)
    np.multiply(scale, a2, out=s2)
    np.multiply(s2, share, out=s3)
    np.multiply(s2, a2, out=s4)
    np.multiply(s2, s2, out=r4)
    np.multiply(r4, share, out=r5)
    np.multiply(weighted, share, out=terms[6:])
    powers = np.moveaxis(np.moveaxis(terms, 0, -2) @ sides.mT, (-2, -1), (0, 1)).astype(np.float64)
    bias, free, least = _satterthwaite(powers[:6])
    of_person = _dot(weighted, values) / k**2 + (means**2 * powers[1] - 2 * means * powers[6:] / k).sum(axis=1)
    squared, crossed, counts = (total / k for total in squares)
    of_cell = (squared - 2 * means * crossed + means**2 * counts).sum(axis=1)
    of_edit = np.maximum(of_squares - k * value**2, 0) / np.maximum(k * (k - 1), 1)
    of_person = bias * of_person
    total = of_edit + of_person - of_cell
    variance = np.maximum(total, np.maximum(of_edit, of_person))
    good = (edits >= _LEAST) & (np.minimum(free + 1, least) >= _LEAST) & (variance > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        df = variance**2 / (of_edit**2 / np.maximum(k - 1, 1e-9) + of_person**2 / np.maximum(free, 1e-9))
        p = 2 * special.stdtr(df, -np.abs(value) / np.sqrt(variance))
    return np.where(good, p, np.nan)


class _Block:
    """Edits that are averaged, and who was asked under them.

    Attributes:
        people: Indices of the people asked under these edits; all people where at least half of them were asked.
    """

    people: Codes | slice

    def __init__(self, edit: Codes, person: Codes, counts: Floats, sums: Floats, n_people: int) -> None:
        """Prepare what does not depend on labels.

        Args:
            edit, person: (cells,) codes of an edit of these, and of a person asked under it.
            counts, sums: (cells,) and (measures, cells) prompts, and sums of their values.
            n_people: People with labels.
        """
        self.people = slice(None)
        asked_people, place = np.unique(person, return_inverse=True)
        if asked_people.size < n_people / 2:  # with more, to select them costs what smaller sums save
            self.people, person, n_people = asked_people, place, asked_people.size
        self._edit, self._person, self._n_edits, self._measures = edit, person, int(edit.max()) + 1, len(sums)
        columns = [counts, counts**2, *sums, *(counts * sums), *(sums * sums)]
        different = {column.tobytes(): column for column in columns}  # several are one where everybody is asked once
        self._place = [list(different).index(column.tobytes()) for column in columns]
        self._columns = np.column_stack(list(different.values()))
        shape, at = (n_people, self._n_edits), (person.astype(np.int32), edit.astype(np.int32))  # half the bytes
        asked = sparse.csr_array((counts, at), shape=shape)
        self._counts = _matrix(asked)
        self._both = [_matrix(sparse.hstack([sparse.csr_array((own, at), shape=shape), asked], "csr")) for own in sums]

    def sums(self, kinds: Codes, labels: Floats, sides: Floats) -> _Sums:
        """Add up over edits, and over the edits of each person.

        Args:
            kinds: (labellings, the block's people) row of `labels` that a person has.
            labels: (kinds, 2, contrasts) 1.0 where such a person is on this side.
            sides: See `_p`.
        """
        times, size = len(kinds), len(labels) * len(kinds) * self._n_edits
        place = (kinds.T * times + np.arange(times)) * self._n_edits
        index_type: type[np.signedinteger[Any]] = np.int32 if size < 2**31 else np.int64
        code = place.astype(index_type).take(self._person, axis=0) + self._edit.astype(index_type)[:, None]
        ones, each = np.ones(code.size, self._columns.dtype), np.arange(0, code.size + 1, times)
        rows = sparse.csc_array((ones, code.ravel(), each), shape=(size, len(code)))  # of a cell: one in each labelling
        by_kind = (rows @ self._columns).reshape(len(labels), -1, self._columns.shape[1])
        of_column = np.ascontiguousarray(by_kind.transpose(2, 0, 1))
        by_side = labels.reshape(len(labels), -1).T @ of_column
        every = by_side.reshape(-1, *labels.shape[1:], times, self._n_edits)[self._place]
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
        cells = [
            _dot(mean - middle, wider),
            _dot(yy - middle * (yn + apart), wide * wide),
            _dot(apart, wide * inverse),
            np.broadcast_to(_dot(inverse * inverse, nn), y.shape[:-1]),
        ]
        weights = [inverse[None], *(np.array([wide, -wide * own]) for own in middle)]
        of_people = np.empty((len(weights), *sides.shape[:2], sides.shape[-1]), sides.dtype)
        for out, matrix, own in zip(of_people, [self._counts, *self._both], weights):
            parts = np.concatenate(own.reshape(len(own), -1, self._n_edits), axis=1)  # (sides, parts x edits)
            whole = parts @ matrix.T if isinstance(matrix, np.ndarray) else np.asarray(matrix @ parts.T).T
            first, second = whole.reshape(*own.shape[1:-1], -1)
            np.multiply(first, sides[..., 0, :], out=out)
            out += second * sides[..., 1, :]
        totals = np.count_nonzero(both, axis=-1), gap.sum(axis=-1), _dot(gap, gap), np.array(cells)
        return *totals, of_people


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
        edits, people = np.divmod(cell, n_people)
        self.dtype: np.dtype[Any] = np.dtype(np.float64 if len(cell) < _SINGLE_FROM else np.float32)
        n: Floats = np.asarray(np.bincount(code), self.dtype)
        # what an edit does to everybody cancels in every contrast; without it less is lost to rounding
        sums = np.array([np.bincount(code, column - mean[edit]) for column, mean in zip(values.T, means)])
        sums /= np.maximum(np.abs(sums).max(axis=1, keepdims=True), _TINY)  # t has no unit; squares in float32 need one
        ends = [0, *(np.flatnonzero(np.diff(within[first])) + 1), len(first)]  # edits of a block follow each other
        self.n_blocks, self._measures, self._n_people, self._blocks = len(ends), len(sums), n_people, []
        for start, stop in pairwise(ends):
            rows = slice(*np.searchsorted(edits, [start, stop]))
            own: Floats = np.asarray(sums[:, rows], self.dtype)
            self._blocks.append(_Block(edits[rows] - start, people[rows], n[rows], own, n_people))

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
        member, other = member.astype(self.dtype), other.astype(self.dtype)
        labels = np.stack([member, other], axis=1)
        sides = labels.T.take(kinds, axis=2).swapaxes(1, 2)
        of_blocks = [sides[..., block.people] for block in self._blocks]
        parts = [block.sums(kinds[:, block.people], labels, own) for block, own in zip(self._blocks, of_blocks)]
        out = np.full((self.n_blocks, self._measures, *sides.shape[:2]), np.nan)
        for at, (sums, own) in enumerate([(self._total(parts), sides), *zip(parts, of_blocks)]):
            chosen = slice(None) if tested is None or tested[at].all() else tested[at]
            edits, gap, squares, cells = (part[..., chosen, :] for part in sums[:4])
            out[at][:, chosen] = _p((edits, gap, squares, cells, sums[4][:, chosen]), own[chosen])
        return out.swapaxes(2, 3) * (_TIE_SLACK if self.dtype == np.float32 else 1.0)

    def _total(self, parts: Sequence[_Sums]) -> _Sums:
        """Return the sums of all edits together, of all people with labels."""
        people = np.zeros((*parts[0][4].shape[:-1], self._n_people), self.dtype)
        for block, part in zip(self._blocks, parts):
            people[..., block.people] += part[4]
        edits, gap, squares, cells = (reduce(np.add, column) for column in zip(*(part[:4] for part in parts)))
        return edits, gap, squares, cells, people


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
