"""Sections of a report: tables with a title, written as page, Markdown, CSV and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pandas as pd

from seesaw_cf.io.files import write_text
from seesaw_cf.io.sheets import csv_text
from seesaw_cf.io.terminal import printable
from seesaw_cf.page.findings import Findings, Folded, PageSection, conclusion, findings_page
from seesaw_cf.page.table import Table, TableRow
from seesaw_cf.report import text
from seesaw_cf.report.provenance import recorded
from seesaw_cf.report.rows import Manifest
from seesaw_cf.stats.plain import json_text

# Columns of a frame that make up one cell, when another column is spread over the table's columns.
_NUMBERS = ("value", "low", "high", "sd", "n", "n_cases", "n_missing", "note", "p", "p_adjusted", "p_paper")
_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the report.

    Attributes:
        name: Of its CSV file and its key in the JSON file.
        title: Headline, with the paper's number.
        about: What the numbers are.
        frame: One row per number.
        across: Column of the frame whose values become columns of the Markdown table; "" = the frame as it is.
        digits: Decimals shown.
        unit: What `n_cases` counts.
    """

    name: str
    title: str
    about: str
    frame: pd.DataFrame
    across: str = ""
    digits: int = 2
    unit: str = "edits"


def findings_of(
    title: str,
    said: Sequence[str],
    parts: Sequence[PageSection | None],
    sections: Sequence[Section],
    method: Sequence[str],
    facts: Mapping[str, object],
    command: str = "",
) -> Findings:
    """Return a page: the parts that exist, then every table, folded and to download.

    Args:
        title: Heading of the page.
        said: One sentence for each of `seesaw_cf.page.findings.HEADS`.
        parts: What stands before the tables.
        sections: The tables.
        method: Sentences about how it was measured.
        facts: What was recorded.
        command: What repeats it.
    """
    about = "none is the unedited model; an empty interval has its reason beside it." if sections else (
        "There are no tables."
    )  # fmt: skip
    tables = PageSection("tables", "The papers' tables", [_folded(section) for section in sections], (about,))
    frames = {section.name: section.frame for section in sections}
    shown = [part for part in (*parts, tables) if part is not None]
    return Findings(title, said, shown, method, command, recorded(cast(Manifest, dict(facts))), frames)


def _folded(section: Section) -> Folded:
    heads, rows, left = cells_of(section, printable)
    lines = [TableRow([*row[:left], *map(text.minus, row[left:])]) for row in rows]
    heads = [head.replace("_", " ") for head in heads]
    table = Table(section.name, section.title, section.about.replace("`", ""), heads, left, lines)
    return Folded(section.title, [table])


def write_report(
    folder: Path,
    name: str,
    head: str,
    sections: Sequence[Section],
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
        lines = [f"- **{name}:** {text.escape(sentence)}" for name, sentence in conclusion(page.said)]
        head = "\n\n".join([head, "\n".join(lines)])
    for section in sections:
        write_text(folder / tables / f"{section.name}.csv", csv_text(section.frame))
    numbers = {section.name: section.frame.astype(object).to_dict("records") for section in sections}
    write_text(folder / f"{name}.json", json_text(numbers))
    parts = [head]
    for section in sections:
        table = text.markdown_table(*cells_of(section, text.escape))
        parts.append(f"## {section.title}\n\n{section.about}\n\n{table}")
    below = f"{tables}/" if tables else ""
    parts += [f"![{about}]({below}{file})" if file else about for file, about in (pictures or {}).items()]
    write_text(folder / f"{name}.md", "\n\n".join(parts) + "\n")
    return head


def cells_of(section: Section, show: Callable[[object], str]) -> tuple[list[str], list[list[str]], int]:
    """Return a section as texts: heads, rows, and how many columns are words.

    Args:
        section: The table.
        show: Makes a text of a name or a word from data.
    """
    frame = section.frame
    if not section.across:
        rows = [[_cell(value, section.digits, show) for value in row] for row in frame.astype(object).to_numpy()]
        names = next((at for at, name in enumerate(frame) if pd.api.types.is_numeric_dtype(frame[name])), 1)
        return [show(name) for name in frame], rows, max(1, names)
    index = [name for name in frame if name not in _NUMBERS and name != section.across]
    columns = list(dict.fromkeys(frame[section.across]))
    star = show("*")
    rows = []
    for key, part in frame.groupby(index, sort=False, observed=True, dropna=False):
        cells = {row[section.across]: _number(row, section, star) for _, row in part.iterrows()}
        notes = "; ".join(sorted({show(note) for note in part["note"] if note}))
        rows.append([*map(show, key), *(cells.get(name, "") for name in columns), notes])
    return [*map(show, (*index, *columns)), "note"], rows, len(index)


def _number(row: pd.Series, section: Section, star: str) -> str:
    """Return a value with its spread, interval and counts; a star marks an adjusted p below 0.05."""
    spec = f".{section.digits}f"
    star = star if row.get("p_adjusted", 1.0) < _LEVEL else ""
    spread = "" if pd.isna(row.get("sd")) else f" ± {row['sd']:{spec}}"
    missing = f", {row['n_missing']} missing" if row.get("n_missing") else ""
    number = text.estimate(row["value"], row["low"], row["high"], spec, star + spread)
    return f"{number} (n = {row['n']} of {row['n_cases']} {section.unit}{missing})"


def _cell(value: object, digits: int, shown: Callable[[object], str]) -> str:
    if not isinstance(value, float):
        return "" if value is None else shown(value)
    whole = value.is_integer() and abs(value) > 1
    return "" if math.isnan(value) else f"{value:.{0 if whole else digits}f}"
