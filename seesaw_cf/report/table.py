"""One table of a report: declared once, written for a terminal, as Markdown, LaTeX and CSV; `macros.html` shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import pandas as pd

from seesaw_cf.base.files import csv_text
from seesaw_cf.base.terminal import column_table, printable, wrap
from seesaw_cf.report.rows import Row as Row
from seesaw_cf.report.rows import rows_of as rows_of
from seesaw_cf.report.text import escape, interval, markdown_table, number

Cell = str | Callable[[Row], object]  # a column of the frame, or what makes a value of its row
Safe = Callable[[object], str]  # makes text from data harmless in one form

# Columns of a long frame that belong to its number, and not to the row's name.
_NUMBERS = ("value", "low", "high", "sd", "n", "n_cases", "n_missing", "note", "p", "p_adjusted", "p_paper")
_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        head: Its heading.
        cell: The frame's column that it shows, or a function of the row; "" = the column named like the heading.
        words: Words, aligned to the left; else numbers. Columns of words come first.
        digits: Decimals of a float.
    """

    head: str
    cell: Cell = ""
    words: bool = False
    digits: int = 3

    def text(self, row: Row, safe: Safe = str) -> str:
        """Return the cell of a row; "-" for a missing value."""
        value = _value(row, self.cell or self.head)
        if isinstance(value, float):
            return number_text(value, self.digits)
        return "-" if value is None or value is pd.NA else safe(value)


word_column = partial(Column, words=True)


@dataclass(frozen=True, slots=True)
class EstimateColumn(Column):
    """A column of estimates: value, star, unit, interval or why there is none, and n, in one cell.

    Attributes:
        low: The frame's column of the interval's lower end; "" = the value's name with "_low". The upper end's column
            is named alike.
        scale: Multiplies the three numbers; 100 for percent.
        unit: Follows the value.
        sign: Show the sign of positive numbers.
        zero: Largest absolute value that prints as 0; small numbers are then signed and shown with an exponent.
        star: A star follows where it is true; a text follows as it is.
        spread: The frame's column of a standard deviation.
        note: Reason for a missing interval; stands in its place.
        n: Counts, shown behind the interval, such as "n=12".
    """

    low: str = ""
    scale: float = 1.0
    unit: str = ""
    sign: bool = False
    zero: float | None = None
    star: Cell = ""
    spread: str = ""
    note: Cell = ""
    n: Cell = ""

    def text(self, row: Row, safe: Safe = str) -> str:
        """Return the cell of a row; its note or "-" without a value."""
        name = self.cell if isinstance(self.cell, str) and self.cell else self.head
        low = self.low or f"{name}_low"
        value, bottom, top = (self._scaled(row.get(key)) for key in (name, low, low.replace("low", "high")))
        note, n = (safe(_value(row, cell) or "") if cell else "" for cell in (self.note, self.n))
        if value is None:
            return f"{note or '-'} {n}".rstrip()
        spec = "" if self.zero is not None else f"{'+' if self.sign else ''}.{self.digits}f"
        shown = format(value, spec) if spec else number(value, self.zero or 0.0, self.digits)
        sign = _value(row, self.star) if self.star else ""
        star = safe(sign if isinstance(sign, str) else "*") if sign else ""
        spread = self._scaled(row.get(self.spread))
        width = "" if spread is None else f"± {spread:.{self.digits}f}"
        limits = interval(bottom, top, self.zero or 0.0, self.digits, spec)
        parts = (f"{shown}{self.unit}{star}", width, limits if limits != "-" else f"({note})" if note else "", n)
        return " ".join(filter(None, parts))

    def _scaled(self, value: Any) -> float | None:
        return None if value is None or pd.isna(value) else self.scale * float(value)


@dataclass(frozen=True)
class Table:
    """A table: the same rows, columns, order, digits and notes in every form.

    Attributes:
        name: Of its file and its place in a page.
        title: Headline.
        about: One sentence: what the numbers are.
        columns: From left to right, words first; without any the table is a file alone.
        frame: One row per row of the table; with `across` one row per number.
        across: The frame's column with values that become columns, each filled from the last of `columns`.
        view: The rows that people see, where files hold more.
        lines: Sentences that follow the first.
        brief: `report.md` shows it; else it names the table's file.
    """

    kind: ClassVar[str] = "table"
    name: str
    title: str
    about: str
    columns: Sequence[Column]
    frame: pd.DataFrame
    across: str = ""
    view: pd.DataFrame | None = None
    lines: Sequence[str] = ()
    brief: bool = True

    def __post_init__(self) -> None:
        assert all(column.words for column in self.columns[: self.left]), f"{self.name}: words come first"

    @property
    def left(self) -> int:
        """Number of columns of words."""
        return sum(column.words for column in self.columns)

    @property
    def heads(self) -> list[str]:
        """Headings."""
        heads = [column.head for column in self.columns]
        if not self.across:
            return heads
        notes = ["note"] if any(self._notes(self._rows)) else []
        return [*heads[:-1], *map(str, dict.fromkeys(row[self.across] for row in self._rows)), *notes]

    @property
    def rows(self) -> list[list[str]]:
        """Rows of a page's table."""
        return self.cells(printable)

    def cells(self, safe: Safe = str) -> list[list[str]]:
        """Return every cell as text; `safe` makes text from data harmless."""
        if not self.across:
            return [[column.text(row, safe) for column in self.columns] for row in self._rows]
        *keys, last = self.columns
        lines: dict[tuple[str, ...], dict[object, Row]] = {}
        for row in self._rows:
            lines.setdefault(tuple(column.text(row, str) for column in keys), {})[row[self.across]] = row
        noted = any(self._notes(self._rows))
        cells = []
        for line in lines.values():
            names = [column.text(next(iter(line.values())), safe) for column in keys]
            numbers = [
                last.text(line[at], safe) if at in line else ""
                for at in dict.fromkeys(row[self.across] for row in self._rows)
            ]
            cells.append([*names, *numbers, *([safe("; ".join(self._notes(line.values())))] if noted else [])])
        return cells

    def terminal(self) -> str:
        """Return plain text as wide as the terminal."""
        lines = [wrap(printable(line)) for line in self.sentences]
        table = [column_table(self.heads, self.cells(), self.left)] if self._rows else []
        return "\n".join([self.title.upper(), *lines, *table])

    def markdown(self, level: int = 2) -> str:
        """Return a section of Markdown with a heading of this level."""
        heads = [escape(head) for head in self.heads]
        table = [markdown_table(heads, self.cells(escape), self.left)] if self._rows else []
        return "\n\n".join([f"{'#' * level} {escape(self.title)}", *map(escape, self.sentences), *table])

    def latex(self) -> str:
        """Return a `tabular` with the rules of booktabs."""
        rows = [[printable(cell) for cell in row] for row in self.cells()]
        return str(pd.DataFrame(rows, columns=self.heads).to_latex(index=False, escape=True))

    @cached_property
    def csv(self) -> str:
        """The cells as texts, and every column of the frame in full precision; texts without control characters."""
        rows = rows_of(self.frame)
        texts = {column.head: [column.text(row, printable) for row in rows] for column in self.columns}
        frame = {str(name): [printable(value) if isinstance(value, str) else value for value in self.frame[name]]
                 for name in self.frame}  # fmt: skip
        return csv_text(pd.DataFrame(texts | frame))

    @property
    def sentences(self) -> list[str]:
        """What the numbers are, notes, and how many rows only the files hold."""
        more = len(self.frame) - len(self._rows)
        files = f"{more:,} more rows are in {self.file}." if more else ""
        return [" ".join(line.split()) for line in (self.about, *self.lines, files) if line]

    @property
    def file(self) -> str:
        """Its CSV file in the folder of a report."""
        return f"tables/{self.name}.csv"

    @cached_property
    def _rows(self) -> list[Row]:
        return rows_of(self.frame if self.view is None else self.view)

    @staticmethod
    def _notes(rows: Iterable[Row]) -> list[str]:
        return sorted({str(row["note"]) for row in rows if row.get("note")})


def table_of(
    name: str, title: str, about: str, frame: pd.DataFrame, across: str = "", digits: int = 2, unit: str = "edits"
) -> Table:
    """Return a frame as a table, its columns declared by what they hold.

    Args:
        name, title, about, across: As in `Table`.
        frame: With `across`, a long frame: names, and `value`, `low`, `high`, `n`, `n_cases` of one number per row.
        digits: Decimals.
        unit: What `n_cases` counts.
    """
    if not across:
        first = next((at for at, key in enumerate(frame) if pd.api.types.is_numeric_dtype(frame[key])), 1)
        columns = [Column(str(key), words=at < max(1, first), digits=digits) for at, key in enumerate(frame)]
        return Table(name, title, about, columns, frame)
    names = [word_column(str(key)) for key in frame if key not in _NUMBERS and key != across]

    def counts(row: Row) -> str:
        missing = f", {row['n_missing']} missing" if row.get("n_missing") else ""
        return f"(n = {row['n']} of {row['n_cases']} {unit}{missing})"

    def marked(row: Row) -> bool:
        return bool(row.get("p_adjusted", 1.0) < _LEVEL)

    value = EstimateColumn("shown", "value", digits=digits, low="low", spread="sd", star=marked, n=counts)
    return Table(name, title, about, [*names, value], frame, across)


def number_text(value: float, digits: int) -> str:
    """Return a number with `digits` decimals, whole numbers above 1 without; "-" for NaN."""
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if value.is_integer() and abs(value) > 1 else f"{value:.{digits}f}"


def _value(row: Row, cell: Cell) -> Any:
    return row.get(cell) if isinstance(cell, str) else cell(row)
