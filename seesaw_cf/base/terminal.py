"""Tables and paragraphs that fit the terminal. The width is measured in terminal columns, not in characters."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import wcwidth

_NO_TERMINAL = 100  # columns where the output is not a terminal and COLUMNS is not set
_NARROWEST = 40
_PARAGRAPH = 100  # longer lines of prose are hard to read, however wide the terminal
_NAME = 16  # names are cut to this before columns move to a second line
_GAP, _INDENT = 2, 4
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


def column_table(headers: Sequence[str], rows: Sequence[Sequence[object]], left: int = 1) -> str:
    """Lay out columns of plain text so that they fit the terminal.

    Names are cut with an ellipsis, down to 16 columns each, when that makes a row fit into one line. When it does not,
    names keep what the first line has room for, and the last columns move to further, indented lines of each row, the
    header's too. Numbers are never cut or broken.

    Args:
        headers: One per column.
        rows: Cells, turned into text; control characters are removed.
        left: How many columns are names, aligned to the left; the rest are numbers, aligned to the right.
    """
    width = terminal_width()
    cells = [[printable(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(map(wcwidth.width, column)) for column in zip(*cells, strict=True)]
    if _total(widths) > width >= _total(widths, 1):
        return _table(cells, widths, [range(len(widths))], left, 1)
    short = _shortened(widths, left, width)
    widths = short if _total(short) <= width else _shortened(widths[:left], left, width) + widths[left:]
    return _table(cells, widths, list(_lines(widths, width)), left, _GAP)


def _table(cells: Sequence[Sequence[str]], widths: Sequence[int], lines: Sequence[range], left: int, gap: int) -> str:
    header, *body = ("\n".join(_row(row, widths, lines, left, gap)) for row in cells)
    drawn = "\n".join([header, *body]).split("\n")
    return "\n".join([header, "-" * max(map(wcwidth.width, drawn)), *body])


def description_list(rows: Sequence[Sequence[str]], indent: str = "") -> str:
    """Align columns of which the last is prose, broken at the terminal's width under its own beginning."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(wcwidth.width, column)) for column in zip(*cells, strict=True)][:-1]
    start = len(indent) + sum(widths) + _GAP * len(widths)
    room = max(_NAME, terminal_width() - start)
    lines = []
    for *names, about in cells:
        first = indent + "".join(wcwidth.ljust(name, width + _GAP) for name, width in zip(names, widths, strict=True))
        prose = wcwidth.wrap(about, room, break_on_hyphens=False) or [""]
        lines += [(first + prose[0]).rstrip(), *(" " * start + line for line in prose[1:])]
    return "\n".join(lines)


def _shortened(widths: Sequence[int], left: int, width: int) -> list[int]:
    """Make the widest names narrower until all columns fit into one line or no name can lose more."""
    narrowed = list(widths)
    while _total(narrowed) > width and max(narrowed[:left], default=0) > _NAME:
        narrowed[narrowed.index(max(narrowed[:left]))] -= 1
    return narrowed


def _total(widths: Sequence[int], gap: int = _GAP) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def _lines(widths: Sequence[int], width: int) -> Iterator[range]:
    """Yield which columns stand in each line of a row: as many as fit, at least one."""
    starts = [0]
    for column in range(1, len(widths)):
        indent = _INDENT if len(starts) > 1 else 0
        if indent + _total(widths[starts[-1] : column + 1]) > width:
            starts.append(column)
    yield from (range(*pair) for pair in pairwise([*starts, len(widths)]))


def _row(cells: Sequence[str], widths: Sequence[int], lines: Sequence[range], left: int, gap: int) -> Iterator[str]:
    for number, columns in enumerate(lines):
        indent = _INDENT if number else 0
        texts = [_cell(cells[c], min(widths[c], terminal_width() - indent), c < left) for c in columns]
        line = (" " * indent + (" " * gap).join(texts)).rstrip()
        if line or not number:
            yield line


def _cell(text: str, width: int, name: bool) -> str:
    text = cut(text, width)
    return wcwidth.ljust(text, width) if name else wcwidth.rjust(text, width)


def markdown_for_terminal(markdown: str) -> str:
    """Format a report in Markdown for a terminal: tables laid out, paragraphs wrapped, pictures left out."""
    parts = []
    for block in markdown.split("\n\n"):
        lines = block.strip("\n").split("\n")
        if len(lines) > 1 and all(line.startswith("|") for line in lines):
            parts.append(_markdown_table(lines))
        elif lines[0].startswith("```") or all(line.startswith(("#", "- ")) for line in lines):
            parts.append(_plain("\n".join(lines)))
        elif not lines[0].startswith("!["):
            parts.append(wrap(_plain(block)))
    return "\n\n".join(parts)


def _markdown_table(lines: Sequence[str]) -> str:
    header, rule, *rows = ([_plain(cell.strip()) for cell in _cells(line)] for line in lines)
    return column_table(header, rows, sum(not cell.endswith(":") for cell in rule))


def _cells(line: str) -> list[str]:
    return re.split(r"(?<!\\)\|", line.strip())[1:-1]


def _plain(text: str) -> str:
    """Remove Markdown's marks and show escaped characters as they are."""
    text = re.sub(r"<br>", "; ", text)
    text = re.sub(r"(?<![\\\w])(\*\*?|`)(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text)
    text = re.sub(r"\\([\\`*_\[\]|~$#])", r"\1", text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


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
