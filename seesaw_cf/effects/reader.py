"""Columns as a table: every value is checked by the one kind that its column is declared to hold."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence, Sized
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError

Id = int | str
"""What an edit, an item or a cluster is called; a column holds whole numbers or texts, never both."""
Kind = Callable[[str, Sequence[object]], object]
"""A column's name and values -> the values as they are computed with; raises `RecordError` at the first bad one."""


def check_lengths(columns: Mapping[str, Sequence[object]]) -> int:
    """Check that columns have the same number of rows, and return it.

    Raises:
        RecordError: A column is not a list, or columns are empty or of unequal length; all lengths are shown.
    """
    for name, column in columns.items():
        if not isinstance(column, Sized) or isinstance(column, str | bytes | Mapping) or not getattr(column, "ndim", 1):
            raise RecordError(f"{name} is {checks.shown(column)}, expected a list with one value per row.")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise RecordError(f"columns have unequal lengths {lengths}; give one value per row in every column.")
    if not any(lengths.values()):
        raise RecordError(f"no rows in {list(lengths)}; there is nothing to compute.")
    return next(iter(lengths.values()))


def read_columns(kinds: Mapping[str, Kind], columns: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    """Read columns of equal length into a data frame.

    Args:
        kinds: Column -> what it holds: `ids`, `wholes`, `floats`, `float_lists`, `labels`, `optional_labels` or
            `text_lists`.
        columns: Column -> one value per row: lists, arrays, series or columns of a data set.

    Raises:
        RecordError: Unequal lengths, no rows, or a value that its column cannot hold; row, value and what was expected.
    """
    check_lengths(columns)
    return pd.DataFrame({name: kinds[name](name, list(column)) for name, column in columns.items()})


def read_clustered(
    kinds: Mapping[str, Kind], columns: Mapping[str, Sequence[object]], cluster: Sequence[Id] | None
) -> pd.DataFrame:
    """Read columns as `read_columns` does, and add `cluster`, codes from 0; None = every row is a separate one."""
    if cluster is None:
        frame = read_columns(kinds, columns)
        return frame.assign(cluster=np.arange(len(frame)))
    frame = read_columns({**kinds, "cluster": ids}, {**columns, "cluster": cluster})
    return frame.assign(cluster=pd.factorize(frame["cluster"])[0])


def ids(name: str, column: Sequence[object]) -> NDArray[np.int64] | pd.Series:
    """Read a column of 64-bit whole numbers, or of texts."""
    if any(isinstance(value, str) for value in column):
        return labels(name, column)
    return wholes(name, column)


def wholes(name: str, column: Sequence[object]) -> NDArray[np.int64]:
    """Read a column of 64-bit whole numbers."""
    return np.array(checks.each(name, column, partial(checks.whole, low=-(2**63), high=2**63 - 1)), dtype=np.int64)


def labels(name: str, column: Sequence[object]) -> pd.Series:
    """Read a column of texts."""
    return pd.Series(checks.each(name, column, checks.text), dtype=object)


def optional_labels(name: str, column: Sequence[object]) -> pd.Series:
    """Read a column of texts; None, NaN and "" are missing, and become None."""
    return pd.Series(checks.each(name, column, _text_or_none), dtype=object)


def text_lists(name: str, column: Sequence[object]) -> pd.Series:
    """Read a column with a list of texts in every row."""
    texts = checks.each(name, column, partial(checks.each, check=checks.text))
    return pd.Series(map(list, texts), dtype=object)


def floats(name: str, column: Sequence[object]) -> NDArray[np.float64]:
    """Read a column of numbers, infinite ones included; None becomes NaN."""
    if set(map(type, column)) <= {float, type(None)}:
        return np.array(column, dtype=np.float64)
    return np.array(checks.each(name, column, _number), dtype=np.float64)


def float_lists(name: str, column: Sequence[object]) -> pd.Series:
    """Read a column with an array of numbers in every row."""
    lists = checks.each(name, column, lambda where, value: floats(where, checks.items(where, value)))
    return pd.Series(lists, dtype=object)


def _text_or_none(where: str, value: object) -> str | None:
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return None if missing else checks.text(where, value) or None


def _number(where: str, value: object) -> float:
    if value is None:
        return math.nan
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
        try:
            return float(value)
        except OverflowError:  # a whole number beyond every float
            pass
    raise RecordError(f"{where} is {checks.shown(value)}, expected a number or None.")
