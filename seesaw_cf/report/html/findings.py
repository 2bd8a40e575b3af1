"""What a report found in each of its forms, and its page: sections of any parts, method, tables to take away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeVar

from seesaw_cf.base.terminal import printable, wrap
from seesaw_cf.base.types import JsonObject
from seesaw_cf.report.html.forest import Panel
from seesaw_cf.report.html.render import downloads, render
from seesaw_cf.report.table import Table
from seesaw_cf.report.text import escape

_LAST = (("method", "How do I repeat it?"), ("downloads", "Tables"))
Facts = TypeVar("Facts")
TitleRules = Sequence[tuple[Callable[[Facts], object], str]]
"""(Whether it holds, sentence with fields of the facts such as "{0.worst}"), the most important first."""


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


class Section(Part, Protocol):
    """A part of a page with a heading."""

    @property
    def name(self) -> str:
        """Its place in the page."""

    @property
    def title(self) -> str:
        """Its heading."""


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of a page with a heading: sentences, then parts."""

    kind: ClassVar[str] = "section"
    name: str
    title: str
    parts: Sequence[Part]
    lines: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class FirstScreen:
    """What was found: the head of a page and of its Markdown, the end of a terminal's text, an entry of its JSON.

    Attributes:
        about: What was measured, with what, how often.
        title: The finding.
        answers: Question of a reader -> answer. One without an answer is not shown.
    """

    about: str
    title: str
    answers: Mapping[str, str]

    @property
    def lines(self) -> list[tuple[str, str]]:
        """(Question, sentence) of the questions that have an answer."""
        return [(question, answer) for question, answer in self.answers.items() if answer]

    def terminal(self, without: Sequence[str] = ()) -> str:
        """Return plain text as wide as the terminal, without the answers to these questions."""
        lines = [wrap(f"{head}: {printable(answer)}", "  ") for head, answer in self.lines if head not in without]
        head = ["FINDINGS", wrap(printable(self.about)), "", wrap(printable(self.title))]
        return "\n".join([*head, "", *lines])

    def markdown(self) -> str:
        """Return the head of a report in Markdown."""
        lines = "\n".join(f"- **{question}:** {escape(answer)}" for question, answer in self.lines)
        return "\n\n".join(filter(None, [f"# {escape(self.title)}", escape(self.about), lines]))

    def record(self) -> JsonObject:
        """Return plain JSON types."""
        return {"about": self.about, "title": self.title, "answers": dict(self.lines)}


@dataclass(frozen=True, slots=True)
class Findings:
    """Content of a page.

    Attributes:
        screen: What was found.
        sections: In the order of a reader.
        method: Sentences about how it was measured.
        command: What repeats it; "" when nothing does.
        facts: What was recorded about it: (name, value).
        tables: Every one is a file and can be downloaded.
        first: Parts of the first screen, below the title.
        title: Of the window; "" = the finding.
    """

    screen: FirstScreen
    sections: Sequence[Section] = ()
    method: Sequence[str] = ()
    command: str = ""
    facts: Sequence[tuple[str, str]] = ()
    tables: Sequence[Table] = ()
    first: Sequence[Part] = ()
    title: str = ""


def findings_page(page: Findings) -> str:
    """Return self-contained HTML; the same findings give the same bytes."""
    there = {"method": page.method or page.command, "downloads": page.tables}
    last = [(name, title) for name, title in _LAST if there[name]]
    values = {
        "title": page.title or page.screen.title,
        "screen": page.screen,
        "first": page.first,
        "sections": page.sections,
        "contents": [*((section.name, section.title) for section in page.sections), *last],
        "method": page.method,
        "command": page.command,
        "facts": page.facts,
        "downloads": downloads(page.tables),
    }
    return render("findings.html", values)


def title_by(tables: Sequence[TitleRules[Facts]], facts: Facts) -> str:
    """Return the first sentence that holds of each table, in the order of the tables.

    Args:
        tables: Each answers one question; a sentence may be "".
        facts: What conditions are asked of and sentences are filled from.
    """
    sentences = (next((sentence.format(facts) for holds, sentence in rules if holds(facts)), "") for rules in tables)
    return " ".join(filter(None, map(str.strip, sentences)))
