"""One page for every kind of report: a first screen, parts with pictures and tables, files, and how it was made."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from jinja2 import Environment, Template
from markupsafe import Markup

from seesaw_cf.report.screen import Screen

READING = (
    "Numbers in brackets hold the true value in 95 % of such studies. Counts stand first; points are points of "
    "probability, and harm is always above 0 and to the right."
)
LABELS = (
    "Race, region and gender are what public records say about people; nothing is inferred from a name. A person may "
    "have several labels and counts in each of those groups; people without one count as unknown. That no difference "
    "was measured is no evidence of fairness, least of all in groups with few people."
)


@dataclass(frozen=True)
class PageRow:
    """A row of a table on a page; a marked one turned from right to wrong."""

    cells: Sequence[str]
    marked: bool = False


@dataclass(frozen=True)
class PageTable:
    """A table that can be sorted and filtered.

    Attributes:
        heads: Of its columns.
        numeric: Which of them are numbers.
        rows: Its rows.
    """

    heads: Sequence[str]
    numeric: Sequence[bool]
    rows: Sequence[PageRow]


@dataclass(frozen=True)
class Part:
    """A part of a page.

    Attributes:
        title: Its heading.
        texts: Sentences below it.
        pictures: Name ("" without one) -> captions and SVG.
        table: A table.
    """

    title: str
    texts: Sequence[str] = ()
    pictures: Mapping[str, Sequence[tuple[str, Markup]]] = field(default_factory=dict)
    table: PageTable | None = None


def render_page(
    screen: Screen,
    parts: Sequence[Part] = (),
    *,
    checks: Sequence[tuple[bool, str]] = (),
    tables: Mapping[str, str] = {},
    foot: Sequence[str] = (LABELS,),
    command: str = "",
    reading: str = READING,
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
    """
    words = {"screen": screen, "parts": parts, "checks": checks, "tables": tables, "foot": foot, "command": command}
    return _template().render(**words, reading=reading)


@cache
def _template() -> Template:
    source = (files("seesaw_cf.report") / "page.html").read_text(encoding="utf-8")
    script = source.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    source = source.replace("SCRIPT-HASH", f"sha256-{digest}")
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)
