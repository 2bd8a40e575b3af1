"""Sections of a report: tables with a title, written as Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from seesaw_cf.io.files import write_text
from seesaw_cf.io.sheets import csv_text
from seesaw_cf.report.text import escape, interval, markdown_table
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


def write_sections(
    folder: Path, name: str, head: str, sections: Sequence[Section], pictures: Mapping[str, str] | None = None
) -> Path:
    """Writes `NAME.md`, `NAME.json` and one CSV per table.

    Args:
        folder: Where to; made when it is not there.
        name: Of the Markdown and JSON files.
        head: What the Markdown begins with.
        sections: The tables.
        pictures: File -> what it shows; "" -> why there are none.

    Returns:
        The Markdown file.

    Raises:
        StorageError: A file cannot be written.
    """
    for one in sections:
        write_text(folder / f"{one.name}.csv", csv_text(one.frame))
    numbers = {one.name: one.frame.astype(object).to_dict("records") for one in sections}
    write_text(folder / f"{name}.json", json_text(numbers))
    parts = [head]
    for one in sections:
        parts += ["", f"## {one.title}", "", one.about, "", _table(one)]
    for file, about in (pictures or {}).items():
        parts += ["", f"![{about}]({file})" if file else about]
    path = folder / f"{name}.md"
    write_text(path, "\n".join(parts) + "\n")
    return path


def _table(section: Section) -> str:
    heads, rows, left = cells_of(section, escape)
    return markdown_table(heads, rows, left)


def cells_of(section: Section, said: Callable[[object], str]) -> tuple[list[str], list[list[str]], int]:
    """A section as texts: heads, rows, and how many columns are words.

    Args:
        section: What is shown.
        said: Makes a text of a name or a word from data.
    """
    frame = section.frame
    if not section.across:
        shown = [[_cell(value, section.digits, said) for value in row] for row in frame.astype(object).to_numpy()]
        names = next((at for at, name in enumerate(frame) if pd.api.types.is_numeric_dtype(frame[name])), 1)
        return [said(name) for name in frame], shown, max(1, names)
    index = [name for name in frame if name not in _NUMBERS and name != section.across]
    columns = list(dict.fromkeys(frame[section.across]))
    star = said("*")
    lines = []
    for key, rows in frame.groupby(index, sort=False, observed=True, dropna=False):
        by_column = {row[section.across]: row for _, row in rows.iterrows()}
        cells = [_number(by_column[name], section, star) if name in by_column else "" for name in columns]
        lines.append([*map(said, key), *cells, "; ".join(sorted({said(x) for x in rows["note"] if x}))])
    return [*map(said, (*index, *columns)), "note"], lines, len(index)


def _number(row: pd.Series, section: Section, star: str) -> str:
    """A value with its spread, interval and counts, as one cell; a star where an adjusted p is below 0.05."""
    digits = section.digits
    star = star if row.get("p_adjusted", 1.0) < _LEVEL else ""
    spread = f" ± {row['sd']:.{digits}f}" if not pd.isna(row.get("sd")) else ""
    ends = f" {interval(row['low'], row['high'], spec=f'.{digits}f')}".removesuffix(" -")
    value = "-" if pd.isna(row["value"]) else f"{row['value']:.{digits}f}"
    missing = f", {row['n_missing']} missing" if row.get("n_missing") else ""
    return f"{value}{star}{spread}{ends} (n = {row['n']} of {row['n_cases']} {section.unit}{missing})"


def _cell(value: object, digits: int, said: Callable[[object], str]) -> str:
    if isinstance(value, float):
        return (
            ""
            if pd.isna(value)
            else f"{int(value)}"
            if value.is_integer() and abs(value) > 1
            else f"{value:.{digits}f}"
        )
    return "" if value is None else said(value)
