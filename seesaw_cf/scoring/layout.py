"""From trie rows to the tensors of one forward pass, and back to places in its output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seesaw_cf.scoring.rows import TrieRow
from seesaw_cf.scoring.windows import Windows

_WINDOW = {"cpu": 32}
"""Nodes whose attention is computed together (64 on other devices): more would look mostly at what they may not see."""


@dataclass(frozen=True)
class Layout:
    """R rows of at most S nodes, T nodes in all.

    Packed nodes are cut into G windows of W nodes. In depth-first order all ancestors of a window's nodes are in the
    window or on the path to its first node, so a window looks at P + W keys, P being the longest of these paths.

    Attributes:
        ids, positions: (1, T) packed, (R, S) padded.
        mask: 0 where a node may look and the dtype's lowest number elsewhere; (G, 1, W, P + W) packed, (R, 1, S, S)
            padded.
        starts: Place of each row's first node in the flattened output.
        packed: All rows in one sequence.
        windows: The keys that each window looks at; None when padded or when one window is all there is.
    """

    ids: Tensor
    positions: Tensor
    mask: Tensor
    starts: tuple[int, ...]
    packed: bool = False
    windows: Windows | None = None


def lay_out(
    rows: Sequence[TrieRow], packed: bool, device: torch.device, dtype: torch.dtype, window: int | None = None
) -> Layout:
    """Lay rows out for one forward pass.

    Args:
        rows: One or more.
        packed: All nodes in one sequence without padding; needs `window_attention`.
        device: Where the model's embeddings are.
        dtype: The model's dtype, for the mask.
        window: Least nodes of a window; None = what suits the device.
    """
    if packed:
        return _packed(rows, device, dtype, window or _WINDOW.get(device.type, 64))
    width = max(map(len, rows))
    ids, positions = (
        torch.tensor([[*part, *[0] * (width - len(part))] for part in parts], device=device)
        for parts in ([row.tokens for row in rows], [row.depths for row in rows])
    )
    # Padding sees itself.
    ends = torch.tensor([[*row.ends, *range(len(row) + 1, width + 1)] for row in rows], device=device)
    places = torch.arange(width, device=device).expand(len(rows), width)
    mask = _mask(places, places, ends, dtype)
    return Layout(ids, positions, mask, tuple(width * number for number in range(len(rows))))


def _packed(rows: Sequence[TrieRow], device: torch.device, dtype: torch.dtype, window: int) -> Layout:
    starts = [0]
    for row in rows:
        starts.append(starts[-1] + len(row))
    total = starts.pop()
    ids = torch.tensor([[token for row in rows for token in row.tokens]], device=device)
    positions = torch.tensor([[depth for row in rows for depth in row.depths]], device=device)
    ends = torch.tensor([start + end for row, start in zip(rows, starts) for end in row.ends], device=device)
    # A window is at least as wide as the longest path, so that the keys outside it never outnumber its own.
    width = min(total, max(window, max(max(row.depths) for row in rows)))
    nodes = torch.arange(-(-total // width) * width, device=device).unflatten(0, (-1, width))
    # For every window the path above its first node; a window that begins with a row has none.
    paths = [
        [start + node for node in _ancestors(row, first - start)]
        for row, start in zip(rows, starts)
        for first in range(-(-start // width) * width, start + len(row), width)
    ]
    longest = max(map(len, paths))
    outside = torch.tensor([[total] * (longest - len(path)) + path for path in paths], dtype=torch.long, device=device)
    keys = torch.cat([outside, nodes], 1)
    # What is no node is seen by nobody, and sees everything: its output is not used.
    real = keys < total
    keys = keys.where(real, 0)
    mask = _mask(nodes, keys, ends[keys] * real, dtype).masked_fill_((nodes >= total)[:, None, :, None], 0.0)
    windows = Windows(width, keys.flatten()) if len(paths) > 1 else None
    return Layout(ids, positions, mask, tuple(starts), packed=True, windows=windows)


def _ancestors(row: TrieRow, node: int) -> list[int]:
    """The nodes above a node, from the first token on."""
    nodes = []
    while (node := row.parents[node]) >= 0:
        nodes.append(node)
    return nodes[::-1]


def _mask(nodes: Tensor, keys: Tensor, ends: Tensor, dtype: torch.dtype) -> Tensor:
    """(rows, 1, nodes, keys): node j sees key i exactly when i <= j < end[i]."""
    sees = (nodes[:, :, None] >= keys[:, None, :]) & (nodes[:, :, None] < ends[:, None, :])
    lowest = torch.finfo(dtype).min
    return torch.full(sees.shape, lowest, dtype=dtype, device=nodes.device).masked_fill_(sees, 0.0)[:, None]
