"""The report of a dose run: one table, one picture, the numbers as CSV."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from seesaw_cf.base.errors import MissingExtraError, need
from seesaw_cf.base.files import csv_text, write_text
from seesaw_cf.base.terminal import printable
from seesaw_cf.effects.dose import Curves, read_curves, summarise_curves
from seesaw_cf.report.dose_page import dose_findings, dose_table
from seesaw_cf.report.html.findings import findings_page
from seesaw_cf.report.table import rows_of

_PICTURES = {
    "dose.png": "Score, D_d, perplexity and entropy by number of edits",
    "dose_success.png": "Score, efficacy, generalisation and specificity by number of edits",
}


def dose_section(curves: Curves, pictures: Collection[str] = _PICTURES, level: int = 2) -> str:
    """Return the Markdown section, with those of its pictures that there are."""
    files = [f"![{about}]({name})" for name, about in _PICTURES.items() if name in pictures]
    return "\n\n".join([dose_table(summarise_curves(curves)).markdown(level), *files])


def write_dose_report(folder: str | os.PathLike[str]) -> str:
    """Write `report.html`, `dose.csv`, `dose.md` and, with matplotlib, `dose.png` and `dose_success.png` into a
    finished dose run's folder.

    Returns:
        The table as plain text for a terminal.

    Raises:
        RunFolderError: Not a finished dose run.
        StorageError: A file could not be written.
    """
    curves = read_curves(folder)
    frame = summarise_curves(curves)
    out = Path(folder)
    write_text(out / "dose.csv", csv_text(frame))
    without, pictures = "", _PICTURES
    try:
        with need("matplotlib", extra="plots", what_for="pictures"):
            from seesaw_cf.report.canvas import picture_style, save_picture
            from seesaw_cf.report.more_plots import dose_figure
    except MissingExtraError as error:
        without, pictures = f"No picture: {error}", {}
    else:
        with picture_style():
            save_picture(dose_figure(curves), out / "dose.png")
            save_picture(dose_figure(curves, success=True), out / "dose_success.png")
    page = dose_findings(curves)
    write_text(out / "report.html", findings_page(page))
    write_text(out / "dose.md", f"{page.screen.markdown()}\n\n{dose_section(curves, pictures)}\n")
    table = dose_table(frame)
    alarms = [f"{row['editor']} {row['mix']} {row['dose']}: {row['alarm']}" for row in rows_of(frame) if row["alarm"]]
    screen = replace(table, columns=table.columns[:-1], lines=alarms).terminal()
    written = f"Written to {printable(out)}: report.html, dose.csv, dose.md" + "".join(f", {name}" for name in pictures)
    return "\n".join(filter(None, [screen, written, without, page.screen.terminal()]))
