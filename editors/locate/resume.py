"""Running only the upper blocks, again and again, from activations computed once.

A change at the subject's last token of block l cannot reach the blocks below, nor any earlier token. So the hidden
states that enter block l + 1 are computed once, keys and values of the tokens before the subject's last one are
constants, and each optimisation step only runs the remaining tokens through the upper blocks - the library's own
modules, called with the arguments that the model itself calls them with (masks, rotary tables, caches).

Rows are packed where the architecture allows it: the remaining tokens of several rows stand in one sequence of a few
dozen tokens, with little padding, under a mask that lets each token see its own row's earlier tokens only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicCache

from seesaw_cf.editors.locate.positions import InputRow
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.editor import Model
from seesaw_cf.models.hooks import first_tensor, grouped_query_attention, hooked, stop_after
from seesaw_cf.models.tensors import bins_of, cache_name, pad

_SEQUENCE_TOKENS = (24, 64)
"""Tokens that a sequence aims at: room for the longest row twice, but at least and at most these.

In longer ones more keys are those of other rows, in shorter ones more tokens are padding.
"""


class PackedRows(NamedTuple):
    """Parts of rows, several in a sequence.

    Attributes:
        ids: (sequences, tokens).
        places: (2, sequences, tokens), row and position of each; padding is of row -1.
        starts: The place of each row's token 0 in `ids` flattened.
    """

    ids: Tensor
    places: Tensor
    starts: tuple[int, ...]


def pack_rows(rows: Sequence[InputRow], skips: Sequence[int], device: torch.device) -> tuple[PackedRows, PackedRows]:
    """Return what is before the rows' first tokens to lay out, `skips` of them, and the rest."""
    ends = [len(row.ids) for row in rows]
    sizes = [end - skip for end, skip in zip(ends, skips)]
    least, most = _SEQUENCE_TOKENS
    bins = bins_of(sizes, min(max(least, 2 * max(sizes)), most))
    spans = [list(zip([0] * len(rows), skips)), list(zip(skips, ends))]
    head, tail = (_filled(rows, bins, own, device) for own in spans)
    return head, tail


def _filled(
    rows: Sequence[InputRow], bins: Sequence[Sequence[int]], spans: Sequence[tuple[int, int]], device: torch.device
) -> PackedRows:
    entries = [[(i, at, rows[i].ids[at]) for i in members for at in range(*spans[i])] for members in bins]
    longest = max(map(len, entries))
    padded = [own + [(-1, 0, 0)] * (longest - len(own)) for own in entries]
    starts = [0] * len(rows)
    for number, members in enumerate(bins):
        place = number * longest
        for index in members:
            begin, end = spans[index]
            starts[index] = place - begin
            place += end - begin
    table = torch.tensor(padded, dtype=torch.long, device=device).reshape(len(bins), longest, 3)
    return PackedRows(table[..., 2], table[..., :2].permute(2, 0, 1), tuple(starts))


def row_mask(queries: Tensor, keys: Tensor, dtype: torch.dtype) -> Tensor:
    """Return (bins, 1, queries, keys): 0 where a token may look, the dtype's lowest number elsewhere."""
    same, earlier = (compare(queries[k][..., None], keys[k][:, None]) for k, compare in enumerate((torch.eq, torch.ge)))
    allowed = same & earlier
    blocked = torch.full(allowed.shape, torch.finfo(dtype).min, dtype=dtype, device=queries.device)
    return blocked.masked_fill(allowed, 0.0)[:, None]


class ConstantLayer(CacheLayerMixin):
    """Keys and values of earlier tokens, put before the new ones and never grown."""

    is_sliding = False

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.keys, self.values, self.is_initialized = keys, values, True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Do nothing: keys and values are there from the start."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        """Return keys and values: the constant part, then the new one."""
        assert self.keys is not None
        assert self.values is not None
        return torch.cat([self.keys, key_states], -2), torch.cat([self.values, value_states], -2)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return length and offset of the keys."""
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        """Return the number of constant tokens."""
        assert self.keys is not None
        return int(self.keys.shape[-2])

    def get_max_length(self) -> int:
        """Return -1, which stands for no limit."""
        return -1


_Call = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]  # a block and the arguments of its forward


@dataclass(frozen=True)
class ResumableRows:
    """Rows laid out as one batch, ready to be run from block `first` upwards.

    Attributes:
        hidden: (batch, tokens, d), the input of block `first`, constant.
        calls: For each block from `first` to `last`: the block and the other arguments it is called with.
        starts: For each row, the place of its token 0 in `hidden` flattened to (batch * tokens, d); a packed row
            without its first tokens has its place counted as if they were there.
        grouped: The model, where rows are packed: their mask needs grouped-query attention.
    """

    hidden: Tensor
    calls: tuple[_Call, ...]
    starts: tuple[int, ...]
    grouped: Model | None = None

    def run(self, hidden: Tensor) -> Tensor:
        """Run the blocks.

        Args:
            hidden: Like `self.hidden`, possibly changed.

        Returns:
            (batch * tokens, d), the output of block `last`.
        """
        with grouped_query_attention(self.grouped) if self.grouped else contextlib.nullcontext():
            for block, args, kwargs in self.calls:
                hidden = first_tensor(block(hidden, *args, **kwargs))
        return hidden.reshape(-1, hidden.shape[-1])

    def at(self, row: int, token: int) -> int:
        """Return the place of a row's token in `run`'s answer."""
        return self.starts[row] + token


def lay_out(
    parts: ModelParts, rows: Sequence[InputRow], first: int, last: int, keep_prefix: bool = False
) -> ResumableRows:
    """Compute what enters block `first` and how blocks `first` to `last` are called.

    Args:
        parts: The model.
        rows: The rows; tokens before a row's `lookup` are left out of the layout unless `keep_prefix`.
        first, last: The blocks to run; `first` may be last + 1, then nothing is left to run.
        keep_prefix: Lay out whole rows, for changes that reach every token (fine-tuning).

    Returns:
        The layout, made without gradients.
    """
    with torch.no_grad():
        if not parts.can_pack(max(len(row.ids) for row in rows)):
            return _padded(parts, rows, first, last)
        return _packed(parts, rows, [0 if keep_prefix else row.lookup for row in rows], first, last)


def _padded(parts: ModelParts, rows: Sequence[InputRow], first: int, last: int) -> ResumableRows:
    ids, mask = pad([row.ids for row in rows], parts.model.device)
    hidden, calls = _record(parts, first, last, input_ids=ids, attention_mask=mask, use_cache=False)
    return ResumableRows(hidden, calls, tuple(index * ids.shape[1] for index in range(len(rows))))


def _packed(parts: ModelParts, rows: Sequence[InputRow], skips: Sequence[int], first: int, last: int) -> ResumableRows:
    head, tail = pack_rows(rows, skips, parts.model.device)
    prefix: list[ConstantLayer] = []
    if head.ids.shape[1]:
        cache = DynamicCache()
        mask = row_mask(head.places, head.places, parts.stream_dtype)
        with hooked([stop_after(parts.block(last))]):
            parts.model(**_arguments(parts, head, mask, cache))
        prefix = [ConstantLayer(layer.keys, layer.values) for layer in cache.layers]  # type: ignore[union-attr, arg-type]
    # the model goes on behind the constant tokens
    mask = row_mask(tail.places, torch.cat([head.places, tail.places], 2), parts.stream_dtype)
    after = _arguments(parts, tail, mask, Cache(layers=list(prefix)) if prefix else None)
    hidden, calls = _record(parts, first, last, **after)
    return ResumableRows(hidden, calls, tail.starts, parts.model)


def _arguments(parts: ModelParts, tokens: PackedRows, mask: Tensor, cache: Cache | None) -> dict[str, object]:
    return {
        "input_ids": tokens.ids,
        "position_ids": tokens.places[1],
        "attention_mask": mask,
        cache_name(parts.model): cache,
        "use_cache": cache is not None,
    }


def _record(parts: ModelParts, first: int, last: int, **arguments: object) -> tuple[Tensor, tuple[_Call, ...]]:
    """Run the model once up to block `last` and return the input of block `first` and every call from there on."""
    calls: list[_Call] = []
    entering: list[Tensor] = []

    def note(block: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
        rest = dict(kwargs)
        entering.append(args[0] if args else rest.pop("hidden_states"))
        calls.append((block, args[1:], rest))

    def leave(_: nn.Module, __: object, output: object) -> None:
        entering.append(first_tensor(output))

    handles: list[RemovableHandle] = [
        parts.block(layer).register_forward_pre_hook(note, with_kwargs=True) for layer in range(first, last + 1)
    ]
    handles.append(parts.block(last).register_forward_hook(leave))
    with hooked([*handles, stop_after(parts.block(last))]):
        parts.model(**arguments)
    return entering[0].detach(), tuple(calls)
