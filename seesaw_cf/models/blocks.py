"""Where a model's transformer blocks are, found in the model itself: no table is needed to look at or skip a block."""

from __future__ import annotations

from typing import Any

from torch import nn
from transformers import PreTrainedModel


def transformer_blocks(model: PreTrainedModel) -> nn.ModuleList | None:
    """The decoder's first list of modules with as many members as it has layers; None without one."""
    config: Any = model.config.get_text_config(decoder=True)
    lists = (part for part in model.get_decoder().modules() if isinstance(part, nn.ModuleList))
    return next((part for part in lists if len(part) == config.num_hidden_layers), None)


def block_number(model: PreTrainedModel, name: str) -> int | None:
    """Number of the transformer block that holds a parameter or module of this full name; None outside the blocks."""
    blocks = transformer_blocks(model)
    path = next((path for path, part in model.named_modules() if part is blocks), None)
    if path is None or not name.startswith(f"{path}."):
        return None
    return int(name[len(path) + 1 :].split(".")[0])
