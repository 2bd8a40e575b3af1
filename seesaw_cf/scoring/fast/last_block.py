"""The last block only where its output is asked for: nothing looks at the other tokens' any more."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from seesaw_cf.models.architectures import transformer_blocks
from seesaw_cf.models.hooks import exchanged

_ATTENTION = ("q_proj", "o_proj", "out_proj", "c_proj", "dense")
"""Names of projections to queries and from attention back to the stream, outside the MLP."""


def _own_output_only(model: PreTrainedModel) -> list[nn.Module]:
    """Return the last block's modules with output that matters to its own token alone: all but keys and values."""
    blocks = transformer_blocks(model)
    if blocks is None:
        return []
    inside = [(path.split("."), part) for path, part in blocks[-1].named_modules()]
    mlp = [part for path, part in inside if path == ["mlp"]]
    attention = [part for path, part in inside if path[0] != "mlp" and path[-1] in _ATTENTION]
    return mlp + [part for part in attention if type(part) in (nn.Linear, Conv1D)]


@contextlib.contextmanager
def last_block_only(model: PreTrainedModel, places: Tensor | None) -> Iterator[None]:
    """Restrict the last block's MLP, queries and attention output to the tokens at `places` inside the `with` block.

    For all other tokens they answer 0.

    Args:
        model: Any model; what has no module of a known name in its last block is computed for every token, as are
            queries that share a matrix with keys and values.
        places: Sorted places in the flattened batch; None for all.
    """
    if places is None:
        yield
        return
    with exchanged({part: partial(_narrow, part.forward, places) for part in _own_output_only(model)}):
        yield


def _narrow(forward: Callable[..., Any], places: Tensor, *args: Any) -> Any:
    """Return what `forward` answers about the tokens at `places`, and zeros elsewhere."""
    shape = args[0].shape[:-1]
    own = [isinstance(arg, Tensor) and arg.shape[:-1] == shape for arg in args]
    output = forward(*(_rows_at(arg, places) if mine else arg for arg, mine in zip(args, own, strict=True)))
    answer: Tensor = output[0] if isinstance(output, tuple) else output
    wide = answer.new_zeros((*shape, answer.shape[-1]))
    wide.flatten(0, -2).index_copy_(0, places.to(answer.device), answer[0])
    return (wide, *output[1:]) if isinstance(output, tuple) else wide


def _rows_at(hidden: Tensor, places: Tensor) -> Tensor:
    """Return the tokens at `places`, (1, places, d), of a batch (rows, tokens, d)."""
    return hidden.flatten(0, -2).index_select(0, places.to(hidden.device))[None]
