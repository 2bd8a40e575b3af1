"""The last block's MLP only where its output is asked for: nothing looks at the other tokens any more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

__all__ = ["last_mlp_only", "transformer_blocks"]


def transformer_blocks(model: PreTrainedModel) -> nn.ModuleList | None:
    """The decoder's first list of modules with as many members as it has layers; None without one."""
    config: Any = model.config.get_text_config(decoder=True)
    lists = (part for part in model.get_decoder().modules() if isinstance(part, nn.ModuleList))
    return next((part for part in lists if len(part) == config.num_hidden_layers), None)


def _last_mlp(model: PreTrainedModel) -> nn.Module | None:
    """The module called `mlp` in the last of the model's blocks; None where there is none of that name."""
    blocks = transformer_blocks(model)
    found = None if blocks is None else getattr(blocks[-1], "mlp", None)
    return found if isinstance(found, nn.Module) else None


def _at(given: Tensor, places: Tensor) -> Tensor:
    """(1, places, d) of a batch (rows, tokens, d)."""
    return given.flatten(0, -2).index_select(0, places.to(given.device))[None]


@contextlib.contextmanager
def last_mlp_only(model: PreTrainedModel, places: Tensor) -> Iterator[None]:
    """Inside the block, the last MLP is given the tokens at `places` only, and answers 0 for the others.

    Args:
        model: Any model; one whose last block has no module called `mlp` runs as it is.
        places: Sorted places in the flattened batch.
    """
    mlp = _last_mlp(model)
    if mlp is None:
        yield
        return
    shapes: list[Any] = []

    def narrow(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        shape = args[0].shape
        shapes.append(shape)
        whole = [isinstance(arg, Tensor) and arg.shape[:-1] == shape[:-1] for arg in args]
        return tuple(_at(arg, places) if own else arg for arg, own in zip(args, whole, strict=True))

    def widen(_: nn.Module, __: Any, output: Any) -> Any:
        answer: Tensor = output[0] if isinstance(output, tuple) else output
        wide = answer.new_zeros((*shapes.pop()[:-1], answer.shape[-1]))
        wide.flatten(0, -2).index_copy_(0, places.to(answer.device), answer[0])
        return (wide, *output[1:]) if isinstance(output, tuple) else wide

    handles = [mlp.register_forward_pre_hook(narrow), mlp.register_forward_hook(widen)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
