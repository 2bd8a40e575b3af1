"""Numbers and names as text: for the terminal in ASCII, for Markdown escaped."""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "ABOUT_SCORE",
    "HOLDS",
    "STAR_LEVEL",
    "WIDTH",
    "column_table",
    "escape",
    "fence",
    "interval",
    "is_starred",
    "markdown_table",
    "minus",
    "number",
    "p_value",
    "percent",
    "percent_interval",
    "printable",
    "wrap",
]

WIDTH = 100
STAR_LEVEL = 0.05
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
_MARKUP = re.compile(r"([\\`*_\[\]|~$#])")

# What D is made of -> (its formula, its unit, the range of D_d).
ABOUT_SCORE: Mapping[str, tuple[str, str, str]] = {
    "summed": ("p(new target) - p(true target)", "probability, summed over target tokens", "-2..2"),
    "normalised": ("p(new target) - p(true target)", "probability per target token (geometric mean)", "-2..2"),
    "log_odds": ("log p(new target) - log p(true target)", "nats", "unbounded"),
}

# What the people of a prompt hold -> words.
HOLDS: Mapping[str, str] = {"target_new": "new target", "target_true": "true target", "": "neither, or unknown"}


def number(value: float) -> str:
    """A signed number with three decimals, in exponent form when those would hide it; "-" for NaN."""
    if math.isnan(value):
        return "-"
    if value == 0:
        return "0.000"
    return f"{value:+.1e}" if abs(value) < 0.0005 else f"{value:+.3f}"


def interval(low: float, high: float) -> str:
    """`[low, high]`."""
    return f"[{number(low)}, {number(high)}]"


def percent(value: float) -> str:
    """A share as a percentage with one decimal; "-" for NaN."""
    return "-" if math.isnan(value) else f"{100 * value:.1f}%"


def percent_interval(value: float, low: float, high: float, digits: int = 1) -> str:
    """A share with its interval, in percent, the ends with `digits` decimals; "-" when there is none."""
    return "-" if math.isnan(value) else f"{percent(value)} [{100 * low:.{digits}f}, {100 * high:.{digits}f}]"


def p_value(value: float) -> str:
    """A p-value with three decimals or "<0.001"; "-" for NaN."""
    if math.isnan(value):
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def is_starred(row: Mapping[str, Any]) -> bool:
    """The papers' star: a negative D_d of people who hold the new target, with p < 0.05."""
    return bool(row["holds"] == "target_new" and row["D"] < 0 and row["p"] < STAR_LEVEL)


def printable(text: object) -> str:
    """Text from data or a model without control characters, line ends and changes of writing direction."""
    return _CONTROL.sub(" ", str(text)).strip()


def escape(text: object) -> str:
    """Text from data or a model that Markdown and HTML show as it is."""
    return _MARKUP.sub(r"\\\1", html.escape(printable(text), quote=False))


def fence(text: str) -> str:
    """A fenced code block that its content cannot end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    bar = "`" * max(3, longest + 1)
    return f"{bar}\n{text}\n{bar}"


def wrap(text: str) -> str:
    """A paragraph broken at the terminal's width."""
    return textwrap.fill(" ".join(text.split()), WIDTH)


def column_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 1) -> str:
    """Columns in plain text, at most `WIDTH` wide; the first `left` columns are names, cut with "~" when too long.

    Args:
        headers: One per column.
        rows: Cells, turned into text; control characters are removed.
        left: How many columns are aligned to the left.
    """
    cells = [[printable(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH and max(widths[:left]) > 6:
        widths[widths.index(max(widths[:left]))] -= 1
    lines = []
    for row in cells:
        cut = [cell if len(cell) <= width else cell[: width - 1] + "~" for cell, width in zip(row, widths, strict=True)]
        padded = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cut, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table. Cells are taken as they are: escape what comes from data."""
    rule = ["---" if column < left else "---:" for column in range(len(headers))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (headers, rule, *rows))


def minus(text: str) -> str:
    """Formatted numbers with typographic minus signs, also in exponents."""
    return text.replace("-", "\u2212") if text != "-" else "\u2013"
