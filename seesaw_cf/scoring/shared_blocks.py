"""Activations below the first edited block: computed once, used by every edited model."""

from __future__ import annotations

from torch import Tensor, nn
from transformers import PreTrainedModel

from seesaw_cf.models.hooks import first_tensor, hooked, stop_after
from seesaw_cf.scoring.forward import feed, tree_context
from seesaw_cf.scoring.layout import Layout


def hidden_below(model: PreTrainedModel, block: nn.Module, layout: Layout) -> tuple[Tensor, object]:
    """Run a layout up to and with one block.

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
