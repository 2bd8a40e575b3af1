"""The first screen of a report: the same for a terminal, a notebook, a page and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import wcwidth

from seesaw_cf.base.terminal import cut, terminal_width
from seesaw_cf.base.types import JsonObject


@dataclass(frozen=True)
class ScreenRow:
    """One line of numbers.

    Attributes:
        words: What was counted or measured.
        cells: A number for each column of the screen, "" where there is none.
        badge: What is concluded, "" where nothing is.
        severity: "bad", "good", "same" or "open": how the badge looks.
        detail: The whole sentence behind the badge, and what it is made of.
    """

    words: str
    cells: Sequence[str] = ()
    badge: str = ""
    severity: str = "open"
    detail: str = ""


@dataclass(frozen=True)
class Screen:
    """What was found, on one screen.

    Attributes:
        about: What was done to what, and who was asked about.
        finding: The finding in a few sentences, the most important one first.
        missing: What was refused, unscored or left out; "" where nothing was.
        columns: Heads of the numbers.
        sections: Title -> its lines.
        example: One answer in words.
        notes: What else a reader must know, each a sentence.
    """

    about: str
    finding: Sequence[str]
    missing: str = ""
    columns: Sequence[str] = ()
    sections: Mapping[str, Sequence[ScreenRow]] = field(default_factory=dict)
    example: str = ""
    notes: Sequence[str] = ()

    @property
    def title(self) -> str:
        """The finding as a title."""
        return " ".join(self.finding)

    def record(self) -> JsonObject:
        """Return the screen as plain JSON."""
        return asdict(self)

    def terminal(self, last: str = "") -> str:
        """Return the screen as text that fits the terminal.

        Args:
            last: One more line, such as where the files are.
        """
        width = min(terminal_width(), 100)
        lines = [*_paragraph(self.about, width), ""]
        lines += _paragraph(self.missing, width) if self.missing else []
        for sentence in self.finding:
            lines += _paragraph(sentence, width, "  ")
        lines += ["", *self._numbers(width)] if self.sections else []
        rest = [f"Example: {self.example}"] if self.example else []
        *notes, final = [*self.notes, ""] if not self.notes else self.notes
        rest = [*rest, *notes, f"{final} {last}".strip()]
        return "\n".join([*lines, "", *(line for text in rest for line in _paragraph(text, width, "  "))]).rstrip()

    def _numbers(self, width: int) -> list[str]:
        rows = [row for own in self.sections.values() for row in own]
        badge = max((wcwidth.width(row.badge) for row in rows), default=0)
        most = max(9, min(18, (width - badge - 32) // max(1, len(self.columns)) - 2))
        heads = [_lines(head, most) for head in self.columns]
        cells = [[cut(row.cells[at], most) if at < len(row.cells) else "" for row in rows] for at in range(len(heads))]
        widths = [
            max([*map(wcwidth.width, head), *map(wcwidth.width, own), 0])
            for head, own in zip(heads, cells, strict=True)
        ]
        left = width - sum(size + 2 for size in widths) - (badge + 2 if badge else 0)
        depth = max(map(len, heads), default=0)
        padded = [[""] * (depth - len(head)) + head for head in heads]
        lines = [_row("", line, widths, "", left) for line in zip(*padded, strict=True)]
        for title, own in self.sections.items():
            lines += _paragraph(title, width)
            for row in own:
                room = left - 2 if row.cells else width - badge - 4
                words = _paragraph(row.words, room, "  ", "    ") or [""]
                if not row.cells:
                    lines += [*words[:-1], f"{words[-1]:{width - badge - 2}}  {row.badge}".rstrip()]
                    continue
                full = [cut(cell, most) for cell in row.cells] + [""] * (len(widths) - len(row.cells))
                *first, last = words
                lines += [*first, _row(last, full, widths, row.badge, left)]
        return lines


def _row(words: str, cells: Sequence[str], widths: Sequence[int], badge: str, left: int) -> str:
    padded = [" " * (size + 2 - wcwidth.width(cell)) + cell for cell, size in zip(cells, widths, strict=True)]
    return f"{words}{' ' * (left - wcwidth.width(words))}{''.join(padded)}  {badge}".rstrip()


def _paragraph(text: str, width: int, indent: str = "", later: str | None = None) -> list[str]:
    later = indent if later is None else later
    whole = wcwidth.wrap(" ".join(text.split()), width - len(indent), subsequent_indent="", break_on_hyphens=False)
    return [f"{indent if not at else later}{line}" for at, line in enumerate(whole)]


def _lines(text: str, width: int) -> list[str]:
    return list(wcwidth.wrap(text, width, break_on_hyphens=False)) or [""]
