"""The report of a dose run: one table, one picture, the numbers as CSV."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from seesaw_cf.base.errors import MissingExtraError, need
from seesaw_cf.base.files import csv_text, write_text
from seesaw_cf.base.terminal import column_table, printable, wrap
from seesaw_cf.effects.dose import BAND, MOST_SHARED, Curves, no_band, read_curves, summarise_curves
from seesaw_cf.report import text
from seesaw_cf.report.dose_page import dose_findings, mix_name
from seesaw_cf.report.html.findings import findings_page, first_lines
from seesaw_cf.report.rows import DoseRow, number_of, records, with_limits

_SHOWN = ("S", "D", "perplexity", "entropy")
_PICTURES = {
    "dose.png": "Score, D_d, perplexity and entropy by number of edits",
    "dose_success.png": "Score, efficacy, generalisation and specificity by number of edits",
}
ABOUT = f"""Facts edited together, mean of repeated samples with {BAND:.0%} bands for facts like these (none where
two samples have more than {MOST_SHARED:.0%} of their facts in common). *Score*: harmonic mean of the shares of edits,
paraphrases and neighbourhood prompts that come out as wanted (0 to 1, higher is better; the three are in `dose.csv`).
*average of*: the two relations edited apart, as many facts of each as of both in the mix. *D_d*: change of p(new) −
p(true) after prompts about other people who hold the new target (0 is best). The collapse alarm is raised when the
perplexity of a fixed text doubles or the entropy of the answers to fixed questions halves: scores of a collapsed
model say nothing about bias."""


def dose_section(curves: Curves, pictures: Mapping[str, str] | None = None) -> str:
    """The Markdown section."""
    rows = [
        [
            text.escape(row["editor"]),
            f"*{text.escape(mix_name(row['mix']))}*{_kind(row)}",
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
    files = _PICTURES if pictures is None else {name: about for name, about in _PICTURES.items() if name in pictures}
    parts += [f"![{about}]({name})" for name, about in files.items()]
    return "\n\n".join(parts)


def _kind(row: DoseRow) -> str:
    return f"<br>{row['kind']}" if row["kind"] else ""


def _cell(row: DoseRow, name: str) -> str:
    return text.minus(text.estimate(*with_limits(row, name), ".3g", missing=f"({no_band(row['repeats'])})"))


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
    table = summarise_curves(curves)
    out = Path(folder)
    write_text(out / "dose.csv", csv_text(table))
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
    write_text(out / "dose.md", dose_section(curves, pictures).replace("## ", "# ", 1) + "\n")
    doses = records(table, DoseRow)
    rows = [
        [
            *(row["editor"], mix_name(row["mix"]).replace(" + ", "+"), row["dose"], row["repeats"]),
            *[f"{number_of(row, name):.3g}" for name in _SHOWN],
            "ALARM" if row["collapsed"] else "",
        ]
        for row in doses
    ]
    heads = ("editor", "relations", "edits", "samples", "score", "D_d", "perplexity", "entropy", "collapse")
    alarms = [f"{row['editor']} {row['mix']} {row['dose']}: {row['alarm']}" for row in doses if row["alarm"]]
    screen = "DOSE AND RESPONSE: mean of repeated samples; bands in dose.csv\n" + column_table(heads, rows, left=2)
    written = f"Written to {printable(out)}: report.html, dose.csv, dose.md" + "".join(f", {name}" for name in pictures)
    return "\n".join(
        filter(
            None,
            [screen, *(wrap(printable(line), "  ") for line in alarms), written, without, first_lines(page)],
        )
    )
