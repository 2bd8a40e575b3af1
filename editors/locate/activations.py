"""Keys, outputs and block outputs at the subject's last token, in one batched forward that stops early."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from seesaw_cf.editors.locate.positions import InputRow, PreparedEdit
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.hooks import hooked, stop_after, watch
from seesaw_cf.models.tensors import batches, pad
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.scoring.hf_scorer import per_token_deltas


class AtSubject(NamedTuple):
    """What was seen at the subject's last token of N rows, in the model's dtype (at least float32).

    Attributes:
        keys: (N, d_ff), input of the MLP output projection of the layer asked for.
        values: (N, d), its output.
        stream: (N, d), the output of the block asked for.
    """

    keys: Tensor
    values: Tensor
    stream: Tensor


class RowEdits(NamedTuple):
    """Low-rank edits of single rows.

    Attributes:
        deltas: The edits.
        owners: For each row, which one.
    """

    deltas: Sequence[WeightDelta]
    owners: Sequence[int]

    def among(self, parts: ModelParts, rows: Sequence[int]) -> AbstractContextManager[None]:
        """Make a batch of these rows go through their edits while the block runs."""
        return per_token_deltas(parts.model, self.deltas, torch.tensor([self.owners[row] for row in rows]))


def cut(row: InputRow) -> InputRow:
    """Cut a row behind the subject's last token: nothing after it can change what is seen there."""
    return InputRow(row.ids[: row.lookup + 1], row.lookup)


def at_subject(
    parts: ModelParts,
    rows: Sequence[InputRow],
    layer: int,
    block: int | None = None,
    max_tokens: int = 8192,
    edits: RowEdits | None = None,
) -> AtSubject:
    """Run rows up to the subject's last token and no block further than needed.

    Args:
        parts: The model.
        rows: N rows.
        layer: The block with the watched MLP output projection.
        block: The block with the watched output; `layer` when None. The pass stops after the later of the two.
        max_tokens: Tokens per forward, padding included.
        edits: Of the rows, where each goes through a model of its own; None = the model as it is.

    Returns:
        Keys, values and block outputs in the order of `rows`, without gradients.
    """
    block = layer if block is None else block
    projection, top = parts.mlp_out(layer), parts.block(max(layer, block))
    order: list[int] = []
    groups: list[tuple[Tensor, Tensor, Tensor]] = []
    for group in batches([row.lookup + 1 for row in rows], max_tokens):
        ids, mask = pad([cut(rows[index]).ids for index in group], parts.model.device)
        seen: dict[str, Tensor] = {}
        outputs: dict[str, nn.Module] = {"values": projection, "stream": parts.block(block)}
        own = edits.among(parts, group) if edits else contextlib.nullcontext()
        with torch.no_grad(), own, hooked([*watch(seen, {"keys": projection}, outputs), stop_after(top)]):
            parts.model(input_ids=ids, attention_mask=mask, use_cache=False)
        last = torch.tensor([rows[index].lookup for index in group])
        groups.append(tuple(_pick(seen[name], last) for name in ("keys", "values", "stream")))  # type: ignore[arg-type]
        order += group
    back = torch.tensor(order).argsort()
    return AtSubject(*(torch.cat([entry[k] for entry in groups])[back.to(groups[0][k].device)] for k in range(3)))


def _pick(seen: Tensor, last: Tensor) -> Tensor:
    seen = seen.reshape(len(last), -1, seen.shape[-1])  # OPT flattens its MLP's input
    chosen = seen[torch.arange(len(last), device=seen.device), last.to(seen.device)]
    return chosen.to(torch.promote_types(chosen.dtype, torch.float32))


def average_keys(keys: Tensor, edits: Sequence[PreparedEdit], bare_weight: float | None) -> Tensor:
    """Average keys over each edit's context templates.

    Args:
        keys: (rows, d_ff or d), the rows of all edits one after another.
        edits: The edits, for the number of their rows.
        bare_weight: Weight of the first row, the bare prompt; other rows share the rest evenly; None = plain mean.

    Returns:
        (edits, d_ff or d).
    """
    means = []
    for part in keys.split([len(edit.rows) for edit in edits]):
        if bare_weight is None or len(part) == 1:
            means.append(part.mean(0))
        else:
            means.append(bare_weight * part[0] + (1 - bare_weight) * part[1:].mean(0))
    return torch.stack(means)
