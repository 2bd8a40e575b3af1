"""Rows of token tries: every distinct prefix is one node, and a node is fed to the model once.

A continuation's last token is never fed, because nothing is asked after it. Nodes of a row stand in depth-first order,
so node j sees node i (i is j itself or an ancestor) exactly when `i <= j < end[i]`. Nothing here imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from seesaw_cf.scoring.encode import EncodedCloze

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
        """Number of nodes whose next-token probabilities are needed."""
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
    """Length of the common start of what was fed and what is to be fed."""
    count = 0
    for old, new in zip(before, ids[:-1]):
        if old != new:
            break
        count += 1
    return count


def subset(row: TrieRow, items: Iterable[int]) -> tuple[TrieRow, list[int]]:
    """The part of a row that some of its items need.

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
    """Groups rows, longest first, into forward passes; packed ones are about equally large.

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
    """Nodes of the one trie over all items: the tokens that have to be fed at the least."""
    total = 0
    before: tuple[int, ...] = ()
    for ids, _ in sorted(items):
        total += len(ids) - 1 - _shared(before, ids)
        before = ids[:-1]
    return total
