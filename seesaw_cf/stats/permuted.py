"""Contrasts between people of two kinds within edits, for many ways to label people: what a permutation test draws.

The t of `Crossing` (two clusterings, by edit and by person) again, to rounding, for many labellings at once; of a
thousand cells (a person under an edit) or more in single precision. Labels are few while people are many: what was
measured is added up by label first, and what depends on labels follows from these sums. No person is on both sides of a
contrast, so that a person's share is that of one side. All edits together are the sum of their blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
_CELLS, _EDITS, _PEOPLE = 1 << 22, 1 << 16, 1 << 18
"""Cells x labellings, and edits and people x contrasts x labellings, in one go: more do not stay near the processor."""
_SPARSE = 0.1  # below this share of filled cells a sparse product is the faster one

_Sums = tuple[Floats, Floats, Floats, Floats]
"""What labels make of some edits; sums of several blocks add up. The last axes are contrasts and labellings.

Edits with people on both sides; (measures, ...) sums over edits of the difference of the sides, and of its square;
(4, measures, sides, ...) sums over edits: centred values of a side, squares of a person's centred sum, its product with
the person's prompts, squares of these prompts."""


def _p(sums: _Sums, of_people: Floats, sides: Floats) -> Floats:
    """Return p of t, (measures, contrasts, labellings).

    Args:
        sums: Of some edits.
        of_people: See `_Block.of_people`.
        sides: (contrasts, labellings, 2, people) 1.0 where a person is on this side.
    """
    edits, gap, of_squares, of_cells = sums
    k = np.maximum(edits, 1)
    value, (means, *squares) = gap / k, of_cells / k
    share, values = of_people[0] / k[..., None].astype(of_people.dtype), of_people[1:]
    scale = np.minimum(share, 0.99)
    np.divide(1, np.subtract(1, scale, out=scale), out=scale)
    terms = np.empty((6 + len(values), *share.shape), share.dtype)
    a2, s2, s3, s4, r4, r5 = terms[:6]  # as `_satterthwaite` names their sums
    np.multiply(share, share, out=a2)
    np.multiply(scale, a2, out=s2)
    np.multiply(s2, share, out=s3)
    np.multiply(s2, a2, out=s4)
    np.multiply(s2, s2, out=r4)
    np.multiply(r4, share, out=r5)
    squares_of_people = []
    for own, out in zip(values, terms[6:]):
        np.multiply(scale, own, out=out)
        squares_of_people.append(_dot(out, own))
        out *= share
    powers = _dot(terms[:, None], np.moveaxis(sides, 2, 0))
    bias, free, least = _satterthwaite(powers[:6])
    of_person = np.array(squares_of_people) / k**2 + (means**2 * powers[1] - 2 * means * powers[6:] / k).sum(axis=1)
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

    def sums(self, kinds: Codes, labels: Floats) -> tuple[_Sums, list[Floats]]:
        """Add up over edits.

        Args:
            kinds: (labellings, the block's people) row of `labels` that a person has.
            labels: (kinds, 2, contrasts) 1.0 where such a person is on this side.

        Returns:
            The sums, and for `of_people` what a person's prompts under an edit weigh: (matrices, sides, contrasts,
            labellings, edits).
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
        return (np.count_nonzero(both, axis=-1), gap.sum(axis=-1), _dot(gap, gap), np.array(cells)), weights

    def of_people(self, weights: Sequence[Floats], sides: Floats) -> Floats:
        """Return (1 + measures, contrasts, labellings, people): sums over a person's prompts of 1 / prompts of the own
        side, and of their centred values over the same.

        Args:
            weights: See `sums`.
            sides: See `_p`; of the block's people.
        """
        out = np.empty((len(weights), *sides.shape[:2], sides.shape[-1]), sides.dtype)
        for one, matrix, own in zip(out, [self._counts, *self._both], weights):
            flat = own.reshape(len(own), -1, self._n_edits)  # (parts, sides x contrasts x labellings, edits)
            if isinstance(matrix, np.ndarray):
                whole = np.concatenate(flat, axis=1) @ matrix.T
            else:  # people stand side by side in all that follows
                whole = np.ascontiguousarray((matrix @ flat.swapaxes(1, 2).reshape(-1, flat.shape[1])).T)
            first, second = whole.reshape(*own.shape[1:-1], -1)
            np.multiply(first, sides[..., 0, :], out=one)
            second *= sides[..., 1, :]
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
        edits, people = np.divmod(cell, n_people)
        self.dtype: np.dtype[Any] = np.dtype(np.float64 if len(cell) < _SINGLE_FROM else np.float32)
        n: Floats = np.asarray(np.bincount(code), self.dtype)
        # what an edit does to everybody cancels in every contrast; without it less is lost to rounding
        sums = np.array([np.bincount(code, column - mean[edit]) for column, mean in zip(values.T, means)])
        sums /= np.maximum(np.abs(sums).max(axis=1, keepdims=True), _TINY)  # t has no unit; squares in float32 need one
        ends = [0, *(np.flatnonzero(np.diff(within[first])) + 1), len(first)]  # edits of a block follow each other
        self.n_blocks, self._measures, self._blocks = len(ends), len(sums), []
        self._n_edits, self._n_cells = len(first), len(cell)
        for start, stop in pairwise(ends):
            rows = slice(*np.searchsorted(edits, [start, stop]))
            own: Floats = np.asarray(sums[:, rows], self.dtype)
            self._blocks.append(_Block(edits[rows] - start, people[rows], n[rows], own, n_people))
        # where blocks are about other people each, to add them up costs more than all edits as one more block
        if any(not isinstance(block.people, slice) for block in self._blocks):
            whole: Floats = np.asarray(sums, self.dtype)
            self._whole: _Block | None = _Block(edits, people, n, whole, n_people)
        else:
            self._whole = None

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
        labels = np.stack([member, other], axis=1).astype(self.dtype)
        n_contrasts = labels.shape[2]
        tested = np.ones((self.n_blocks, n_contrasts), bool) if tested is None else tested
        out = np.full((self.n_blocks, self._measures, n_contrasts, len(kinds)), np.nan)
        for rows in _slices(len(kinds), _EDITS // (n_contrasts * self._n_edits), _CELLS // self._n_cells):
            if self._whole is None:
                self._added(out[..., rows], kinds[rows], labels, np.asarray(tested.any(axis=1)))
                continue
            for at, block in enumerate([self._whole, *self._blocks]):
                chosen = np.flatnonzero(tested[at])
                if chosen.size:
                    out[at][:, chosen, rows] = self._alone(block, kinds[rows, block.people], labels[..., chosen])
        out[~np.broadcast_to(tested[:, None, :, None], out.shape)] = np.nan
        return out.swapaxes(2, 3) * (_TIE_SLACK if self.dtype == np.float32 else 1.0)

    def _alone(self, block: _Block, kinds: Codes, labels: Floats) -> Floats:
        """Return p of a block, of so many labellings at a time as stay near the processor."""
        sums, weights = block.sums(kinds, labels)
        found = []
        for part in _slices(len(kinds), _PEOPLE // (labels.shape[2] * kinds.shape[1])):
            sides = _sides(labels, kinds[part])
            people = block.of_people([own[..., part, :] for own in weights], sides)
            found.append(_p(_part(sums, part), people, sides))
        return np.concatenate(found, axis=-1)

    def _added(self, out: Floats, kinds: Codes, labels: Floats, tested: NDArray[np.bool_]) -> None:
        """Fill in p of all edits together, whose sums are those of the blocks, and of each block where any is tested;
        all are about everybody."""
        made = [block.sums(kinds, labels) for block in self._blocks]
        for part in _slices(len(kinds), _PEOPLE // (labels.shape[2] * kinds.shape[1])):
            sides, total = _sides(labels, kinds[part]), np.zeros(1, self.dtype)
            for found, block, (sums, weights), wanted in zip(out[1:], self._blocks, made, tested[1:]):
                people = block.of_people([own[..., part, :] for own in weights], sides)
                total = total + people
                if wanted:
                    found[..., part] = _p(_part(sums, part), people, sides)
            every = [reduce(np.add, column) for column in zip(*(_part(sums, part) for sums, _ in made))]
            out[0][..., part] = _p((every[0], every[1], every[2], every[3]), total, sides)


def _sides(labels: Floats, kinds: Codes) -> Floats:
    """Return (contrasts, labellings, 2, people) 1.0 where a person is on this side."""
    return labels.T.take(kinds, axis=2).swapaxes(1, 2)


def _part(sums: _Sums, part: slice) -> _Sums:
    edits, gap, squares, cells = sums
    return edits[..., part], gap[..., part], squares[..., part], cells[..., part]


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
