"""Numbers, lists and paragraphs as they are shown. Widths are measured in terminal columns, not in characters."""

from __future__ import annotations

import io
import math
import re
import shutil
from collections.abc import Iterable, Sequence

import wcwidth

_NO_TERMINAL = 100  # columns where the output is not a terminal and COLUMNS is not set
_NARROWEST = 40
_PARAGRAPH = 100  # longer lines of prose are hard to read, however wide the terminal
_GAP = 2
_PROSE = 16  # a last column is never narrower
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


def printable(text: object) -> str:
    """Return text from data or a model without control characters, line ends and changes of writing direction."""
    return _CONTROL.sub(" ", str(text)).strip()


def quantity(number: float, noun: str, plural: str = "") -> str:
    """Return a whole number with its noun: "1 edit", "1,200 edits"; `plural` where it is not the noun with an s."""
    return f"{number:,.0f} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Iterable[object], most: int = 2, joined: str = ", ") -> str:
    """Return the first names, and how many more there are: "A, B and 3 more"."""
    words = [str(name) for name in names]
    return joined.join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def terminal_width() -> int:
    """Return the terminal's columns: `COLUMNS` where it is set, 100 where the output is not a terminal, at least 40."""
    return max(_NARROWEST, shutil.get_terminal_size((_NO_TERMINAL, 24)).columns)


def cut(text: str, width: int) -> str:
    """Cut text to at most `width` terminal columns; it ends with an ellipsis when something was cut off."""
    if wcwidth.width(text) <= width:
        return text
    return wcwidth.clip(text, 0, width - 1).rstrip() + "\u2026"


def wrap(text: str, indent: str = "") -> str:
    """Break a paragraph at the terminal's width, and at 100 columns in a wider one; later lines are indented."""
    width = min(terminal_width(), _PARAGRAPH)
    return "\n".join(wcwidth.wrap(" ".join(text.split()), width, subsequent_indent=indent, break_on_hyphens=False))


def description_list(rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Align columns of which the last is prose, broken at the terminal's width under its own beginning."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(wcwidth.width, column)) for column in zip(*cells, strict=True)][:-1]
    start = len(indent) + sum(widths) + _GAP * len(widths)
    room = max(_PROSE, terminal_width() - start)
    lines = []
    for *names, about in cells:
        first = indent + "".join(wcwidth.ljust(name, width + _GAP) for name, width in zip(names, widths, strict=True))
        prose = wcwidth.wrap(about, room, break_on_hyphens=False) or [""]
        lines += [(first + prose[0]).rstrip(), *(" " * start + line for line in prose[1:])]
    return "\n".join(lines)


def markdown_for_terminal(markdown: str) -> str:
    """Format a report in Markdown for a terminal: tables laid out, paragraphs wrapped, without colours."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(width=terminal_width(), color_system=None, file=io.StringIO())
    with console.capture() as drawn:
        console.print(Markdown("\n".join(_CONTROL.sub(" ", line) for line in markdown.split("\n"))))
    return "\n".join(line.rstrip() for line in drawn.get().split("\n")).strip("\n")


BOUNDLESS = 1e6  # points, nats or anything else that reports show with a sign


def number(value: float | None, zero_limit: float = 0.0, digits: int = 3) -> str:
    """Return a signed number, in exponent form when its decimals would hide it; 0 up to `zero_limit`; "-" for none.

    An end of an interval beyond `BOUNDLESS` is infinite: few people leave no bound, and no effect is that large.
    """
    if value is None or math.isnan(value):
        return "-"
    if abs(value) > BOUNDLESS:
        return "+∞" if value > 0 else "-∞"
    if abs(value) <= zero_limit:
        return f"{0:.{digits}f}"
    return f"{value:+.1e}" if abs(value) < 0.5 * 10**-digits else f"{value:+.{digits}f}"


def interval(low: float | None, high: float | None, zero_limit: float = 0.0, digits: int = 3, spec: str = "") -> str:
    """Return `[low, high]` as `number` shows both ends, or in the format `spec`; "-" when there is none."""
    if low is None or high is None or math.isnan(low):
        return "-"
    ends = [format(end, spec) if spec else number(end, zero_limit, digits) for end in (low, high)]
    return f"[{ends[0]}, {ends[1]}]"


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a Markdown table, `left` columns of it to the left. Cells are taken as they are: escape data."""
    rule = ["---" if column < left else "---:" for column in range(len(headers))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (headers, rule, *rows))
