"""From trie rows to the tensors of one forward pass, and back to places in its output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from seesaw_cf.scoring.trie import Row

__all__ = ["Layout", "RowAttention", "lay_out"]


@dataclass(frozen=True)
class Layout:
    """R rows of at most S nodes, T nodes in all.

    Attributes:
        ids, positions: (1, T) packed, (R, S) padded.
        mask: (R, 1, S, S), 0 where a node may look and the dtype's lowest number elsewhere.
        starts: Place of each row's first node in the flattened output.
        spread: (R * S,) which packed node stands at each place of the padded rows; None when padded or R is 1.
        gather: (T,) the reverse of `spread`.
    """

    ids: Tensor
    positions: Tensor
    mask: Tensor
    starts: tuple[int, ...]
    spread: Tensor | None = None
    gather: Tensor | None = None


def lay_out(rows: Sequence[Row], packed: bool, device: torch.device, dtype: torch.dtype) -> Layout:
    """Lays rows out for one forward pass.

    Args:
        rows: One or more.
        packed: All nodes in one sequence without padding; needs `RowAttention`.
        device: Where the model's embeddings are.
        dtype: The model's dtype, for the mask.
    """
    width = max(map(len, rows))
    mask = _mask(rows, width, device, dtype)
    if not packed:
        ids, positions = (
            torch.tensor([[*part, *[0] * (width - len(part))] for part in parts], device=device)
            for parts in ([row.tokens for row in rows], [row.depths for row in rows])
        )
        return Layout(ids, positions, mask, tuple(width * number for number in range(len(rows))))
    ids = torch.tensor([[token for row in rows for token in row.tokens]], device=device)
    positions = torch.tensor([[depth for row in rows for depth in row.depths]], device=device)
    lengths = torch.tensor([len(row) for row in rows])
    starts = lengths.cumsum(0) - lengths
    if len(rows) == 1:
        return Layout(ids, positions, mask, (0,))
    places = torch.arange(width)[None].expand(len(rows), width)
    real = places < lengths[:, None]
    spread = torch.where(real, places + starts[:, None], 0).flatten().to(device)
    gather = real.flatten().nonzero()[:, 0].to(device)
    return Layout(ids, positions, mask, tuple(starts.tolist()), spread, gather)


def _mask(rows: Sequence[Row], width: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Node j sees node i exactly when i <= j < end[i]; padding sees itself."""
    ends = torch.tensor([[*row.ends, *range(len(row) + 1, width + 1)] for row in rows], device=device)
    places = torch.arange(width, device=device)
    sees = (places[None, :, None] >= places[None, None, :]) & (places[None, :, None] < ends[:, None, :])
    return torch.full(sees.shape, torch.finfo(dtype).min, dtype=dtype, device=device).masked_fill_(sees, 0.0)[:, None]


class RowAttention(TorchFunctionMode):
    """Inside this context scaled-dot-product attention over a packed sequence is computed row by row.

    The model feeds all nodes as one sequence, so that every dense layer works without padding, and hands on the mask
    it was given; only the attention between nodes is padded to rows, where padding costs least.
    """

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self.calls = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is F.scaled_dot_product_attention:
            return self._by_row(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def _by_row(self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, **options: Any) -> Tensor:
        layout = self.layout
        if not isinstance(attn_mask, Tensor) or attn_mask.shape != layout.mask.shape:
            raise ValueError("the model does not hand the given attention mask to its attention")
        self.calls += 1
        options = {**options, "is_causal": False}
        if layout.spread is None or layout.gather is None:
            return F.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask, **options)
        spread, gather = layout.spread.to(query.device), layout.gather.to(query.device)
        rows = len(layout.starts)
        parts = [
            part.transpose(1, 2)[0].index_select(0, spread).unflatten(0, (rows, -1)).transpose(1, 2)
            for part in (query, key, value)
        ]
        mixed = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], attn_mask=attn_mask, **options)
        return mixed.transpose(1, 2).flatten(0, 1).index_select(0, gather)[None].transpose(1, 2)
