"""Attention in which query heads that share a key head are more queries of one head, registered with transformers.

Under a mask the library gives every query head a copy of its keys and values. Here the query heads of a key head stand
one behind another along the queries, under the same mask once for each: the same sums, and keys and values are read
where they are. Passes without gradients gain nothing by it; the way back is a quarter faster.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from seesaw_cf.models.architectures import attention_of

_NAME = "seesaw_cf_shared_keys"
_OTHERS = ("position_bias", "softcap", "cache")


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Return what the library's "sdpa" attention returns.

    Args:
        module: The attention layer.
        query: (batch, heads, T, d).
        key, value: (batch, key heads, K, d).
        attention_mask: (batch or 1, 1, T, K). Without one, and with what this function does not know, the library's
            own function answers.
        dropout, scaling, options: As the library's.

    Returns:
        (batch, T, heads, d).
    """
    heads = query.shape[1] // key.shape[1]
    unknown = any(options.get(name) is not None for name in _OTHERS)
    if heads == 1 or unknown or attention_mask is None or attention_mask.shape[1] != 1:
        options |= {"dropout": dropout, "scaling": scaling}
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    asking, mask = query.unflatten(1, (-1, heads)).flatten(2, 3), attention_mask.repeat(1, 1, heads, 1)
    mixed = scaled_dot_product_attention(asking, key, value, attn_mask=mask, dropout_p=dropout, scale=scaling)
    return mixed.unflatten(2, (heads, -1)).permute(0, 3, 1, 2, 4).flatten(2, 3), None


AttentionInterface.register(_NAME, _attend)


@contextlib.contextmanager
def attention(model: PreTrainedModel, name: str) -> Iterator[None]:
    """Make a function of `AttentionInterface` the model's attention while the block runs.

    Args:
        model: Its attention is what it was before afterwards, also after an exception.
        name: What the function is registered as.

    Raises:
        ValueError: The model's attention cannot be chosen by name.
    """
    decoder: Any = model.get_decoder()
    before = decoder.config._attn_implementation
    try:
        decoder.set_attn_implementation(name)
        if decoder.config._attn_implementation != name:
            raise ValueError("the model's attention does not go through transformers' AttentionInterface")
        yield
    finally:
        decoder.set_attn_implementation(before)


def shared_keys(model: PreTrainedModel) -> contextlib.AbstractContextManager[None]:
    """Return `attention` by `_attend` for a model with "sdpa" attention whose query heads share keys, else nothing.

    Passes in the block bring masks of their own, of four dimensions.
    """
    decoder: Any = model.get_decoder()
    heads, keys = (getattr(decoder.config, f"num_{name}_heads", None) for name in ("attention", "key_value"))
    known = attention_of(model) == "sdpa" and getattr(decoder, "_supports_attention_backend", False)
    return attention(model, _NAME) if known and keys and keys < heads else contextlib.nullcontext()
