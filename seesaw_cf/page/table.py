"""A table of a page: texts in rows and columns, some of which lead somewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table.

    Attributes:
        cells: Its texts.
        links: Number of a cell -> where it leads, within the page.
    """

    cells: Sequence[str]
    links: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its heads, how many columns are words, rows, and sentences in front of it."""

    kind: ClassVar[str] = "table"
    name: str
    title: str
    about: str
    heads: Sequence[str]
    left: int
    rows: Sequence[TableRow]
    lines: Sequence[str] = field(default_factory=tuple)
