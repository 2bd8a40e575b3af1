"""Attention over tries that stand side by side in one sequence, registered with transformers under a name.

All nodes of a pass are fed as one sequence, so that every dense layer works without padding. Attention over the whole
sequence would look mostly at what it may not see, so it is computed window by window: each window of nodes looks at
itself and at the path above its first node. This is the documented way in: a function in `AttentionInterface`, chosen
by `set_attn_implementation`, that gets the windows as an argument of the model's forward pass.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from seesaw_cf.models.hooks import use_attention

_NAME = "seesaw_cf_windows"


@dataclass(frozen=True)
class Windows:
    """How T nodes are cut into G windows of W nodes, each of which looks at K keys.

    Attributes:
        width: W; the last window may be filled up, so G * W >= T.
        keys: (G * K,) the nodes that each window looks at, window after window.
    """

    width: int
    keys: Tensor


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    trie_windows: Windows | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Apply the library's own attention to windows in place of one sequence.

    Args:
        module: The attention layer.
        query: (1, heads, T, d).
        key, value: (1, key heads, T, d).
        attention_mask: (G, 1, W, K), see `seesaw_cf.scoring.layout.Layout`.
        trie_windows: What the forward pass was called with; None leaves the sequence whole.
        options: For the library's function.

    Returns:
        (1, T, heads, d).
    """
    if trie_windows is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    nodes = query.shape[2]
    seen = trie_windows.keys.to(key.device)
    groups = -(-nodes // trie_windows.width)
    # By node: (T, heads, d), so that a window is a run of rows and its keys are rows taken by their numbers.
    asking, keys, values = (part.transpose(1, 2)[0] for part in (query, key, value))
    if groups * trie_windows.width > nodes:  # the last window is filled up with zeros, whose answers are cut off below
        filled = asking.new_zeros(groups * trie_windows.width, *asking.shape[1:])
        filled[:nodes] = asking
        asking = filled
    query, key, value = (
        part.unflatten(0, (groups, -1)).transpose(1, 2)
        for part in (asking, keys.index_select(0, seen), values.index_select(0, seen))
    )
    mixed, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    return mixed.flatten(0, 1)[:nodes][None], None


AttentionInterface.register(_NAME, _attend)


def window_attention(model: PreTrainedModel) -> AbstractContextManager[None]:
    """Return a context in which a model uses `_attend`; see `use_attention`."""
    return use_attention(model, _NAME)
