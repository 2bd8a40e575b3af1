"""Spreading new values over the MLPs of several layers, as MEMIT, EMMET and AlphaEdit do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from seesaw_cf.editors.locate.checks import allowed
from seesaw_cf.editors.locate.norms import before_norm
from seesaw_cf.editors.locate.optimise import Optimised, distance
from seesaw_cf.editors.locate.positions import PreparedEdit, RowEdits, at_subject, average_keys
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.weights import LowRank, WeightDelta, applied
from seesaw_cf.scoring.hf_scorer import obstacle


def oriented(parts: ModelParts, outputs: Tensor, inputs: Tensor, layer: int) -> LowRank:
    """Return the update "outputs @ inputs^T" in the stored orientation of a layer's weight.

    Args:
        parts: The model.
        outputs: (d, n).
        inputs: (d_ff, n).
        layer: The block with the changed MLP output projection.

    Returns:
        Factors in float32 (float64 for float64 models), on the weight's device.
    """
    weight = parts.weight(layer)
    wide = torch.promote_types(weight.dtype, torch.float32)
    outputs, inputs = (part.to(device=weight.device, dtype=wide).contiguous() for part in (outputs, inputs))
    if parts.row.orientation == "conv1d":
        return LowRank(inputs, outputs.T.contiguous())
    return LowRank(outputs, inputs.T.contiguous())


def keys_of(
    parts: ModelParts, edits: Sequence[PreparedEdit], layer: int, max_tokens: int, earlier: RowEdits | None = None
) -> Tensor:
    """Return MEMIT's keys K, (d_ff, n): half the bare prompt's key, half the mean of the other templates' keys.

    With `earlier` edits, one for each of the new ones, those of the models that have them.

    Source: MEMIT eq. 19; the weights 1/2 and 1/2 are those of the published program (memit/compute_ks.py:39-50).
    """
    rows = [row for edit in edits for row in edit.rows]
    if earlier:
        owners = [owner for owner, edit in zip(earlier.owners, edits, strict=True) for _ in edit.rows]
        earlier = earlier._replace(owners=owners)
    return average_keys(at_subject(parts, rows, layer, None, max_tokens, earlier).keys, edits, 0.5).T


def spread(
    parts: ModelParts,
    groups: Sequence[Sequence[PreparedEdit]],
    values: Sequence[Optimised],
    layers: Sequence[int],
    solve: Callable[[int, Sequence[Tensor]], Sequence[Tensor]],
    max_tokens: int,
    most: float | None = None,
) -> list[dict[str, LowRank]]:
    """Move the last layer's output at each subject to its target, an equal share of the rest at each layer.

    Keys and the remaining distance are read anew after each layer's update, from the model partly edited for the
    group, which is as before on returning, also after an exception. So what a layer may not give, the layers above it
    do. All groups take one layer before any takes the next, so that a layer's Cholesky factor is needed once.

    Source: MEMIT Algorithm 1 and eq. 20.

    Args:
        parts: The model.
        groups: Edits that are made together, n of them in a group; groups do not touch each other.
        values: z of each group, n of them, for the output of the last of `layers`.
        layers: In any order; edited from the lowest up.
        solve: Layer and keys K (d_ff, n) of each group -> A (d_ff, n); the layer's change is (z - now)^T / share times
            A^T.
        max_tokens: Tokens per forward pass.
        most: Share of a weight's norm that no change exceeds; None = no limit.

    Returns:
        For each group: parameter name -> update of rank n (or more, depending on `solve`), exactly zero for a group
        without a moved value.
    """
    ordered = sorted(layers)
    updates: list[dict[str, LowRank]] = [{} for _ in groups]
    for number, layer in enumerate(ordered):
        seen = _seen_by_each(parts, groups, updates, layer, ordered[-1], max_tokens)
        answers = solve(layer, [keys for keys, _, _ in seen])
        each = zip(updates, values, seen, answers, strict=True)
        for update, value, (_, outputs, now), answer in each:
            left = distance(value.initial.to(now.device), value.shift.to(now.device), now)
            residual = before_norm(parts, layer, outputs, left / (len(ordered) - number))
            name, change = parts.weight_name(layer), oriented(parts, residual.T, answer, layer)
            update[name] = LowRank(change.left * allowed(parts.model, name, change, most), change.right)
    return updates


def _seen_by_each(
    parts: ModelParts,
    groups: Sequence[Sequence[PreparedEdit]],
    updates: Sequence[dict[str, LowRank]],
    layer: int,
    last: int,
    max_tokens: int,
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return keys (d_ff, n), values (n, d) and outputs (n, d) of block `last`, of each group as updated so far.

    Keys and values are those of `layer`.
    """

    def seen(edits: Sequence[PreparedEdit], earlier: RowEdits | None = None) -> tuple[Tensor, Tensor, Tensor]:
        bare = at_subject(parts, [edit.rows[0] for edit in edits], layer, last, max_tokens, earlier)
        return keys_of(parts, edits, layer, max_tokens, earlier), bare.values, bare.stream

    deltas = [WeightDelta(update) for update in updates if update]
    if deltas and not _separate(parts, deltas, layer):
        activations = []
        for group, delta in zip(groups, deltas, strict=True):
            with applied(parts.model, delta):
                activations.append(seen(group))
        return activations
    owners = [number for number, group in enumerate(groups) for _ in group]
    every = [edit for group in groups for edit in group]
    keys, values, now = seen(every, RowEdits(deltas, owners) if deltas else None)
    sizes = [len(group) for group in groups]
    return list(zip(keys.split(sizes, 1), values.split(sizes), now.split(sizes)))


def _separate(parts: ModelParts, deltas: Sequence[WeightDelta], layer: int) -> bool:
    """Return whether updates can be terms added beside the weights: those of all groups then go through one batch.

    Weights in half precision are written, so that the layers above make up for what rounding takes away.
    """
    dtype = parts.weight(layer).dtype
    return dtype == torch.promote_types(dtype, torch.float32) and not any(obstacle(parts.model, d) for d in deltas)
