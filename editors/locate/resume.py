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
from transformers.cache_utils import Cache, DynamicCache

from seesaw_cf.editors.locate.packed_rows import ConstantLayer, PackedRows, pack_rows, row_mask
from seesaw_cf.editors.locate.positions import InputRow
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.hooks import enter_at, first_tensor, grouped_query_attention, hooked, stop_after
from seesaw_cf.models.tensors import cache_name, pad

_Call = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]  # a block and the arguments of its forward


class _Origin(NamedTuple):
    """What a packed layout was made of: a layout of some of its rows takes what is constant from here."""

    parts: ModelParts
    rows: Sequence[InputRow]
    skips: Sequence[int]
    blocks: tuple[int, int]
    prefix: Sequence[ConstantLayer]
    heads: Tensor
    form: object


@dataclass(frozen=True)
class ResumableRows:
    """Rows laid out as one batch, ready to be run from block `first` upwards.

    Attributes:
        hidden: (batch, tokens, d), the input of block `first`, constant.
        calls: For each block from `first` to `last`: the block and the other arguments it is called with.
        starts: For each row, the place of its token 0 in `hidden` flattened to (batch * tokens, d); a packed row
            without its first tokens has its place counted as if they were there. Packed rows have one more, of padding.
        origin: Of packed rows.
    """

    hidden: Tensor
    calls: tuple[_Call, ...]
    starts: tuple[int, ...]
    origin: _Origin | None = None

    def run(self, hidden: Tensor) -> Tensor:
        """Run the blocks.

        Args:
            hidden: Like `self.hidden`, possibly changed.

        Returns:
            (batch * tokens, d), the output of block `last`.
        """
        with grouped_query_attention(self.origin.parts.model) if self.origin else contextlib.nullcontext():
            for block, args, kwargs in self.calls:
                hidden = first_tensor(block(hidden, *args, **kwargs))
        return hidden.reshape(-1, hidden.shape[-1])

    def at(self, row: int, token: int) -> int:
        """Return the place of a row's token in `run`'s answer."""
        return self.starts[row] + token

    def part(self, numbers: Sequence[int]) -> ResumableRows | None:
        """Return the layout of some of the rows, for which no block is run; None where rows are not packed."""
        return None if self.origin is None else _part(self, self.origin, numbers)


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
    hidden, calls, _ = _record(parts, first, last, input_ids=ids, attention_mask=mask, use_cache=False)
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
    hidden, calls, form = _record(parts, first, last, **_after(head, tail, parts, prefix))
    origin = _Origin(parts, rows, skips, (first, last), prefix, head.starts, form)
    return ResumableRows(hidden, calls, tuple(tail.starts.tolist()), origin)


@torch.no_grad()
def _part(larger: ResumableRows, origin: _Origin, numbers: Sequence[int]) -> ResumableRows:
    parts, (first, last) = origin.parts, origin.blocks
    rows, skips = [origin.rows[number] for number in numbers], [origin.skips[number] for number in numbers]
    head, tail = pack_rows(rows, skips, parts.model.device)
    chosen = torch.tensor([*numbers, -1])
    starts, heads = torch.tensor(larger.starts)[chosen], origin.heads[chosen]
    prefix = [layer.taken(head, heads) for layer in origin.prefix]
    hidden = tail.taken(larger.hidden.flatten(0, 1), starts)
    blocks = nn.ModuleList(parts.block(layer) for layer in range(last + 1))
    with enter_at(blocks, last + 1, hidden, origin.form):
        _, calls, _ = _record(parts, first, last, **_after(head, tail, parts, prefix))
    smaller = origin._replace(rows=rows, skips=skips, prefix=prefix, heads=head.starts)
    return ResumableRows(hidden, calls, tuple(tail.starts.tolist()), smaller)


_Arguments = dict[str, object]  # of a model's forward pass


def _arguments(parts: ModelParts, tokens: PackedRows, mask: Tensor, cache: Cache | None) -> _Arguments:
    return {
        "input_ids": tokens.ids,
        "position_ids": tokens.places[1],
        "attention_mask": mask,
        cache_name(parts.model): cache,
        "use_cache": cache is not None,
    }


def _after(head: PackedRows, tail: PackedRows, parts: ModelParts, prefix: Sequence[ConstantLayer]) -> _Arguments:
    """Return the arguments with which the model goes on behind the constant tokens."""
    mask = row_mask(tail.places, torch.cat([head.places, tail.places], 2), parts.stream_dtype)
    return _arguments(parts, tail, mask, Cache(layers=list(prefix)) if prefix else None)


def _record(parts: ModelParts, first: int, last: int, **arguments: object) -> tuple[Tensor, tuple[_Call, ...], object]:
    """Run the model once up to block `last` and note the input of block `first` and every call from there on.

    Returns:
        The input, the calls, and what a block answers, its hidden states left out.
    """
    calls: list[_Call] = []
    form: object = None
    entering: list[Tensor] = []

    def note(block: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
        rest = dict(kwargs)
        entering.append(args[0] if args else rest.pop("hidden_states"))
        calls.append((block, args[1:], rest))

    def leave(_: nn.Module, __: object, output: object) -> None:
        nonlocal form
        form = (None, *output[1:]) if isinstance(output, tuple) else None
        entering.append(first_tensor(output))

    handles: list[RemovableHandle] = [
        parts.block(layer).register_forward_pre_hook(note, with_kwargs=True) for layer in range(first, last + 1)
    ]
    handles.append(parts.block(last).register_forward_hook(leave))
    with hooked([*handles, stop_after(parts.block(last))]):
        parts.model(**arguments)
    return entering[0].detach(), tuple(calls), form
