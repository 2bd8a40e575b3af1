"""The report of long texts: one page and one Markdown file from a list of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from seesaw_cf.io.files import write_text
from seesaw_cf.page.findings import Findings, Folded, PageSection, conclusion, findings_page
from seesaw_cf.report.provenance import recorded
from seesaw_cf.report.rows import Manifest
from seesaw_cf.report.table import Table, write_tables
from seesaw_cf.report.text import escape


def findings_of(
    title: str,
    sentences: Sequence[str],
    parts: Sequence[PageSection | None],
    sections: Sequence[Table],
    method: Sequence[str],
    facts: Mapping[str, object],
    command: str = "",
) -> Findings:
    """Return a page: the parts that exist, then every table, folded and to download.

    Args:
        title: Heading of the page.
        sentences: One sentence for each of `seesaw_cf.page.findings.HEADS`.
        parts: What stands before the tables.
        sections: The tables.
        method: Sentences about how it was measured.
        facts: What was recorded.
        command: What repeats it.
    """
    about = "none is the unedited model; an empty interval has its reason beside it." if sections else (
        "There are no tables."
    )  # fmt: skip
    folded = [Folded(table.title, [replace(table, about=table.about.replace("`", ""))]) for table in sections]
    tables = PageSection("tables", "The papers' tables", folded, (about,))
    frames = {section.name: section.frame for section in sections}
    existing = [part for part in (*parts, tables) if part is not None]
    return Findings(title, sentences, existing, method, command, recorded(cast(Manifest, dict(facts))), frames)


def write_report(
    folder: Path,
    name: str,
    head: str,
    sections: Sequence[Table],
    page: Findings | None = None,
    pictures: Mapping[str, str] | None = None,
    tables: str = "",
) -> str:
    """Write `report.html`, `NAME.md`, `NAME.json` and one CSV per table.

    Args:
        folder: Where to; made when it is not there.
        name: Of the Markdown and JSON files.
        head: What the Markdown begins with; the conclusion of the page follows.
        sections: The tables.
        page: The page; without one there is no `report.html`.
        pictures: File -> what it shows; "" -> why there are none.
        tables: Folder of the CSV files and pictures, below `folder`.

    Returns:
        The Markdown up to the first table.

    Raises:
        StorageError: A file cannot be written.
    """
    if page is not None:
        write_text(folder / "report.html", findings_page(page))
        lines = [f"- **{question}:** {escape(sentence)}" for question, sentence in conclusion(page.said)]
        head = "\n\n".join([head, "\n".join(lines)])
    write_tables(folder, name, head, sections, pictures, tables)
    return head
