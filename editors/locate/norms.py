"""Moves of the residual stream through a norm that stands behind the MLP (Gemma 2 and 3, OLMo 2).

There a block adds N(v) = s * v / sqrt(mean(v^2) + eps) to the stream, v = W k being what the edited projection gives
and s the norm's scale. So a change of v is not a change of the stream of that size, and not every change of the stream
can be had: N(v) lies on the ellipsoid {s * u : mean(u^2) = c}, and c is the same for all v of one length.

A wanted move r asks for t = N(v) + r. The u that comes nearest to it, min ||s * u - t||^2 under mean(u^2) = 1, is
u = s t / (s^2 + m), entry by entry, with the one m > -min(s^2) that gives u its length (Lagrange's condition; the
problem of trust-region methods, e.g. Nocedal and Wright, Numerical Optimization, section 4.3). Where t is on the
ellipsoid, m is 0 and N gives exactly t. Of all multiples of u, which give nearly the same N, the one as long as v is
written: eps then weighs what it did, and so do the differences between the keys of one subject in several contexts,
which N magnifies by 1 / |v|.

Everything is read off the model's own module: s for vectors as long as v is N of a constant vector of that length.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from seesaw_cf.base.errors import UnsupportedModelError
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.tensors import in_float64

_HALVINGS = 100
"""Of the interval that m lies in, until float64 cannot tell its ends apart."""


def behind_norm(parts: ModelParts, layer: int, values: Tensor) -> Tensor:
    """Return what the stream gets of an MLP's output: itself, or what the norm between the two makes of it.

    Args:
        parts: The model.
        layer: The block of the MLP.
        values: (n, d), outputs of its output projection.

    Returns:
        (n, d).
    """
    if not parts.row.post_norm:
        return values
    norm = parts.block(layer).get_submodule(parts.row.post_norm)
    with torch.no_grad():
        normed: Tensor = norm(values.to(parts.weight(layer).device))
    return normed.to(values)


def before_norm(parts: ModelParts, layer: int, values: Tensor, residual: Tensor) -> Tensor:
    """Return what to add to an MLP's output so that the residual stream moves by `residual`, or as near as it can.

    This is `residual` itself unless a norm stands between the two (`Architecture.post_norm`); see the module.

    Args:
        parts: The model.
        layer: The block of the MLP.
        values: (n, d), outputs of its output projection.
        residual: (n, d), moves asked of the residual stream; where one is zero so is the answer.

    Returns:
        (n, d); with a norm, changes that keep the length of `values`.
    """
    if not parts.row.post_norm or not bool(residual.any()):
        return residual
    length = in_float64(values).square().mean(1, keepdim=True).sqrt()
    scale = in_float64(behind_norm(parts, layer, length.to(values).expand_as(values)))
    unit = _nearest(scale, in_float64(behind_norm(parts, layer, values)) + in_float64(residual))
    change = (unit * length - in_float64(values)).to(values)
    return change * residual.any(1, keepdim=True)


def _nearest(scale: Tensor, vectors: Tensor) -> Tensor:
    """Return the vectors of mean square 1 that `scale` brings nearest to the wanted ones, (n, d), in float64."""
    square, pull = scale.square(), scale * vectors
    least, flattest = square.min(1, keepdim=True)
    above = square - least  # s^2 + m = above + (m + least): the sum is exact near m = -least
    low = torch.zeros_like(least)
    high = pull.square().mean(1, keepdim=True).sqrt() + least
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        short = (pull / (above + middle)).square().mean(1, keepdim=True) <= 1
        low, high = torch.where(short, low, middle), torch.where(short, middle, high)
    unit = pull / (above + high)
    # Deep inside the ellipsoid no m gives the length; what is missing goes where it moves the stream least.
    rest = (vectors.shape[1] - unit.square().sum(1, keepdim=True)).clamp(min=0)
    free = unit.gather(1, flattest)
    return unit.scatter(1, flattest, torch.where(free < 0, -1.0, 1.0) * (free.square() + rest).sqrt())


def check_norms(parts: ModelParts, layers: Sequence[int], where: str) -> None:
    """Refuse a norm behind an MLP that is not an RMS norm: no value could be found in front of it.

    Args:
        parts: The model, or its outline without weights: the norm is tried with a scale and a bias of our own.
        layers: Which are to be edited.
        where: The editor, for the message.

    Raises:
        UnsupportedModelError: A norm that subtracts a mean, adds a bias, or is something else.
    """
    for layer in layers if parts.row.post_norm else ():
        norm = parts.block(layer).get_submodule(parts.row.post_norm)
        on = torch.device("cpu") if (device := parts.weight(layer).device).type == "meta" else device
        generator = torch.Generator().manual_seed(0)
        own = {name: torch.rand(p.shape, generator=generator).to(on) for name, p in norm.named_parameters()}
        unit = torch.randn(4, parts.width, generator=generator)
        unit = (unit / unit.square().mean(1, keepdim=True).sqrt()).to(on)
        output, scale = (torch.func.functional_call(norm, own, (rows,)) for rows in (3 * unit, torch.ones_like(unit)))
        if not torch.allclose(output, scale * unit, rtol=1e-3, atol=1e-3):
            raise UnsupportedModelError(
                f"{where}: {parts.row.post_norm} behind the MLP of layer {layer} is a {type(norm).__name__}, expected "
                "an RMS norm, scale * x / rms(x): through another no value can be written into the residual stream. "
                "Use ft or lora, or correct post_norm in architecture=..."
            )
