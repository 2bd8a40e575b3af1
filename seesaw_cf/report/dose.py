"""The report of a dose run: one table, one picture, the numbers as CSV."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from seesaw_cf.effects.dose import BAND, Curves, read_curves, summarise_curves
from seesaw_cf.errors import MissingExtraError, need
from seesaw_cf.io.files import write_text
from seesaw_cf.io.sheets import csv_text
from seesaw_cf.report import text
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.rows import DoseRow, number_of, records, with_limits

__all__ = ["dose_section", "write_dose_report"]

_SHOWN = ("S", "D", "perplexity", "entropy")
ABOUT = f"""Facts edited together, mean of repeated samples with {BAND:.0%} bands. *Score*: harmonic mean of the shares
of edits, paraphrases and neighbourhood prompts that come out as wanted (0 to 1, higher is better). *D_d*: change of
p(new) − p(true) after prompts about other people who hold the new target (0 is best). The collapse alarm is raised when
the perplexity of a fixed text doubles or the entropy of the answers to fixed questions halves: scores of a collapsed
model say nothing about bias."""


def dose_section(curves: Curves, pictures: Mapping[str, str] | None = None) -> str:
    """The Markdown section."""
    rows = [
        [
            text.escape(row["editor"]),
            f"*{text.escape(' + '.join(map(relation_name, row['mix'].split('+'))))}*{_kind(row)}",
            f"{row['dose']}",
            f"{row['edits']:.4g} / {row['repeats']}",
            *[_cell(row, name) for name in _SHOWN],
            text.escape(row["alarm"]) or "–",
        ]
        for row in records(summarise_curves(curves), DoseRow)
    ]
    heads = (
        *("Method", "Relations", "Dose", "Edits / samples", "Score", "D_d", "Perplexity", "Entropy"),
        "Collapse alarm",
    )
    parts = ["## Dose and response", ABOUT, text.markdown_table(heads, rows, left=2)]
    if pictures is None or "dose.png" in pictures:
        parts.append("![Score, D_d, perplexity and entropy by number of edits](dose.png)")
    return "\n\n".join(parts)


def _kind(row: DoseRow) -> str:
    return f"<br>{row['kind']}" if row["kind"] else ""


def _cell(row: DoseRow, name: str) -> str:
    value, low, high = with_limits(row, name)
    if value != value:
        return "–"
    band = f" [{low:.3g}, {high:.3g}]" if low == low else " (1 sample)"
    return text.minus(f"{value:.3g}{band}")


def write_dose_report(folder: str | os.PathLike[str]) -> str:
    """Writes `dose.csv`, `dose.md` and, with matplotlib, `dose.png` into the folder of a finished dose run.

    Returns:
        The table as plain text for a terminal.

    Raises:
        RunFolderError: Not a finished dose run.
        StorageError: A file could not be written.
    """
    curves = read_curves(folder)
    table = summarise_curves(curves)
    out = Path(folder)
    write_text(out / "dose.csv", csv_text(table))
    without, pictures = "", {"dose.png": ""}
    try:
        with need("matplotlib", extra="plots", what_for="pictures"):
            from seesaw_cf.report.canvas import picture_style, save_picture
            from seesaw_cf.report.more_plots import dose_figure
    except MissingExtraError as error:
        without, pictures = f"No picture: {error}", {}
    else:
        with picture_style():
            save_picture(dose_figure(curves), out / "dose.png")
    write_text(out / "dose.md", dose_section(curves, pictures).replace("## ", "# ", 1) + "\n")
    found = records(table, DoseRow)
    rows = [
        [
            *(row["editor"], "+".join(map(relation_name, row["mix"].split("+"))), row["dose"], row["repeats"]),
            *[f"{number_of(row, name):.3g}" for name in _SHOWN],
            "ALARM" if row["collapsed"] else "",
        ]
        for row in found
    ]
    heads = ("editor", "relations", "edits", "samples", "score", "D_d", "perplexity", "entropy", "collapse")
    alarms = [f"{row['editor']} {row['mix']} {row['dose']}: {row['alarm']}" for row in found if row["alarm"]]
    shown = "DOSE AND RESPONSE: mean of repeated samples; bands in dose.csv\n" + text.column_table(heads, rows, left=2)
    written = f"Written to {text.printable(out)}: dose.csv, dose.md" + (", dose.png" if pictures else "")
    return "\n".join(
        filter(None, [shown, *(text.wrap(text.printable(line), "  ") for line in alarms), written, without])
    )
