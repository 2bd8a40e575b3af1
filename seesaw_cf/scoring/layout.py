"""From trie rows to the tensors of one forward pass, and back to places in its output."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor

from seesaw_cf.scoring.encode import EncodedCloze

# Rows of token tries: every distinct prefix is one node, and a node is fed to the model once.

_SHARED = 0.03
"""A row may end where the next item shares at most this part of the row's nodes, which are then fed twice."""


@dataclass(slots=True)
class TrieRow:
    """One sequence of trie nodes; several tries may stand side by side in it.

    Attributes:
        tokens: (nodes,) token ids.
        parents: (nodes,) index of the node before, -1 for a first token.
        depths: (nodes,) position of the token in its text.
        asks: (asks,) triples: after which node, which token, for which item.
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    asks: list[tuple[int, int, int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def ends(self) -> list[int]:
        """(nodes,) one past the last descendant of each node."""
        # Children stand behind their parents, so one pass from the back hands every node's end to its parent.
        ends = list(range(1, len(self.tokens) + 1))
        for node in range(len(self.tokens) - 1, 0, -1):
            parent = self.parents[node]
            if parent >= 0 and ends[parent] < ends[node]:
                ends[parent] = ends[node]
        return ends

    @property
    def asked(self) -> int:
        """Return the number of nodes that need next-token probabilities."""
        return len({node for node, _, _ in self.asks})


AnyRow = TypeVar("AnyRow", bound=TrieRow)


def make_rows(items: Sequence[EncodedCloze], target: int, limit: int) -> list[TrieRow]:
    """Put items into tries and cut the forest into rows.

    Neighbours in token order share the most, so a row is a run of them. A row ends at the first good place once it
    has `target` nodes, at the latest before it grows over `limit`; what the next row shares with it is fed again.

    Args:
        items: Distinct encoded clozes; the same set gives the same rows in any order.
        target: Wanted nodes per row. Attention costs grow with its square, repeated prefixes fall with it.
        limit: Most nodes of a row; only a single item that is longer exceeds it.

    Returns:
        Rows; `asks` name items by their index in `items`.
    """
    rows: list[TrieRow] = []
    row = TrieRow()
    path: list[int] = []
    before: tuple[int, ...] = ()
    # In token order an item shares its longest prefix with the item before it, so the path to that item's last node is
    # all of the trie that has to be kept: cut it back to the shared part, then grow it by what is new.
    for index in sorted(range(len(items)), key=lambda number: (items[number].ids, items[number].start)):
        ids, start = items[index]
        shared = _shared(before, ids)
        size = len(row) + len(ids) - 1 - shared
        if len(row) and (size > limit or (len(row) >= target and shared <= _SHARED * len(row))):
            rows.append(row)
            row, path, shared = TrieRow(), [], 0
        del path[shared:]
        for depth in range(shared, len(ids) - 1):
            row.parents.append(path[-1] if path else -1)
            row.depths.append(depth)
            path.append(len(row.tokens))
            row.tokens.append(ids[depth])
        # The token at `place` is asked after the node before it; the last token itself never becomes a node.
        row.asks += [(path[place - 1], ids[place], index) for place in range(start, len(ids))]
        before = ids[:-1]
    return [*rows, row] if len(row) else rows


def _shared(before: tuple[int, ...], ids: tuple[int, ...]) -> int:
    """Return the length of the common prefix of what was fed and what is to be fed."""
    count = 0
    for old, new in zip(before, ids[:-1]):
        if old != new:
            break
        count += 1
    return count


def subset(row: TrieRow, items: Iterable[int]) -> tuple[TrieRow, list[int]]:
    """Return the part of a row that some of its items need.

    Args:
        row: Any row.
        items: Which items are wanted.

    Returns:
        The smaller row and, for each of its nodes, the index of that node in `row`.
    """
    chosen_items = set(items)
    asks = [ask for ask in row.asks if ask[2] in chosen_items]
    needed: set[int] = set()
    for node, _, _ in asks:
        while node >= 0 and node not in needed:
            needed.add(node)
            node = row.parents[node]
    nodes = sorted(needed)
    place = {node: index for index, node in enumerate(nodes)} | {-1: -1}
    small = TrieRow(
        [row.tokens[node] for node in nodes],
        [place[row.parents[node]] for node in nodes],
        [row.depths[node] for node in nodes],
        [(place[node], token, item) for node, token, item in asks],
    )
    return small, nodes


def chunks(rows: Sequence[AnyRow], tokens: int, asks: int, *, padded: bool) -> Iterator[list[AnyRow]]:
    """Yield rows, longest first, grouped into forward passes; packed ones are about equally large.

    Args:
        rows: Made by `make_rows`.
        tokens: Positions in one pass, padding included; a longer row stands alone.
        asks: Rows of logits in one pass.
        padded: Rows are padded to the longest of the pass, by at most about a seventh; otherwise they are packed.
    """
    held: list[AnyRow] = []
    used = logits = 0
    total = sum(map(len, rows))
    share = tokens if padded else total / max(1, math.ceil(total / tokens))
    for row in sorted(rows, key=len, reverse=True):
        width = len(held[0]) if held and padded else len(row)
        sparse = bool(held) and padded and len(row) < 0.85 * width
        full = used + width > tokens or used + width / 2 > share
        if held and (sparse or full or logits + row.asked > asks):
            yield held
            held, used, logits, width = [], 0, 0, len(row)
        held.append(row)
        used, logits = used + width, logits + row.asked
    if held:
        yield held


def unique_nodes(items: Iterable[EncodedCloze]) -> int:
    """Count the nodes of the one trie over all items: the fewest tokens that have to be fed."""
    total = 0
    before: tuple[int, ...] = ()
    for ids, _ in sorted(items):
        total += len(ids) - 1 - _shared(before, ids)
        before = ids[:-1]
    return total


@dataclass(frozen=True)
class Windows:
    """How T nodes are cut into G windows of W nodes, each of which looks at K keys.

    Attributes:
        width: W; the last window may be filled up, so G * W >= T.
        keys: (G * K,) the nodes that each window looks at, window after window.
    """

    width: int
    keys: Tensor


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
        packed: All nodes in one sequence without padding; needs attention by window.
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
    """Return the nodes above a node, from the first token on."""
    nodes = []
    while (node := row.parents[node]) >= 0:
        nodes.append(node)
    return nodes[::-1]


def _mask(nodes: Tensor, keys: Tensor, ends: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a mask (rows, 1, nodes, keys) in which node j sees key i exactly when i <= j < end[i]."""
    sees = (nodes[:, :, None] >= keys[:, None, :]) & (nodes[:, :, None] < ends[:, None, :])
    lowest = torch.finfo(dtype).min
    return torch.full(sees.shape, lowest, dtype=dtype, device=nodes.device).masked_fill_(sees, 0.0)[:, None]
