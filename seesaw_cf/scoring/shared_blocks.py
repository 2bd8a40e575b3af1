"""Activations below the first edited block: computed once, used by every edited model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch import Tensor, nn
from transformers import PreTrainedModel

from seesaw_cf.models.hooks import exchanged, first_tensor, hooked, stop_after
from seesaw_cf.scoring.forward import feed, tree_context
from seesaw_cf.scoring.layout import Layout

__all__ = ["enter_at", "hidden_below"]


def hidden_below(model: PreTrainedModel, block: nn.Module, layout: Layout) -> tuple[Tensor, object]:
    """Runs a layout up to and with one block.

    Args:
        model: The unedited model.
        block: The last block to run.
        layout: What to feed.

    Returns:
        The block's output flattened to (positions, d), and the output as the block gave it, for its form.
    """
    seen: list[object] = []
    note = block.register_forward_hook(lambda _, __, output: seen.append(output))
    with tree_context(model, layout), hooked([note, stop_after(block)]):
        feed(model, layout)
    output = seen[0]
    return first_tensor(output).flatten(0, -2), output


@contextlib.contextmanager
def enter_at(blocks: nn.ModuleList, first: int, hidden: Tensor, form: object) -> Iterator[None]:
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
