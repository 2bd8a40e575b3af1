"""Rows in a few sequences: where their tokens stand, what each may see, and constant keys and values before them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import CacheLayerMixin

from seesaw_cf.editors.locate.positions import InputRow
from seesaw_cf.models.tensors import bins_of

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
