"""CSV files for spreadsheets: no text from data or a model is taken for a formula.

A spreadsheet runs a cell that begins with "=", "+", "-", "@", a tab or a carriage return as a formula. Text cells that
begin so get an apostrophe before them, as do those that begin with an apostrophe before such a sign, so that the
original can be told; numbers stay as they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def neutral(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def original(text: str) -> str:
    """The text that `neutral` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def csv_text(frame: pd.DataFrame) -> str:
    """A table as CSV with `neutral` text cells, line ends as on Unix.

    Args:
        frame: The table; its index is left out.
    """
    safe = frame.map(lambda cell: neutral(cell) if isinstance(cell, str) else cell)
    return str(safe.rename(columns=neutral).to_csv(index=False, lineterminator="\n"))
