"""The first screen of a report, the same for a terminal, a page and JSON; and one page for every kind of report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path

import pandas as pd
import wcwidth
from jinja2 import Environment, Template
from markupsafe import Markup

from seesaw_cf.base.files import csv_text, sweep, write_text
from seesaw_cf.base.terminal import cut, printable, terminal_width
from seesaw_cf.base.types import JsonObject
from seesaw_cf.stats.plain import json_text


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
        lines = _paragraph(self.about, width)
        lines += _paragraph(self.missing, width) if self.missing else []
        lines += [line for sentence in self.finding for line in _paragraph(sentence, width, "  ")]
        lines += self._numbers(width) if self.sections else []
        *notes, final = self.notes or [""]
        rest = [*[f"Example: {self.example}"] * bool(self.example), *notes, f"{final} {last}".strip()]
        return "\n".join([*lines, "", *(line for text in rest for line in _paragraph(text, width, "  "))]).rstrip()

    def _numbers(self, width: int) -> list[str]:
        """Return the sections as lines: words, a column for each number, and the badge."""
        rows = [row for own in self.sections.values() for row in own]
        badge = max((wcwidth.width(row.badge) for row in rows), default=0)
        most = max(9, min(18, (width - badge - 32) // max(1, len(self.columns)) - 2))
        heads = [_paragraph(head, most) for head in self.columns]
        depth = max(map(len, heads), default=0)
        above = list(zip(*([""] * (depth - len(head)) + head for head in heads), strict=True))
        cells = [[cut(cell, most) for cell in row.cells] + [""] * (len(heads) - len(row.cells)) for row in rows]
        widths = [max(map(wcwidth.width, column)) for column in zip(*above, *cells, strict=True)]
        left = width - sum(widths) - 2 * len(widths) - (badge + 2 if badge else 0)

        def line(words: str, numbers: Sequence[str], verdict: str = "") -> str:
            padded = (" " * (2 + size - wcwidth.width(cell)) + cell for cell, size in zip(numbers, widths))
            room = left if any(numbers) else width - badge - 2
            return f"{words}{' ' * (room - wcwidth.width(words))}{''.join(padded) * any(numbers)}  {verdict}".rstrip()

        lines, places = [line("", head) for head in above], iter(cells)
        for title, own in self.sections.items():
            # one row without numbers stands beside its title, where there is room
            alone = f"{title}: {own[0].words}" if len(own) == 1 and not own[0].cells else ""
            if not alone or wcwidth.width(alone) > width - badge - 2:
                lines, alone = lines + _paragraph(title, width), ""
            for row in own:
                room = left - 2 if row.cells else width - badge - 4
                *first, last = [alone] if alone else _paragraph(row.words, room, "  ", "    ") or [""]
                lines += [*first, line(last, next(places), row.badge)]
        return lines


def _paragraph(text: str, width: int, indent: str = "", later: str | None = None) -> list[str]:
    whole = wcwidth.wrap(
        " ".join(printable(text).split()), width - len(indent), subsequent_indent="", break_on_hyphens=False
    )
    return [f"{indent if not at or later is None else later}{line}" for at, line in enumerate(whole)]


# The page: a first screen, parts with pictures and tables, files, and how it was made.

READING = (
    "Numbers in brackets are likely ranges: 95 % of such ranges hold the true value. Points are points of probability; "
    "harm is always above 0 and to the right."
)
LABELS = (
    "Race, region and gender are what public records say about people; nothing is inferred from a name. A person may "
    "have several labels and counts in each of those groups; people without one count as unknown. That no difference "
    "was measured is no evidence of fairness, least of all in groups with few people."
)


@dataclass(frozen=True)
class Part:
    """A part of a page.

    Attributes:
        title: Its heading.
        texts: Sentences below it.
        pictures: Name ("" without one) -> captions and SVG.
        table: Cells of a table that can be sorted and filtered.
        marked: Which of its rows turned from right to wrong.
    """

    title: str
    texts: Sequence[str] = ()
    pictures: Mapping[str, Sequence[tuple[str, Markup]]] = field(default_factory=dict)
    table: pd.DataFrame | None = None
    marked: Sequence[bool] = ()

    @property
    def numeric(self) -> list[bool]:
        """Which columns of the table are numbers, as all their cells begin like one."""
        columns = self.table.items() if self.table is not None else ()
        return [bool(cells.astype(str).str.match(r"[<>\u2212\u2013+-]?\d|\u2013?$").all()) for _, cells in columns]


def render_page(
    screen: Screen,
    parts: Sequence[Part] = (),
    *,
    checks: Sequence[tuple[bool, str]] = (),
    tables: Mapping[str, str] = {},
    foot: Sequence[str] = (LABELS,),
    command: str = "",
    reading: str = READING,
    picture: Markup | None = None,
) -> str:
    """Return a page that needs no network and runs its own script only; text from data and models is escaped.

    Args:
        screen: What was found.
        parts: What follows.
        checks: Whether each of some conditions holds, in words.
        tables: Names of CSV files in the folder `tables` -> what they hold.
        foot: How it was made.
        command: What repeats it.
        reading: How its numbers are read.
        picture: SVG beside the first screen.
    """
    words = {"screen": screen, "parts": parts, "checks": checks, "tables": tables, "foot": foot, "command": command}
    return _template().render(**words, reading=reading, picture=picture)


def write_files(folder: Path, page: str, record: object, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write `report.html`, `report.json` and `tables/NAME.csv`; raise StorageError where that fails."""
    sweep(folder)
    write_text(folder / "report.html", page)
    write_text(folder / "report.json", json_text(record))
    for name, table in tables.items():
        write_text(folder / "tables" / f"{name}.csv", csv_text(table))


@cache
def _template() -> Template:
    source = (files("seesaw_cf.report") / "page.html").read_text(encoding="utf-8")
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)
