"""Contrasts between people of two kinds within edits, for many ways to label people: what a permutation test draws.

The t of `Crossing` (two clusterings, by edit and by person) again, to rounding, for thousands of labellings at once:
who was asked how often under which edit becomes matrices of edits x people once, and labels are columns that these
are multiplied with. No person is on both sides of a contrast, so that a person's share is that of one side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from seesaw_cf.base.errors import RecordError
from seesaw_cf.stats.bootstrap import Floats, check_rows
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.crossing import Codes

Matrix = sparse.csr_array | Floats
_LEAST = MIN_EFFECTIVE - 1e-6  # five equal clusters are five, whatever the last digits
_SPARSE = 0.1  # below this share of filled cells a sparse product is the faster one


@dataclass(frozen=True, slots=True)
class _Sums:
    """What a contrast is made of, added up over edits; `columns` are labellings, sides are the last axis but one.

    Attributes:
        edits: (columns,) edits with people on both sides.
        value: (values, columns) mean difference of an edit.
        spread: (values, columns) squares of an edit's difference from that mean.
        means: (values, sides, columns) centred values.
        cells: (3, values, sides, columns) squares of a person's sum under an edit: values, with counts, counts.
        shares: (people, columns) weight of a person on its side.
        people: (values, people, columns) centred sums of a person, below 0 on the second side.
    """

    edits: Floats
    value: Floats
    spread: Floats
    means: Floats
    cells: Floats
    shares: Floats
    people: Floats


class _Block:
    """Edits that are averaged: who was asked under them, and what came out."""

    def __init__(self, edit: Codes, person: Codes, values: Floats) -> None:
        """Add values up over the prompts of a person under an edit.

        Args:
            edit, person: (n,) codes.
            values: (n, values) observations.
        """
        edit = np.unique(edit, return_inverse=True)[1]
        self.people, person = np.unique(person, return_inverse=True)
        self._shape = (int(edit.max()) + 1, len(self.people))
        means = np.array([np.bincount(edit, column) for column in values.T]) / np.bincount(edit)
        cell, code = np.unique(edit * self._shape[1] + person, return_inverse=True)
        n = np.bincount(code).astype(np.float64)
        # what an edit does to everybody cancels in every contrast; without it less is lost to rounding
        sums = [np.bincount(code, column - mean[edit]).astype(np.float64) for column, mean in zip(values.T, means)]
        counts = np.zeros(self._shape[0])
        counts[cell // self._shape[1]] = n
        # as a rule an edit asks each of its people equally often: two products of three follow from the first
        self._prompts = counts[:, None, None] if (counts[cell // self._shape[1]] == n).all() else None
        unequal = [] if self._prompts is not None else [n * n, *(y * n for y in sums)]
        self._labels = self._stacked(cell, [n, *sums, *(y * y for y in sums), *unequal])
        self._counts, self._totals = self._stacked(cell, [n], turned=True), self._stacked(cell, sums, turned=True)

    def _stacked(self, cell: Codes, columns: Sequence[Floats], turned: bool = False) -> Matrix:
        """Return matrices of edits x people, or the other way round, one below the other."""
        edits, people = self._shape
        row, column = np.divmod(cell, people)
        rows, (row, column) = (people, (column, row)) if turned else (edits, (row, column))
        row = np.concatenate([row + at * rows for at in range(len(columns))])
        places = (row, np.tile(column, len(columns)))
        shape = (rows * len(columns), edits * people // rows)
        whole: sparse.csr_array = sparse.csr_array((np.concatenate(columns), places), shape=shape)
        return whole if cell.size < _SPARSE * edits * people else np.asarray(whole.toarray())

    def _by_side(self, member: Floats, other: Floats) -> Floats:
        """Return the sums of a side under each edit, (sums, edits, sides, columns)."""
        every = member + other
        # groups of an axis that are compared with all others share these: once for columns that follow each other
        new = np.concatenate([[True], (every[:, 1:] != every[:, :-1]).any(axis=0)])
        sides = np.asarray(self._labels @ np.hstack([member, every[:, new]])).reshape(
            -1, self._shape[0], member.shape[1] + int(new.sum())
        )
        own = sides[:, :, : member.shape[1]]
        return np.stack([own, sides[:, :, member.shape[1] + np.cumsum(new) - 1] - own], axis=2)

    def sums(self, member: Floats, other: Floats) -> _Sums:
        """Add up over edits.

        Args:
            member, other: (people, columns) 1 where a person is on this side.
        """
        edits, columns, values = self._shape[0], member.shape[1], self._totals.shape[0] // self._shape[1]
        whole = self._by_side(member, other)
        n, (y, yy) = whole[0], whole[1 : 1 + 2 * values].reshape(2, values, edits, 2, columns)
        if self._prompts is None:
            nn, yn = whole[1 + 2 * values], whole[2 + 2 * values :]
        else:
            nn, yn = n * self._prompts, y * self._prompts
        compared, count = (n[:, 0] > 0) & (n[:, 1] > 0), n.sum(axis=1)
        inverse = compared[:, None] / np.maximum(n, 1)
        wide = inverse * np.sqrt(count / np.maximum(count - 1, 1))[:, None]
        middle = (y.sum(axis=2) / np.maximum(count, 1))[:, :, None]
        gaps = y * inverse
        gap = gaps[:, :, 0] - gaps[:, :, 1]
        used = compared.sum(axis=0).astype(np.float64)
        value = gap.sum(axis=1) / np.maximum(used, 1)
        apart = yn - middle * nn
        cells = [
            (wide**2 * (yy - middle * (yn + apart))).sum(axis=1),
            (wide * inverse * apart).sum(axis=1),
            np.broadcast_to((inverse**2 * nn).sum(axis=0), (values, 2, columns)),
        ]
        weights = np.concatenate([inverse[None], wide * middle])
        back = np.asarray(self._counts @ np.moveaxis(weights, 0, 1).reshape(edits, -1))
        shares, subtracted = np.split(back.reshape(-1, 1 + values, 2, columns), [1], axis=1)
        totals = np.asarray(self._totals @ wide.reshape(edits, -1)).reshape(values, -1, 2, columns)
        centred = totals - np.moveaxis(subtracted, 1, 0)
        return _Sums(
            used,
            value,
            (((gap - value[:, None]) * compared) ** 2).sum(axis=1),
            (wide * (y - n * middle)).sum(axis=1),
            np.array(cells),
            member * shares[:, 0, 0] + other * shares[:, 0, 1],
            member * centred[:, :, 0] - other * centred[:, :, 1],
        )


class LabelledPeople:
    """Who was asked under which edit, with the values of one or more measures of the same prompts.

    The first block is all edits together; each further block is the edits with one code.
    """

    def __init__(self, edit: Codes, person: Codes, block: Codes, values: Floats, n_people: int) -> None:
        """Prepare the matrices.

        Args:
            edit, person, block: (n,) codes of every prompt; an edit is in one block.
            values: (n, measures) finite observations.
            n_people: People with labels, also those who were not asked.

        Raises:
            RecordError: Lengths differ, or values are not finite.
        """
        check_rows("labelled people", ("edit", "person", "block"), edit=edit, person=person, block=block, values=values)
        if not np.isfinite(values).all():
            raise RecordError("labelled people: values are not all finite. Leave unscored rows out and count them.")
        self.n_people, self._measures = n_people, values.shape[1]
        chosen = [np.flatnonzero(block == code) for code in np.unique(block)]
        self._blocks = [_Block(edit[rows], person[rows], values[rows]) for rows in chosen]

    def p(self, member: Floats, other: Floats) -> Floats:
        """Return the two-sided p of t with Satterthwaite's degrees of freedom.

        Args:
            member, other: (people, columns) 1.0 where a person is on this side of the contrast, else 0.0.

        Returns:
            (1 + blocks, measures, columns); NaN below the floor of effective edits or people on a side.
        """
        parts, total = [], None
        for block in self._blocks:
            sides = member[block.people], other[block.people]
            sums = block.sums(*sides)
            parts.append(_p(sums, *sides))
            total = _added(total, sums, block.people, self.n_people)
        return np.array([_p(total, member, other), *parts] if total else parts)


def _added(total: _Sums | None, sums: _Sums, people: NDArray[np.intp], n_people: int) -> _Sums:
    """Return the sums over two sets of edits; those of the first are of all people."""
    shares = np.zeros((n_people, sums.shares.shape[1])) if total is None else total.shares
    of_people = np.zeros((len(sums.people), *shares.shape)) if total is None else total.people
    shares[people] += sums.shares
    of_people[:, people] += sums.people
    if total is None:
        return _Sums(sums.edits, sums.value, sums.spread, sums.means, sums.cells, shares, of_people)
    edits = total.edits + sums.edits
    step = sums.value - total.value
    part = sums.edits / np.maximum(edits, 1)
    spread = total.spread + sums.spread + step**2 * total.edits * part
    value = total.value + step * part
    return _Sums(edits, value, spread, total.means + sums.means, total.cells + sums.cells, shares, of_people)


def _p(sums: _Sums, member: Floats, other: Floats) -> Floats:
    """Return p of t for each measure and labelling."""
    k = np.maximum(sums.edits, 1)
    share = sums.shares / k
    scale = 1 / (1 - np.minimum(share, 0.99))
    squares = share * share
    powers = [squares, scale * squares]
    powers += [powers[-1] * share, powers[-1] * squares, powers[-1] ** 2]
    powers.append(powers[-1] * share)
    bias, free, least = _satterthwaite(
        np.array([[np.einsum("pc,pc->c", side, x) for x in powers] for side in (member, other)])
    )
    means = sums.means / k
    residuals = (sums.people - sums.shares * (member * means[:, None, 0] - other * means[:, None, 1])) / k
    of_person = bias * np.einsum("pc,vpc,vpc->vc", scale, residuals, residuals)
    squares, crossed, counts = sums.cells / k**2
    of_cell = (squares - 2 * means * crossed + means**2 * counts).sum(axis=1)
    of_edit = sums.spread / np.maximum(k * (k - 1), 1)
    total = of_edit + of_person - of_cell
    variance = np.where(total > 0, total, np.maximum(of_edit, of_person))
    good = (sums.edits >= _LEAST) & (np.minimum(free + 1, least) >= _LEAST) & (variance > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        df = variance**2 / (of_edit**2 / np.maximum(k - 1, 1e-9) + of_person**2 / np.maximum(free, 1e-9))
        p = 2 * special.stdtr(df, -np.abs(sums.value) / np.sqrt(variance))
    return np.where(good, p, np.nan)


def _satterthwaite(powers: Floats) -> tuple[Floats, Floats, Floats]:
    """Return bias factor, degrees of freedom and effective people of the smaller side.

    As `seesaw_cf.stats.crossing` has them, where each person is on one side: traces of either side add up.

    Args:
        powers: (sides, 6, columns) sums over people of a^2, s a^2, s a^3, s a^4, s^2 a^4, s^2 a^5; a: share, s: scale.
    """
    a2, s2, s3, s4, r4, r5 = np.moveaxis(powers, 1, 0)
    first = (s2 + a2 * s2 - 2 * s3).sum(axis=0)
    second = (r4 + 2 * (a2 * r4 - 2 * r5) + (a2 * s2 - s3) ** 2 - 2 * s2 * (a2 * s3 - s4) + s3**2).sum(axis=0)
    good = (first > 0) & (second > 0)
    bias = np.where(good, a2.sum(axis=0) / np.where(good, first, 1), 1.0)
    return bias, np.where(good, first**2 / np.where(good, second, 1), 0.0), 1 / np.maximum(a2.max(axis=0), 1e-12)
