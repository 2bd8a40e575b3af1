"""Estimates of what a forward pass needs, and what to do when it was too much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from seesaw_cf.scoring.rows import TrieRow, subset


def token_bytes(model: PreTrainedModel) -> int:
    """Bytes that one token takes at the widest place of a block: streams, queries, keys, values, the MLP's inside."""
    config: Any = model.config.get_text_config(decoder=True)
    width = int(config.hidden_size)
    inner = next(
        (size for name in ("intermediate_size", "n_inner", "ffn_dim") if (size := getattr(config, name, 0))), 0
    )
    return int(model.dtype.itemsize * (10 * width + 4 * int(inner or 4 * width)))


def logit_bytes(model: PreTrainedModel) -> int:
    """Bytes that one asked token takes: its logits in the model's dtype and in float32, and their exponentials."""
    rows = int(model.get_output_embeddings().weight.shape[0])
    return rows * (model.dtype.itemsize + 2 * max(4, model.dtype.itemsize))


def is_out_of_memory(error: BaseException) -> bool:
    """An allocation failed, on any device."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(error)


def split(rows: Sequence[TrieRow]) -> list[list[TrieRow]]:
    """A pass cut in two: by rows, a single row by its items; nothing when one item is all there is."""
    if len(rows) > 1:
        return [list(rows[: len(rows) // 2]), list(rows[len(rows) // 2 :])]
    items = sorted({item for row in rows for _, _, item in row.asks})
    if len(items) < 2:
        return []
    half = len(items) // 2
    return [[subset(rows[0], part)[0]] for part in (items[:half], items[half:])]
