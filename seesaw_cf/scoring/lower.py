"""Activations below the first edited block: computed once, used by every edited model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from seesaw_cf.scoring.exchange import exchanged
from seesaw_cf.scoring.forward import tree_context
from seesaw_cf.scoring.layout import Layout

__all__ = ["enter_at", "hidden_below"]


class _Enough(BaseException):
    """Ends a forward pass once the wanted block has answered."""


def hidden_below(model: PreTrainedModel, block: nn.Module, layout: Layout, packed: bool) -> tuple[Tensor, Any]:
    """Runs a layout up to and with one block.

    Args:
        model: The unedited model.
        block: The last block to run.
        layout: What to feed.
        packed: How `layout` was made.

    Returns:
        The block's output flattened to (positions, d), and the output as the block gave it, for its form.
    """
    seen: list[Any] = []

    def stop(_: nn.Module, __: Any, output: Any) -> None:
        seen.append(output)
        raise _Enough

    handle = block.register_forward_hook(stop)
    try:
        with tree_context(model, layout, packed), contextlib.suppress(_Enough):
            model(input_ids=layout.ids, position_ids=layout.positions, attention_mask=layout.mask, use_cache=False)
    finally:
        handle.remove()
    output = seen[0]
    hidden: Tensor = output[0] if isinstance(output, tuple) else output
    return hidden.flatten(0, -2), output


@contextlib.contextmanager
def enter_at(blocks: nn.ModuleList, first: int, hidden: Tensor, form: Any) -> Iterator[None]:
    """Inside the block, the model skips the blocks below `first`, and that one is given `hidden`.

    The model's own forward pass still makes positions, masks and everything else that the upper blocks are given.

    Args:
        blocks: The model's blocks.
        first: The first block that runs, at least 1.
        hidden: (batch, tokens, d) what enters it.
        form: Output of a block, from `hidden_below`, to answer in the same form.
    """
    answer = (hidden, *form[1:]) if isinstance(form, tuple) else hidden
    with exchanged(dict.fromkeys(list(blocks)[:first], lambda *_, **__: answer)):
        yield
