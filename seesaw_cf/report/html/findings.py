"""Pages of findings: the conclusion, sections of any parts, method and provenance, tables to take away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import pandas as pd

from seesaw_cf.base.terminal import printable, wrap
from seesaw_cf.report.html.forest import Panel
from seesaw_cf.report.html.render import csv_files, render

HEADS = ("Edited", "Took", "Affected", "Not known", "How sure")
_LAST = (("method", "How do I repeat it?"), ("downloads", "Tables"))


class Part(Protocol):
    """Something that a macro of `parts.html` shows: the one called `kind`."""

    kind: ClassVar[str]


@dataclass(frozen=True, slots=True)
class Legend:
    """A legend: (colour, dash, name), and what marks mean."""

    kind: ClassVar[str] = "keys"
    names: Sequence[tuple[int, int, str]]
    note: str


@dataclass(frozen=True, slots=True)
class Panels:
    """Forest plots."""

    kind: ClassVar[str] = "panels"
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Folded:
    """Parts that a reader opens."""

    kind: ClassVar[str] = "folded"
    title: str
    parts: Sequence[Part]
    warning: bool = False


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of a page with a heading: sentences, then parts."""

    name: str
    title: str
    parts: Sequence[Part]
    lines: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Findings:
    """Content of a page.

    Attributes:
        title: Its heading.
        said: One sentence for each of `HEADS`; "" where the question does not arise.
        sections: In the order of a reader.
        method: Sentences about how it was measured.
        command: What repeats it; "" when nothing does.
        facts: What was recorded about it: (name, value).
        tables: Name -> table to download.
    """

    title: str
    said: Sequence[str]
    sections: Sequence[PageSection]
    method: Sequence[str]
    command: str
    facts: Sequence[tuple[str, str]]
    tables: Mapping[str, pd.DataFrame]


def findings_page(page: Findings) -> str:
    """Return self-contained HTML; the same findings give the same bytes."""
    last = [(name, title) for name, title in _LAST if name != "downloads" or page.tables]
    values = {
        "title": page.title,
        "conclusion": conclusion(page.said),
        "sections": page.sections,
        "contents": [*((section.name, section.title) for section in page.sections), *last],
        "method": page.method,
        "command": page.command,
        "facts": page.facts,
        "downloads": csv_files(page.tables),
    }
    return render("findings.html", values)


def first_lines(page: Findings) -> str:
    """The page's first lines, for a terminal."""
    return "\n".join([printable(page.title), *said_lines(page.said)])


def said_lines(sentences: Sequence[str]) -> list[str]:
    """A sentence for each of `HEADS`, for a terminal."""
    return [wrap(f"{head}: {printable(sentence)}", "  ") for head, sentence in conclusion(sentences)]


def conclusion(sentences: Sequence[str]) -> list[tuple[str, str]]:
    """Return (head, sentence) of the questions that arise."""
    return [(head, sentence) for head, sentence in zip(HEADS, sentences, strict=True) if sentence]
