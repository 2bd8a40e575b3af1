"""Spreading new values over the MLPs of several layers, as MEMIT, EMMET and AlphaEdit do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from seesaw_cf.editors.activations import at_subject, average_keys
from seesaw_cf.editors.arch import ModelParts
from seesaw_cf.editors.positions import PreparedEdit
from seesaw_cf.weights import LowRank, WeightDelta, applied

__all__ = ["keys_of", "oriented", "spread"]


def oriented(parts: ModelParts, outputs: Tensor, inputs: Tensor, layer: int) -> LowRank:
    """The update "outputs @ inputs^T" in the stored orientation of a layer's weight.

    Args:
        parts: The model.
        outputs: (d, n).
        inputs: (d_ff, n).
        layer: Whose MLP output projection is changed.

    Returns:
        Factors in float32 (float64 for float64 models), on the weight's device.
    """
    weight = parts.weight(layer)
    wide = torch.promote_types(weight.dtype, torch.float32)
    outputs, inputs = (part.to(device=weight.device, dtype=wide).contiguous() for part in (outputs, inputs))
    if parts.row.orientation == "conv1d":
        return LowRank(inputs, outputs.T.contiguous())
    return LowRank(outputs, inputs.T.contiguous())


def keys_of(parts: ModelParts, edits: Sequence[PreparedEdit], layer: int, max_tokens: int) -> Tensor:
    """MEMIT's keys K, (d_ff, n): half the bare prompt's key, half the mean of the other templates' keys.

    Source: MEMIT eq. 19; the weights 1/2 and 1/2 are those of the published program (memit/compute_ks.py:39-50).
    """
    rows = [row for edit in edits for row in edit.rows]
    return average_keys(at_subject(parts, rows, layer, max_tokens=max_tokens).keys, edits, 0.5).T


def spread(
    parts: ModelParts,
    edits: Sequence[PreparedEdit],
    targets: Tensor,
    layers: Sequence[int],
    solve: Callable[[int, Tensor], Tensor],
    max_tokens: int,
) -> dict[str, LowRank]:
    """Moves the last layer's output at each subject to its target, an equal share of the rest at each layer.

    Keys and the remaining distance are read anew after each layer's update, from the partly edited model, which is
    put back before returning, also after an exception.

    Source: MEMIT Algorithm 1 and eq. 20.

    Args:
        parts: The model.
        edits: n edits.
        targets: z, (n, d), for the output of the last of `layers`.
        layers: In any order; edited from the lowest up.
        solve: Layer and keys K (d_ff, n) -> A (d_ff, n); the layer's change is (targets - now)^T / share times A^T.
        max_tokens: Tokens per forward pass.

    Returns:
        Parameter name -> update of rank n (or more where `solve` says so).
    """
    ordered = sorted(layers)
    bare = [edit.rows[0] for edit in edits]
    updates: dict[str, LowRank] = {}
    for number, layer in enumerate(ordered):
        with applied(parts.model, WeightDelta(updates)):
            keys = keys_of(parts, edits, layer, max_tokens)
            now = at_subject(parts, bare, ordered[-1], max_tokens=max_tokens).stream
        residual = (targets.to(now.device) - now) / (len(ordered) - number)
        updates[parts.weight_name(layer)] = oriented(parts, residual.T, solve(layer, keys), layer)
    return updates
