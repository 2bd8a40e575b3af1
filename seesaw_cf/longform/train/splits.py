"""Splits that keep what belongs together apart from the rest: never one sample, or one text, on both sides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.sparse import lil_array
from scipy.sparse.csgraph import connected_components

from seesaw_cf.errors import RecordError


def join_groups(*keys: Sequence[str]) -> list[int]:
    """Number rows so that two rows have the same number when a chain of shared keys leads from one to the other.

    Args:
        *keys: One list per kind of key (sample ids, passage texts), each with one key a row. White space and case do
            not tell texts apart; an empty key joins nothing.

    Returns:
        A group number per row, 0, 1, ... in order of first appearance.

    Raises:
        RecordError: The lists differ in length.

    Source: the connected components of the graph of shared keys.
    """
    lengths = {len(column) for column in keys}
    if len(lengths) != 1:
        raise RecordError(f"join_groups: keys for {sorted(lengths)} rows; expected as many of each kind as rows.")
    first: dict[tuple[int, str], int] = {}
    rows = lengths.pop()
    graph = lil_array((rows, rows), dtype=np.int8)
    for kind, column in enumerate(keys):
        for row, key in enumerate(column):
            if text := " ".join(key.casefold().split()):
                graph[row, first.setdefault((kind, text), row)] = 1
    return [int(group) for group in connected_components(graph, directed=False)[1]] if rows else []


def grouped_folds(groups: Sequence[int], folds: int, seed: int = 0) -> list[int]:
    """Deal whole groups into folds of about equal size, large groups first, each to the smallest fold so far.

    Args:
        groups: A group number per row.
        folds: How many; at least 2.
        seed: Decides between groups of the same size.

    Returns:
        The fold of each row, 0 to folds - 1.

    Raises:
        RecordError: Fewer groups than folds.
    """
    sizes = Counter(groups)
    if not 2 <= folds <= len(sizes):
        raise RecordError(
            f"grouped folds: {folds} folds of {len(sizes)} independent groups (samples that share no text); expected "
            f"2 to {len(sizes)}. Ask for fewer folds or bring more samples."
        )
    order = np.random.default_rng(seed).permutation(sorted(sizes))
    filled = [0] * folds
    fold_of: dict[int, int] = {}
    for group in sorted(order.tolist(), key=lambda g: -sizes[g]):
        fold_of[group] = int(np.argmin(filled))
        filled[fold_of[group]] += sizes[group]
    return [fold_of[group] for group in groups]
