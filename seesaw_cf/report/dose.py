"""The report of a dose run: one table, its curves, the people at the largest dose."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from seesaw_cf.effects.dose import Curves, read_curves
from seesaw_cf.report.dose_page import dose_findings
from seesaw_cf.report.forms import findings_report

_PICTURES = {
    "dose.png": "Score, D_d, perplexity and entropy by number of edits",
    "dose_success.png": "Score, efficacy, generalisation and specificity by number of edits",
}


def write_dose_report(folder: str | os.PathLike[str], *, pictures: bool = False, full: bool = False) -> str:
    """Write the report of a finished dose run into its folder `report`.

    Args:
        folder: The run.
        pictures: Draw pictures too; needs matplotlib.
        full: Return every table; else one screen.

    Returns:
        Plain text for a terminal.

    Raises:
        RunFolderError: Not a finished dose run.
        MissingExtraError: Pictures without matplotlib.
        StorageError: A file could not be written.
    """
    curves = read_curves(folder)
    report = findings_report(dose_findings(curves), draw=partial(_draw, curves))
    return report.write(Path(folder) / "report", pictures=pictures, full=full)


def _draw(curves: Curves, folder: Path) -> Mapping[str, str]:
    from seesaw_cf.report.canvas import picture_style, save_picture
    from seesaw_cf.report.more_plots import dose_figure

    with picture_style():
        for name in _PICTURES:
            save_picture(dose_figure(curves, success="success" in name), folder / name)
    return _PICTURES
