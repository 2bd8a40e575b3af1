"""Rows to train on: read from a CSV file, taken and split with everything that is known of them."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import read_bytes


@dataclass(frozen=True, slots=True)
class Rows:
    """Every field has one entry per row, except `notes`."""

    def take(self, rows: Sequence[int]) -> Self:
        """Return the rows of these numbers."""
        columns = {column.name: getattr(self, column.name) for column in fields(self) if column.name != "notes"}
        return replace(self, **{name: tuple(column[row] for row in rows) for name, column in columns.items()})

    def split(self, left_out: NDArray[np.bool_]) -> tuple[Self, Self]:
        """Return the other rows, and those that are left out.

        Args:
            left_out: (n,) which rows.
        """
        return self.take(np.flatnonzero(~left_out).tolist()), self.take(np.flatnonzero(left_out).tolist())


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
