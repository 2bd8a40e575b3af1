"""Whether a change of a matrix is a product of two thin ones, and which."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from seesaw_cf.models.weights import LowRank
from seesaw_cf.models.wide import in_float64

MOST_RANKS = 256
"""The largest rank that is looked for."""
_FIRST, _MORE = 8, 8  # the rank that is tried first; directions beside it that make the sketch of its range sure


def compress(change: Tensor, allowed: float) -> LowRank | None:
    """Write a matrix as a product, when one of small rank is as good as the matrix itself.

    A seeded random sketch finds the range (one power iteration, float64), and the product keeps the fewest directions
    that leave out no more than is allowed. Ranks are tried upwards from 8, doubling, as long as the product would hold
    at most half of the matrix's numbers.

    Args:
        change: (rows, columns).
        allowed: Largest Frobenius norm of what the product leaves out, such as that of the matrix's own rounding.

    Returns:
        The factors, in the matrix's dtype (at least float32), or None.

    Source: Halko, Martinsson and Tropp (2011), algorithms 4.4 and 5.1.
    """
    wide, (rows, columns) = in_float64(change), change.shape
    most = min(MOST_RANKS, rows * columns // (2 * (rows + columns)))
    rank = min(_FIRST, most)
    while rank:
        basis = _range(wide, min(rank + _MORE, rows, columns))
        inside = basis.mT @ wide
        left_out = float((wide - basis @ inside).norm())
        if left_out <= allowed:
            factors = _fewest(basis, inside, allowed**2 - left_out**2)
            if factors.left.shape[1] <= most:
                dtype = torch.promote_types(change.dtype, torch.float32)
                return LowRank(factors.left.to(dtype).contiguous(), factors.right.to(dtype).contiguous())
        if rank == most:
            return None
        rank = min(2 * rank, most)
    return None


def update_of(value: Tensor, own: Tensor) -> LowRank | Tensor:
    """Return new minus old weights, as a product where it is one but for their rounding (at least float32)."""
    wide = torch.promote_types(own.dtype, torch.float32)
    change = value.to(wide) - own.to(wide)
    allowed = torch.finfo(change.dtype).eps * max(float(in_float64(own).norm()), float(in_float64(own + change).norm()))
    factors = compress(change, allowed) if change.dim() == 2 and math.isfinite(allowed) else None
    return LowRank(factors.left.cpu(), factors.right.cpu()) if factors is not None else change.cpu()


def _range(matrix: Tensor, width: int) -> Tensor:
    """Return an orthonormal basis, (rows, width), of the directions that carry most of the matrix."""
    generator = torch.Generator().manual_seed(0)
    sketch = torch.randn(matrix.shape[1], width, generator=generator, dtype=matrix.dtype).to(matrix.device)
    basis: Tensor = torch.linalg.qr(matrix @ sketch).Q
    back: Tensor = torch.linalg.qr(matrix.mT @ basis).Q
    orthonormal: Tensor = torch.linalg.qr(matrix @ back).Q
    return orthonormal


def _fewest(basis: Tensor, inside: Tensor, spare: float) -> LowRank:
    """Return `basis @ inside` without its weakest directions; their squares sum to at most `spare`."""
    left, values, right = torch.linalg.svd(inside, full_matrices=False)
    weakest = values.flip(0).square().cumsum(0).flip(0)  # what is left out when one cuts before each
    rank = max(1, int((weakest > spare).sum()))
    root = values[:rank].sqrt()
    return LowRank(basis @ left[:, :rank] * root, root[:, None] * right[:rank])
