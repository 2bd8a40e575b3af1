"""Tables of a long-form report on a page, each folded."""

from __future__ import annotations

from collections.abc import Sequence

from seesaw_cf.io.terminal import printable
from seesaw_cf.longform.report.sections import Section, cells_of
from seesaw_cf.page import findings
from seesaw_cf.page.table import Table, TableRow
from seesaw_cf.report import text


def folded_tables(sections: Sequence[Section]) -> findings.PageSection:
    """The section of a page with every table; without any it says so."""
    parts = []
    for one in sections:
        heads, rows, left = cells_of(one, printable)
        lines = [
            TableRow([text.minus(cell) if place >= left else cell for place, cell in enumerate(row)]) for row in rows
        ]
        about = one.about.replace("`", "")
        table = Table(one.name, one.title, about, [head.replace("_", " ") for head in heads], left, lines)
        parts.append(findings.Folded(one.title, [table]))
    said = (
        "none is the unedited model; an empty interval has its reason beside it." if parts else "There are no tables."
    )
    return findings.PageSection("tables", "The papers' tables", parts, (said,))


def conclusion_markdown(page: findings.Findings) -> str:
    """The page's first lines, for a report in Markdown."""
    return "\n".join(f"- **{head}:** {text.escape(said)}" for head, said in findings.conclusion(page.said))
