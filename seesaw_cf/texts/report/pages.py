"""Reports about texts and graphs as files: a page, JSON and CSV tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from seesaw_cf.base.files import csv_text, sweep, write_text
from seesaw_cf.base.terminal import printable
from seesaw_cf.report.screen import PageRow, PageTable, Part, Screen, render_page
from seesaw_cf.stats.plain import plain


def write_report(
    out: Path,
    screen: Screen,
    parts: Sequence[Part],
    tables: Mapping[str, pd.DataFrame],
    record: Mapping[str, object],
    *,
    about: Mapping[str, str],
    foot: Sequence[str],
    command: str = "",
) -> str:
    """Write page, JSON and tables; return the screen as text.

    Args:
        out: The folder.
        screen: What comes first.
        parts: What follows on the page.
        tables: Name -> rows of a CSV file.
        record: What the JSON has beside the screen.
        about: Name -> what a table holds; the file of one that is not there now is removed.
        foot: How it was made.
        command: What repeats it.
    """
    listed = {name: words for name, words in about.items() if name in tables}
    page = render_page(screen, parts, tables=listed, foot=foot, command=command)
    sweep(out)
    write_text(out / "report.html", page)
    write_text(
        out / "report.json",
        json.dumps(plain({"screen": screen.record(), **record}), ensure_ascii=False, indent=1) + "\n",
    )
    for name in about:
        file = out / "tables" / f"{name}.csv"
        if name in tables:
            write_text(file, csv_text(tables[name]))
        else:
            file.unlink(missing_ok=True)
    return screen.terminal(f"See {out / 'report.html'}")


def page_table(rows: pd.DataFrame) -> PageTable:
    """Return rows as a table of a page."""
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in rows.dtypes]
    values = rows.astype(object).where(rows.notna(), "").to_numpy().tolist()
    cells = [[f"{cell:.3g}" if isinstance(cell, float) else printable(cell) for cell in row] for row in values]
    return PageTable([str(head) for head in rows], numeric, [PageRow(row) for row in cells])
