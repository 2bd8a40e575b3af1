"""Linear algebra with the second moment C: one Cholesky factor per layer serves every edit (Woodbury)."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import EditError
from seesaw_cf.models.tensors import in_float64

_LOG = logging.getLogger(__name__)
_RIDGES = (0.0, 1e-6, 1e-4)
"""Shares of the mean diagonal that are added until a matrix can be factored; float32 rounding may need the last."""


def all_finite(matrix: Tensor) -> bool:
    """Return whether no entry is NaN or infinite, without a temporary of the matrix's size as `isfinite` makes."""
    least, most = matrix.aminmax()
    return math.isfinite(float(least)) and math.isfinite(float(most))


def check_keys(keys: Tensor, size: int) -> None:
    """Refuse keys that are not (size, n).

    Raises:
        EditError: Their shape is another.
    """
    if keys.ndim != 2 or len(keys) != size:
        raise EditError(f"keys of shape {tuple(keys.shape)}, expected ({size}, number of keys): d_ff rows.")


def key_groups(groups: Sequence[Tensor]) -> list[Tensor]:
    """Return the keys of each group.

    Raises:
        EditError: There are none, or something else is among them.
    """
    matrices = list(groups)
    strange = [type(keys).__name__ for keys in matrices if not isinstance(keys, Tensor)]
    if strange or not matrices:
        raise EditError(f"keys: got {shown(strange) if strange else 'no group'}, expected a tensor for each group.")
    return matrices


@dataclass(frozen=True)
class Factor:
    """Cholesky factor of C (+ ridge * I), in float64.

    Attributes:
        lower: (d_ff, d_ff).
        ridge: What was added to the diagonal; 0 unless C is singular to rounding.
    """

    lower: Tensor
    ridge: float

    def inverse_times(self, columns: Tensor) -> Tensor:
        """Return C^-1 times `columns`.

        Args:
            columns: (d_ff, n).

        Returns:
            (d_ff, n), float64, on the factor's device.

        Raises:
            EditError: The columns have another length.
        """
        check_keys(columns, len(self.lower))
        return torch.cholesky_solve(in_float64(columns).to(self.lower.device), self.lower)

    def inverse_times_each(self, groups: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
        """Return each matrix, in float64, and C^-1 times it; the factor is read once for all.

        Args:
            groups: (d_ff, n) each.

        Raises:
            EditError: Columns of another length.
        """
        for columns in groups:
            check_keys(columns, len(self.lower))
        every = in_float64(torch.cat(list(groups), 1)).to(self.lower.device)
        sizes = [columns.shape[1] for columns in groups]
        return list(zip(every.split(sizes, 1), self.inverse_times(every).split(sizes, 1), strict=True))

    def regularised(self, groups: Sequence[Tensor], weight: float) -> list[Tensor]:
        """Return (weight * C + K K^T)^-1 K of each group's keys K, without forming the (d_ff, d_ff) matrix.

        Woodbury: with S = C^-1 K / weight this is S (I + K^T S)^-1.
        Source: MEMIT eq. 14 (C_0 = weight * C).

        Args:
            groups: K, (d_ff, n) each.
            weight: Lambda of MEMIT.

        Returns:
            (d_ff, n) of each, float64.

        Raises:
            EditError: The keys have another length.
        """
        return [_woodbury(keys, solved / weight) for keys, solved in self.inverse_times_each(groups)]


def _woodbury(keys: Tensor, spread: Tensor) -> Tensor:
    small = torch.eye(keys.shape[1]).to(keys) + keys.T @ spread
    solved: Tensor = torch.linalg.solve(small.T, spread.T)
    return solved.T


def factorise(moment: Tensor, where: str, extra: float = 0.0) -> Factor:
    """Factor a second moment.

    Args:
        moment: C, (d_ff, d_ff), symmetric.
        where: For messages, e.g. "layer 5".
        extra: Added to the diagonal on purpose.

    Returns:
        The factor. A matrix that is singular to rounding (neurons that never fire, fewer tokens than d_ff) gets
        1e-6 of its mean diagonal added, or 1e-4 when that is too little, which is logged and reported in the delta's
        meta.

    Raises:
        EditError: Not finite, or not a second moment at all.
    """
    mean = float(in_float64(moment.diagonal()).mean())
    if not all_finite(moment):
        raise EditError(
            f"second moment of {where} has entries that are not finite. Delete the cached file and fit again."
        )
    for added in (share * mean for share in _RIDGES):
        matrix = moment.to(torch.float64, copy=True)
        matrix.diagonal().add_(extra + added)
        lower, failed = torch.linalg.cholesky_ex(matrix)
        if not int(failed):
            if added:
                _LOG.warning("second moment of %s is singular; added %.3g to its diagonal", where, added)
            return Factor(lower, added)
    raise EditError(
        f"second moment of {where} is not positive semi-definite (smallest eigenvalue "
        f"{float(torch.linalg.eigvalsh(in_float64(moment))[0]):.3g}). Delete the cached file and fit again with more "
        "texts."
    )
