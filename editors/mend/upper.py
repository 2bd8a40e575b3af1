"""Forward passes that skip the blocks below the edited ones: no edit changes what they give for a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import PreTrainedModel

from seesaw_cf.editors.mend.factors import Batch, forward
from seesaw_cf.models.blocks import block_number, transformer_blocks
from seesaw_cf.models.hooks import enter_at, first_tensor, hooked, stop_after


@dataclass
class Upper:
    """The blocks from the first edited one upwards; what enters them is kept for texts that come again.

    Attributes:
        names: Full names of the edited weights.
        limit: Most bytes that are kept.
    """

    names: Sequence[str]
    limit: int
    _kept: dict[tuple[int, ...], Tensor] = field(default_factory=dict)
    _form: object = None

    def __call__(self, model: PreTrainedModel, batch: Batch) -> Tensor:
        """The logits of `forward` where there is a token, (B, T, vocabulary); behind the end of a text any numbers."""
        numbers = [block_number(model, name) for name in self.names]
        first = min((number for number in numbers if number is not None), default=0)
        blocks = transformer_blocks(model)
        if blocks is None or None in numbers or first == 0:
            return forward(model, batch)
        rows = [tuple(ids[:n].tolist()) for ids, n in zip(batch.ids, batch.mask.sum(1).tolist(), strict=True)]
        missing = [index for index, row in enumerate(rows) if row not in self._kept]
        states = self._kept
        if missing:
            new = self._run(model, blocks[first - 1], batch, missing, [rows[index] for index in missing])
            room = self.limit - sum(tensor.nbytes for tensor in self._kept.values())
            states = self._kept | new
            if sum(tensor.nbytes for tensor in new.values()) <= room:
                self._kept = states
        hidden = torch.nn.utils.rnn.pad_sequence([states[row] for row in rows], batch_first=True)
        hidden = torch.nn.functional.pad(hidden, (0, 0, 0, batch.ids.shape[1] - hidden.shape[1]))
        with enter_at(blocks, first, hidden.to(batch.ids.device), self._form):
            return forward(model, batch)

    def _run(
        self,
        model: PreTrainedModel,
        block: torch.nn.Module,
        batch: Batch,
        missing: Sequence[int],
        rows: Sequence[tuple[int, ...]],
    ) -> dict[tuple[int, ...], Tensor]:
        seen: list[object] = []
        note = block.register_forward_hook(lambda _, __, output: seen.append(output))
        chosen = list(missing)
        with torch.no_grad(), hooked([note, stop_after(block)]):
            forward(model, Batch(batch.ids[chosen], batch.mask[chosen], batch.labels[chosen]))
        self._form = seen[0]
        return {row: hidden[: len(row)].clone() for row, hidden in zip(rows, first_tensor(seen[0]), strict=True)}
