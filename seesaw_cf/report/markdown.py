"""The report as Markdown: findings, tables, pictures, notes and provenance."""

from __future__ import annotations

from collections.abc import Mapping

from seesaw_cf.effects.dose import Curves
from seesaw_cf.report import notes, text
from seesaw_cf.report.dose import dose_section
from seesaw_cf.report.findings import RunFindings, find
from seesaw_cf.report.provenance import recorded, repeat_command
from seesaw_cf.report.results import Results
from seesaw_cf.report.run_tables import run_tables

# Table -> the beginning of the names of its pictures.
_PICTURES = {
    "levels": ("levels",),
    "effects_by_group": ("forest_", "heatmap_"),
    "verdicts": ("verdicts_",),
    "accuracy": ("accuracy",),
}


def markdown_report(
    results: Results,
    pictures: Mapping[str, str],
    without_pictures: str = "",
    curves: Curves | None = None,
    findings: RunFindings | None = None,
) -> str:
    """Return the whole report.

    Args:
        results: The numbers of a run.
        pictures: File name -> description, for the pictures in the report's folder.
        without_pictures: Why they are missing.
        curves: A dose run to show as well.
        findings: What the numbers say; computed when None.
    """
    parts = [(findings or find(results)).markdown(), notes.READING]
    for table in run_tables(results):
        images = [text.pictures(pictures, start) for start in _PICTURES.get(table.name, ())]
        parts += [table.markdown(), *(line for lines in images for line in lines)]
    parts += [
        dose_section(curves, pictures) if curves is not None else "",
        f"> {text.escape(without_pictures)}" if without_pictures else "",
        notes.ABOUT_LABELS,
        notes.COUNTERFACTUALS,
        _provenance(results),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _provenance(results: Results) -> str:
    rows = [[text.escape(name), text.escape(value)] for name, value in recorded(results.manifest)]
    steps = f"{repeat_command(results.manifest)}\nseesaw-cf report RUN"
    return (
        f"## Provenance\n\n{notes.PROVENANCE}\n\n{text.fence(steps)}\n\n"
        f"{text.markdown_table(('What', 'Value'), rows, left=2)}"
    )
