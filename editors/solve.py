"""Linear algebra with the second moment C: one Cholesky factor per layer serves every edit (Woodbury)."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from seesaw_cf.errors import EditError

__all__ = ["Factor", "all_finite", "factorise"]

_LOG = logging.getLogger(__name__)
_RIDGES = (0.0, 1e-6, 1e-4)
"""Shares of the mean diagonal that are added until a matrix can be factored; float32 rounding may need the last."""


def all_finite(matrix: Tensor) -> bool:
    """Whether no entry is NaN or infinite, without a temporary of the matrix's size as `isfinite` makes."""
    least, most = matrix.aminmax()
    return math.isfinite(float(least)) and math.isfinite(float(most))


@dataclass(frozen=True)
class Factor:
    """Cholesky factor of C (+ ridge * I), in float64.

    Attributes:
        lower: (d_ff, d_ff), lower triangular.
        ridge: What was added to the diagonal; 0 unless C is singular to rounding.
    """

    lower: Tensor
    ridge: float

    def inverse_times(self, columns: Tensor) -> Tensor:
        """C^-1 columns.

        Args:
            columns: (d_ff, n).

        Returns:
            (d_ff, n), float64, on the factor's device.
        """
        columns = columns.to(device=self.lower.device, dtype=torch.float64)
        half = torch.linalg.solve_triangular(self.lower, columns, upper=False)
        # cholesky_solve would copy the factor
        whole: Tensor = torch.linalg.solve_triangular(self.lower.mT, half, upper=True)
        return whole

    def regularised(self, keys: Tensor, weight: float) -> Tensor:
        """(weight * C + K K^T)^-1 K, without forming the (d_ff, d_ff) matrix.

        Woodbury: with S = C^-1 K / weight this is S (I + K^T S)^-1.
        Source: MEMIT eq. 14 (C_0 = weight * C).

        Args:
            keys: K, (d_ff, n).
            weight: Lambda of MEMIT.

        Returns:
            (d_ff, n), float64.
        """
        keys = keys.to(device=self.lower.device, dtype=torch.float64)
        spread = self.inverse_times(keys) / weight
        small = torch.eye(keys.shape[1], dtype=torch.float64, device=keys.device) + keys.T @ spread
        solved: Tensor = torch.linalg.solve(small.T, spread.T)
        return solved.T


def factorise(moment: Tensor, where: str, extra: float = 0.0) -> Factor:
    """Factors a second moment.

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
    mean = float(moment.diagonal().double().mean())
    if not all_finite(moment):
        raise EditError(
            f"second moment of {where} has entries that are not finite. Delete the cached file and fit again."
        )
    info = torch.zeros((), dtype=torch.int32, device=moment.device)
    for added in (share * mean for share in _RIDGES):
        lower = moment.to(torch.float64, copy=True).mT  # column by column, so that the factor takes the copy's place
        lower.diagonal().add_(extra + added)
        torch.linalg.cholesky_ex(lower, out=(lower, info))
        if int(info) == 0:
            if added:
                _LOG.warning("second moment of %s is singular; added %.3g to its diagonal", where, added)
            return Factor(lower, added)
    raise EditError(
        f"second moment of {where} is not positive semi-definite (smallest eigenvalue "
        f"{float(torch.linalg.eigvalsh(moment.double())[0]):.3g}). Delete the cached file and fit again with more "
        "texts."
    )
