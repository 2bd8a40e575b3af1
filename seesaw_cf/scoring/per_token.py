"""Low-rank edits as separate terms: each token of a batch can belong to another edited model.

An edited layer computes `x W + x A_e B_e` with the factors of the token's own edit e. The weights are not touched, so
nothing is rounded into them and nothing has to be restored.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from seesaw_cf.errors import DeltaMismatchError
from seesaw_cf.models.blocks import block_number, transformer_blocks
from seesaw_cf.models.weights import LowRank, WeightDelta, applied


def obstacle(model: PreTrainedModel, delta: WeightDelta) -> str:
    """Why a delta cannot be applied per token; "" when it can.

    Only products `left @ right` on the weight of a linear layer inside the list of transformer blocks can.
    """
    for name, update in delta.updates.items():
        owner, _, leaf = name.rpartition(".")
        if not isinstance(update, LowRank):
            return f"the change of {name!r} is a full matrix"
        if leaf != "weight" or not _is_linear(model, owner):
            return f"{name!r} is not the weight of a linear layer"
        if block_number(model, name) is None:
            return f"{name!r} is outside the transformer blocks"
    return ""


def _is_linear(model: PreTrainedModel, path: str) -> bool:
    try:
        module = model.get_submodule(path)
    except AttributeError:
        return False
    return isinstance(module, (nn.Linear, Conv1D)) and bool(module.weight.is_floating_point())


def first_block(model: PreTrainedModel, deltas: Sequence[WeightDelta]) -> tuple[nn.ModuleList, int] | None:
    """The model's blocks and the number of the lowest one that any delta changes; None when nothing is changed.

    Args:
        model: The model.
        deltas: Deltas without an `obstacle`.
    """
    blocks, names = transformer_blocks(model), {name for delta in deltas for name in delta.updates}
    numbers = [number for name in names if (number := block_number(model, name)) is not None]
    return (blocks, min(numbers)) if blocks is not None and numbers else None


@contextlib.contextmanager
def per_token_deltas(
    model: PreTrainedModel, deltas: Sequence[WeightDelta], owners: Tensor, places: Tensor | None = None
) -> Iterator[None]:
    """Inside the block, every token is computed with the weights of its own edited model.

    Args:
        model: The unedited model; forward hooks are added for the length of the block.
        deltas: n low-rank deltas.
        owners: Which delta each token belongs to, -1 for none: one number per token of the flattened batch, or one per
            batch row (then it also holds while a generation grows).
        places: Sorted places of the tokens that a module may be given alone; see `seesaw_cf.scoring.fast.last_block`.

    Raises:
        DeltaMismatchError: A delta cannot be applied per token, or its shape does not fit.
    """
    for delta in deltas:
        if reason := obstacle(model, delta):
            raise DeltaMismatchError(f"{reason}, so it cannot be applied per token. Use `applied` instead.")
    names = sorted({name for delta in deltas for name in delta.updates})
    handles = []
    try:
        for name in names:
            module = model.get_submodule(name.rpartition(".")[0])
            handles.append(module.register_forward_hook(_term(module, name, deltas, owners, places)))
        yield
    finally:
        for handle in handles:
            handle.remove()


def edited(model: PreTrainedModel, delta: WeightDelta) -> AbstractContextManager[object]:
    """The model with one edit: written into its weights, or beside them where writing would round much of it away.

    Args:
        model: The unedited model; as before after the block.
        delta: Any delta. In low precision one with an `obstacle` is written all the same.
    """
    if model.dtype in (torch.bfloat16, torch.float16) and not obstacle(model, delta):
        return per_token_deltas(model, [delta], torch.zeros(1, dtype=torch.long))
    return applied(model, delta)


def _term(module: Any, name: str, deltas: Sequence[WeightDelta], owners: Tensor, places: Tensor | None) -> Any:
    """The hook that adds `x A B` of each token's own edit to a linear layer's output."""
    weight: Tensor = module.weight
    wide = torch.promote_types(weight.dtype, torch.float32)
    ins, outs, owner = [], [], []
    for number, delta in enumerate(deltas):
        update = delta.updates.get(name)
        if not isinstance(update, LowRank):
            continue
        if update.shape != weight.shape:
            raise DeltaMismatchError(
                f"the delta for {name!r} has shape {tuple(update.shape)}, the parameter has {tuple(weight.shape)}. "
                "Apply it to the model it was made on."
            )
        swapped = isinstance(module, nn.Linear)  # stores (out, in): x (L R)^T = (x R^T) L^T
        ins.append(update.right.T if swapped else update.left)
        outs.append(update.left.T if swapped else update.right)
        owner += [number] * update.left.shape[1]
    enter = torch.cat([part.to(weight.device, wide) for part in ins], 1)
    leave = torch.cat([part.to(weight.device, wide) for part in outs], 0)
    mine = owners.to(weight.device)[:, None] == torch.tensor(owner, device=weight.device)[None]
    few = mine[:0] if places is None else mine[places.to(mine.device)]

    def hook(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        inputs = args[0].flatten(0, -2)
        own = few if len(inputs) == len(few) else mine.repeat_interleave(len(inputs) // len(mine), 0)
        term: Tensor = ((inputs.to(wide) @ enter) * own) @ leave
        return (output.to(wide) + term.view(output.shape)).to(output.dtype)

    return hook
