"""Grouped-query attention without copies of keys and values, registered with transformers.

Under a mask the library copies keys and values for each query head. Here the query heads of a key head stand one behind
another along the queries, under the same mask once for each: the sums are the same. For the short rows of an editor
products and a softmax are faster still than fused kernels: on a CPU both passes take two fifths of the library's time
(12 tokens that see 66, 9 query heads, 3 key heads). Scoring, which has no backward pass, gains nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from seesaw_cf.models.architectures import attention_of

_NAME = "seesaw_cf_grouped_query"
_UNSUPPORTED = ("position_bias", "softcap", "cache")
_SHORT = 256
"""Keys up to which products are faster than a fused kernel on a CPU; the weights kept for gradients are small then."""


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
        attention_mask: (batch or 1, 1, T, K), added to scores, or True where a token may look. Without one, and with an
            unsupported option, the library's own function is called.
        dropout, scaling, options: As the library's.

    Returns:
        (batch, T, heads, d).
    """
    heads = query.shape[1] // key.shape[1]
    unsupported = any(options.get(name) is not None for name in _UNSUPPORTED)
    if heads == 1 or unsupported or attention_mask is None or attention_mask.shape[1] != 1:
        options |= {"dropout": dropout, "scaling": scaling}
        return sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    queries, mask = query.unflatten(1, (-1, heads)).flatten(2, 3), attention_mask.repeat(1, 1, heads, 1)
    # a kernel adds up in single precision what products would in half
    plain = query.dtype.itemsize >= 4 and mask.is_floating_point() and not dropout
    if plain and query.device.type == "cpu" and key.shape[2] <= _SHORT:
        scores = queries * (query.shape[-1] ** -0.5 if scaling is None else scaling) @ key.mT
        output = (scores + mask).softmax(-1) @ value
    else:
        output = functional.scaled_dot_product_attention(queries, key, value, mask, dropout, scale=scaling)
    return output.unflatten(2, (heads, -1)).permute(0, 3, 1, 2, 4).flatten(2, 3), None


AttentionInterface.register(_NAME, _attend)


@contextlib.contextmanager
def use_attention(model: PreTrainedModel, name: str) -> Iterator[None]:
    """Compute the model's attention with a function of `AttentionInterface` while the block runs.

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


def grouped_query_attention(model: PreTrainedModel) -> contextlib.AbstractContextManager[None]:
    """Return a context in which a model with "sdpa" attention uses `_attend`; any other model is left alone.

    Forward passes in the block must be given masks of four dimensions.
    """
    decoder: Any = model.get_decoder()
    heads, keys = (getattr(decoder.config, f"num_{name}_heads", None) for name in ("attention", "key_value"))
    supported = attention_of(model) == "sdpa" and getattr(decoder, "_supports_attention_backend", False)
    return use_attention(model, _NAME) if supported and keys and keys < heads else contextlib.nullcontext()
