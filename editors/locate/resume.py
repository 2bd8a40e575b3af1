"""Running only the upper blocks, again and again, from activations computed once.

A change at the subject's last token of block l cannot reach the blocks below, nor any earlier token. So the hidden
states that enter block l + 1 are computed once, keys and values of the tokens before the subject's last one are
constants, and each optimisation step only runs the remaining tokens through the upper blocks - the library's own
modules, called with the arguments that the model itself calls them with (masks, rotary tables, caches).

Rows are packed where the architecture allows it: the remaining tokens of several rows stand in one sequence of a few
dozen tokens, with hardly any padding, under a mask that lets each token see its own row's earlier tokens only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers.cache_utils import Cache, CacheLayerMixin, DynamicCache

from seesaw_cf.editors.locate.positions import InputRow
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.hooks import first_tensor, hooked, stop_after
from seesaw_cf.models.packing import bins_of, pad

_Call = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]  # a block and the arguments of its forward

_SEQUENCE = 64
"""Tokens of a packed sequence: long enough to waste little on padding, short enough for cheap attention."""


@dataclass(frozen=True)
class ResumableRows:
    """Rows laid out as one batch, ready to be run from block `first` upwards.

    Attributes:
        hidden: (batch, tokens, d), the input of block `first`, constant.
        calls: For each block from `first` to `last`: the block and the other arguments it is called with.
        starts: For each row, the place of its token 0 in `hidden` flattened to (batch * tokens, d); a packed row
            without its first tokens has its place counted as if they were there.
    """

    hidden: Tensor
    calls: tuple[_Call, ...]
    starts: tuple[int, ...]

    def run(self, hidden: Tensor) -> Tensor:
        """Run the blocks.

        Args:
            hidden: Like `self.hidden`, possibly changed.

        Returns:
            (batch * tokens, d), the output of block `last`.
        """
        for block, args, kwargs in self.calls:
            hidden = first_tensor(block(hidden, *args, **kwargs))
        return hidden.reshape(-1, hidden.shape[-1])

    def at(self, row: int, token: int) -> int:
        """The place of a row's token in `run`'s answer."""
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
    device, dtype = parts.model.device, parts.stream_dtype
    lengths = [len(row.ids) - skip for row, skip in zip(rows, skips)]
    bins = bins_of(lengths, _SEQUENCE)
    head_ids, head = _fill(rows, bins, [(0, skip) for skip in skips], device)
    tail_ids, tail = _fill(rows, bins, [(skip, len(row.ids)) for row, skip in zip(rows, skips)], device)
    cache: Cache | None = None
    if head_ids.shape[1]:
        cache = DynamicCache()
        with hooked([stop_after(parts.block(last))]):
            parts.model(**_arguments(head_ids, head, _mask(head, head, dtype), cache))
        cache = Cache(layers=[_Constant(layer.keys, layer.values) for layer in cache.layers])  # type: ignore[union-attr, arg-type]
    mask = _mask(tail, torch.cat([head, tail], 2), dtype)
    hidden, calls = _record(parts, first, last, **_arguments(tail_ids, tail, mask, cache))
    starts = [0] * len(rows)
    for number, members in enumerate(bins):
        place = number * tail_ids.shape[1]
        for index in members:
            starts[index] = place - skips[index]
            place += lengths[index]
    return ResumableRows(hidden, calls, tuple(starts))


def _fill(
    rows: Sequence[InputRow], bins: Sequence[Sequence[int]], spans: Sequence[tuple[int, int]], device: torch.device
) -> tuple[Tensor, Tensor]:
    """Token ids (bins, tokens), and row number and position of each, (2, bins, tokens); padding is of row -1."""
    filled = [[(i, at, rows[i].ids[at]) for i in members for at in range(*spans[i])] for members in bins]
    longest = max(map(len, filled))
    padded = [entries + [(-1, 0, 0)] * (longest - len(entries)) for entries in filled]
    table = torch.tensor(padded, dtype=torch.long, device=device).reshape(len(bins), longest, 3)
    return table[..., 2], table[..., :2].permute(2, 0, 1)


def _mask(queries: Tensor, keys: Tensor, dtype: torch.dtype) -> Tensor:
    """(bins, 1, queries, keys), 0 where a token may look, the dtype's lowest number elsewhere."""
    same, earlier = (compare(queries[k][..., None], keys[k][:, None]) for k, compare in enumerate((torch.eq, torch.ge)))
    allowed = same & earlier
    blocked = torch.full(allowed.shape, torch.finfo(dtype).min, dtype=dtype, device=queries.device)
    return blocked.masked_fill(allowed, 0.0)[:, None]


def _arguments(ids: Tensor, places: Tensor, mask: Tensor, cache: Cache | None) -> dict[str, object]:
    return {
        "input_ids": ids,
        "position_ids": places[1],
        "attention_mask": mask,
        "past_key_values": cache,
        "use_cache": cache is not None,
    }


class _Constant(CacheLayerMixin):
    """Keys and values of earlier tokens, put before the new ones and never grown."""

    is_sliding = False

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.keys, self.values, self.is_initialized = keys, values, True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do."""

    def update(self, key_states: Tensor, value_states: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        """The constant part and the new part together."""
        assert self.keys is not None
        assert self.values is not None
        return torch.cat([self.keys, key_states], -2), torch.cat([self.values, value_states], -2)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length and offset of the keys."""
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        """Number of constant tokens."""
        assert self.keys is not None
        return int(self.keys.shape[-2])

    def get_max_length(self) -> int:
        """No limit."""
        return -1


def _record(parts: ModelParts, first: int, last: int, **arguments: object) -> tuple[Tensor, tuple[_Call, ...]]:
    """Run the model once up to block `last` and note the input of block `first` and every call from there on."""
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
