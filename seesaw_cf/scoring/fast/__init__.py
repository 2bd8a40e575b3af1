"""Fast paths of the trie scorer: without any of them the scores are the same but for rounding, only later.

Each is a context that lets some modules of the model run another forward function. What each gains (seconds
without it over seconds with it) is measured by `python -m benchmarks.fast_paths`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from torch import Tensor
from transformers import PreTrainedModel

from seesaw_cf.scoring.fast.activations import fused_activations
from seesaw_cf.scoring.fast.last_block import last_block_only

__all__ = ["PATHS", "fast_paths"]

PATHS: dict[str, Callable[[PreTrainedModel, Tensor | None], AbstractContextManager[None]]] = {
    "activations": lambda model, _: fused_activations(model),
    "last block": last_block_only,
}
"""In the order in which they are entered: a later one runs what an earlier one left as a module's forward function."""


@contextlib.contextmanager
def fast_paths(model: PreTrainedModel, places: Tensor | None) -> Iterator[None]:
    """Take every fast path while the block runs.

    Args:
        model: Its modules are as before afterwards, also after an exception.
        places: Sorted places in the flattened output that are asked; None when all are.
    """
    with contextlib.ExitStack() as entered:
        for path in PATHS.values():
            entered.enter_context(path(model, places))
        yield
