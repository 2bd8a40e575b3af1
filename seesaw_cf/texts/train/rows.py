"""Rows to train on: read from a CSV file, and grouped so that no sample or text is on both sides of a split."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import lil_array
from scipy.sparse.csgraph import connected_components

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import read_bytes


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Rows to train on; all fields but the last have one entry per row.

    Attributes:
        pairs: Two texts, of which the second is never cut.
        targets: Index into `classes`, or a rating from 1 to 7.
        parts: What figures are given for apart: the kind of premise, or the survey item.
        groups: Rows with the same number share a sample or a passage text; see `join_groups`.
        classes: What is told apart; () for ratings.
    """

    pairs: Sequence[tuple[str, str]]
    targets: Sequence[float]
    parts: Sequence[str]
    groups: Sequence[int]
    classes: tuple[str, ...] = ()

    def take(self, rows: Sequence[int]) -> TrainingRows:
        """Return the rows of these numbers."""
        pairs, targets, parts, groups = (
            [column[row] for row in rows] for column in (self.pairs, self.targets, self.parts, self.groups)
        )
        return TrainingRows(pairs, targets, parts, groups, self.classes)  # type: ignore[arg-type]


def read_csv(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return a CSV file as texts; empty cells are "".

    Raises:
        StorageError: See `read_bytes`.
        RecordError: It is not a CSV table.
    """
    content = io.BytesIO(read_bytes(path))
    try:
        return pd.read_csv(content, dtype=str, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: no CSV table ({error}). Expected a comma-separated file with a header.") from error


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
