"""One forward pass over trie rows, with logits only where they are asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from seesaw_cf.models.architectures import text_config
from seesaw_cf.models.hooks import exchanged, hooked, use_attention
from seesaw_cf.models.tensors import adds_in_float32, wide_product
from seesaw_cf.models.trial import embedding
from seesaw_cf.scoring.layout import Layout, TrieRow, Windows, lay_out, subset

_SLAB = 2**17  # logits, at least those of 8 rows


class Answers(NamedTuple):
    """What was asked, in the order of the rows' `asks`.

    Attributes:
        items: Which item each answer belongs to.
        logprobs: (asks,) log p(token | its path). It and what follows are where the head is: a GPU may not be done yet.
        first: (asks,) the most likely token at that place, the first of several.
        greedy: (asks,) it is the token that was asked.
        logit_rows: Number of nodes with computed logits.
    """

    items: list[int]
    logprobs: Tensor
    first: Tensor
    greedy: Tensor
    logit_rows: int


class Pass(NamedTuple):
    """What one forward pass feeds and asks: the same for every model that is asked the same.

    Attributes:
        layout: What is fed.
        places: (places,) sorted places in the flattened output at which logits are asked for.
        at: (asks,) which of `places` each ask is about.
        tokens: (asks,) the token that is asked.
        items: Which item each ask belongs to.
    """

    layout: Layout
    places: Tensor
    at: Tensor
    tokens: Tensor
    items: list[int]


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return float32, or float64 for float64 models: what the head's output and the log-softmax are taken in."""
    return torch.promote_types(dtype, torch.float32)


def forward_rows(model: PreTrainedModel, rows: Sequence[TrieRow], packed: bool, window: int | None = None) -> Answers:
    """Feed rows to a model and answer their asks.

    Args:
        model: A causal language model in eval mode.
        rows: One forward pass's worth.
        packed, window: See `seesaw_cf.scoring.layout.lay_out`.
    """
    device = embedding(model).device
    return ask(model, make_pass(rows, lay_out(rows, packed, device, model.dtype, window)))


def make_pass(rows: Sequence[TrieRow], layout: Layout) -> Pass:
    """Return a layout of `rows` with what they ask in it."""
    # A row's node numbers become places in the flattened output; each asked place gets one row of logits.
    flat = [(start + node, token, item) for row, start in zip(rows, layout.starts) for node, token, item in row.asks]
    asked, tokens, items = map(list, zip(*flat))
    places = torch.tensor(sorted(set(asked)))
    return Pass(layout, places, torch.searchsorted(places, torch.tensor(asked)), torch.tensor(tokens), items)


def ask(model: PreTrainedModel, part: Pass) -> Answers:
    """Run the model over a pass and answer its asks."""
    logits = _logits(model, part.layout, part.places)
    at, tokens = part.at.to(logits.device), part.tokens.to(logits.device)
    with torch.inference_mode():
        # log softmax of the few asked tokens: logit - peak - log(sum of exp(logit - peak)), never the whole matrix.
        peaks, firsts, sums = _peaks_and_sums(logits)
        first = firsts[at]
        chosen = logits[at, tokens] - peaks[at] - sums.log()[at]
    return Answers(part.items, chosen, first, first == tokens, len(part.places))


def _peaks_and_sums(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return each row's largest logit, its place, and the sum of exp(logit - largest); in slabs for a CPU's cache."""
    on_cpu = logits.device.type == "cpu"
    rows = max(8, _SLAB // logits.shape[1]) if on_cpu else len(logits)
    peaks, sums = logits.new_empty(2, len(logits))
    firsts = torch.empty(len(logits), dtype=torch.long, device=logits.device)
    held = logits.new_empty(rows, logits.shape[1])
    for slab, peak, first, total in zip(*(part.split(rows) for part in (logits, peaks, firsts, sums))):
        if on_cpu:  # torch takes ten times as long to find it
            np.argmax(slab.numpy(), -1, out=first.numpy())
            torch.gather(slab, 1, first[:, None], out=peak[:, None])
        else:
            torch.max(slab, -1, out=(peak, first))
        torch.sum(torch.sub(slab, peak[:, None], out=held[: len(slab)]).exp_(), -1, out=total)
    return peaks, firsts, sums


@contextlib.contextmanager
def tree_context(model: PreTrainedModel, layout: Layout) -> Iterator[None]:
    """Run the block without gradients, when packed with attention by window.

    Args:
        model: As before afterwards.
        layout: What will be fed.

    Raises:
        ValueError: The model's attention cannot be computed by window.
    """
    attention = use_attention(model, _NAME) if layout.packed else contextlib.nullcontext()
    with torch.inference_mode(), attention:
        yield


def feed(model: PreTrainedModel, layout: Layout) -> Any:
    """Run the model's own forward pass over a layout.

    What carries the tries are its documented arguments: position ids (a token's depth in its text) and a ready
    four-dimensional mask, which the library hands on as it is. The windows travel with them to the attention.
    """
    windows = {"trie_windows": layout.windows} if layout.packed else {}
    return model(
        input_ids=layout.ids, position_ids=layout.positions, attention_mask=layout.mask, use_cache=False, **windows
    )


def _logits(model: PreTrainedModel, layout: Layout, places: Tensor) -> Tensor:
    """Return logits (places, vocabulary) of the nodes at `places`, by the model's own forward pass and head."""

    def only_asked(_: object, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        # The head sees asked nodes only: logits of the others would be most of the memory, and nobody reads them.
        hidden: Tensor = args[0]
        return (hidden.flatten(0, -2).index_select(0, places.to(hidden.device))[None], *args[1:])

    only = model.get_output_embeddings().register_forward_pre_hook(only_asked)
    with hooked([only]), tree_context(model, layout):
        logits: Tensor = feed(model, layout).logits[0]
    if logits.shape[0] != len(places):
        raise ValueError(f"the model's head gave {logits.shape[0]} rows of logits for {len(places)} nodes")
    return logits.to(wide_dtype(logits.dtype))


# Attention over tries that stand side by side in one sequence, registered with transformers under a name.
#
# All nodes of a pass are fed as one sequence, so that every dense layer works without padding. Attention over the whole
# sequence would look mostly at what it may not see, so it is computed window by window: each window of nodes looks at
# itself and at the path above its first node. This is the documented way in: a function in `AttentionInterface`, chosen
# by `set_attn_implementation`, that gets the windows as an argument of the model's forward pass.

_NAME = "seesaw_cf_windows"


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


# The head's product in float32, whatever the model's dtype.

_HEAD_SLAB = 2**22
"""Numbers of a low-precision head that are held in float32 at a time."""


@contextlib.contextmanager
def wide_head(model: PreTrainedModel) -> Iterator[None]:
    """Make a bfloat16 or float16 model compute logits in float32 while the block runs, unless gradients are on.

    Only plain linear heads are treated like this.

    Args:
        model: Its head is as before afterwards, also after an exception.
    """
    head: Any = model.get_output_embeddings()
    low = type(head) is nn.Linear and head.weight.dtype in (torch.bfloat16, torch.float16)
    if not low or "forward" in vars(head):
        yield
        return

    def forward(hidden: Tensor) -> Tensor:
        answer: Tensor = nn.Linear.forward(head, hidden) if torch.is_grad_enabled() else _wide(hidden, head)
        return answer

    with exchanged({head: forward}):
        yield


def _wide(hidden: Tensor, head: nn.Linear) -> Tensor:
    """Apply the head in float32: at once where it is multiplied as it is, else in slabs, so it is never held twice."""
    whole, flat = adds_in_float32(hidden), hidden.flatten(0, -2)
    rows = head.out_features if whole else max(1, _HEAD_SLAB // head.in_features)
    flat = flat if whole else flat.float()
    out = torch.empty(len(flat), head.out_features, device=hidden.device, dtype=torch.float32)
    for start in range(0, head.out_features, rows):
        part = slice(start, start + rows)
        out[:, part] = wide_product(flat, head.weight[part].T)
    if head.bias is not None:
        out += head.bias
    return out.reshape(*hidden.shape[:-1], head.out_features)


# Estimates of what a forward pass needs, and what to do when it was too much.


def token_bytes(model: PreTrainedModel) -> int:
    """Return the bytes of one token where a block is widest: streams, queries, keys, values, the MLP's inside."""
    config = text_config(model)
    width = int(config.hidden_size)
    inner = next(
        (size for name in ("intermediate_size", "n_inner", "ffn_dim") if (size := getattr(config, name, 0))), 0
    )
    return int(model.dtype.itemsize * (10 * width + 4 * int(inner or 4 * width)))


def logit_bytes(model: PreTrainedModel) -> int:
    """Return the bytes of one asked token: its logits in the model's dtype and in float32, and their exponentials."""
    rows = int(model.get_output_embeddings().weight.shape[0])
    return rows * (model.dtype.itemsize + 2 * max(4, model.dtype.itemsize))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether the error is a failed allocation, on any device."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(error)


def split(rows: Sequence[TrieRow]) -> list[list[TrieRow]]:
    """Cut a pass in two: by rows, a single row by its items; return nothing when one item is all there is."""
    if len(rows) > 1:
        return [list(rows[: len(rows) // 2]), list(rows[len(rows) // 2 :])]
    items = sorted({item for row in rows for _, _, item in row.asks})
    if len(items) < 2:
        return []
    half = len(items) // 2
    return [[subset(rows[0], part)[0]] for part in (items[:half], items[half:])]
