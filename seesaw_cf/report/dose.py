"""The report of a dose run: what happened as more and more facts were edited together."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

import numpy as np
import pandas as pd

from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.dose import BAND, MOST_SHARED, Curves, group_doses, no_band, read_curves, summarise_curves
from seesaw_cf.report import text
from seesaw_cf.report.dose_title import MEASURES, banded, dose_lines, dose_screen, dose_value, mix_name
from seesaw_cf.report.forms import findings_report
from seesaw_cf.report.html.findings import Findings, Legend, PageSection, Panels, Part
from seesaw_cf.report.html.forest import (
    Axis,
    Charts,
    Curve,
    ForestColumn,
    ForestRow,
    Mark,
    Panel,
    Point,
    draw_chart,
    key_colours,
)
from seesaw_cf.report.provenance import model_name, recorded, repeat_command
from seesaw_cf.report.results import sort_groups
from seesaw_cf.report.rows import DoseRow, Manifest, number_of, records, rows_of
from seesaw_cf.report.table import Column, Table, word_column

_METHOD = (
    f"Facts are edited together, on samples that are drawn again for every repeat; a number is the mean over samples "
    f"with a {BAND:.0%} band for facts like these (t over samples, widened by what they share). There is none for one "
    f"sample, nor where two samples have more than {MOST_SHARED:.0%} of their facts in common. Shown bands end where "
    "values do, those of tables/dose.csv do not.",
    "Score: harmonic mean of the shares of edits, paraphrases and neighbourhood prompts that come out as wanted.",
    "D_d is the change of p(new) − p(true) after prompts about other people who hold the new target.",
    "The collapse alarm is raised when the perplexity of fixed texts doubles or the entropy of the answers to fixed "
    "questions halves: scores of a collapsed model say nothing about bias.",
    "“Average of” two relations is both edited apart, as many facts of each as of both in the mix.",
)


def dose_findings(curves: Curves) -> Findings:
    """Return what the page shows."""
    table = summarise_curves(curves)
    groups = group_doses(curves)
    rows = records(table, DoseRow) if len(table) else []
    manifest = cast(Manifest, curves.manifest)
    groups_table = Table("dose_groups", "Groups at the largest dose", "", (), groups, brief=False)
    numbers = PageSection("numbers", "The numbers", [dose_table(table)]) if rows else None
    settings = cast(DoseSettings, curves.manifest.get("settings") or {})
    return Findings(
        screen=dose_screen(rows, groups, model_name(manifest)),
        sections=[section for section in (numbers, _groups(groups)) if section],
        method=_METHOD,
        command=repeat_command(manifest, "dose", _options(settings)),
        facts=recorded(manifest),
        tables=[one for one in (dose_table(table), groups_table) if len(one.frame)],
        first=_charts(rows, curves),
    )


class DoseSettings(TypedDict, total=False):
    """What a dose run was asked for."""

    doses: Sequence[int]
    pairs: Sequence[Sequence[str]]
    repeats: int
    people: int


_COUNTS: Sequence[Literal["repeats", "people"]] = ("repeats", "people")


def _options(settings: DoseSettings) -> JsonObject:
    pairs = [",".join(map(str, pair)) for pair in settings.get("pairs", ())]
    options: JsonObject = {"dose": list(settings.get("doses", ())), "pair": pairs}
    return options | {name: settings[name] for name in _COUNTS if name in settings}


def _charts(rows: Sequence[DoseRow], curves: Curves) -> list[Part]:
    """Draw a chart of each measure; colours mark properties, dashes mark editors."""
    doses = sorted({row["dose"] for row in rows})
    colours = key_colours(row["mix"] for row in rows)
    dashes = {name: number % 4 for number, name in enumerate(dict.fromkeys(row["editor"] for row in rows))}
    groups = list(dose_lines(rows))

    def curve(lines: Sequence[DoseRow], name: str, who: str) -> Curve:
        points = [
            Point(
                doses.index(row["dose"]), *banded(row, name), f"{who}, {row['dose']:,} facts: {dose_value(row, name)}",
                row["collapsed"],
            )
            for row in lines
        ]  # fmt: skip
        return Curve(colours[lines[0]["mix"]], dashes[lines[0]["editor"]], points)

    def levels(name: str) -> list[float]:
        before = {baseline.get(name) for baseline in curves.baseline.values() if isinstance(baseline, dict)}
        return sorted(value for value in before if value is not None)[:3]

    measures = [name for name in MEASURES if any(math.isfinite(number_of(row, name)) for row in rows)]
    charts = [
        draw_chart(
            *MEASURES[name], [f"{dose:,}" for dose in doses], [curve(own, name, who) for who, own in groups],
            levels(name) if name in ("perplexity", "entropy") else (),
        )
        for name in measures
    ]  # fmt: skip
    names = [(colours[own[0]["mix"]], dashes[own[0]["editor"]], who) for who, own in groups]
    note = f"Dot and upright line: mean and {BAND:.0%} band over samples (open: no band). ✕: collapse alarm."
    return [Legend(names, note), Charts("facts edited together", charts)] if charts else []


def dose_table(frame: pd.DataFrame) -> Table:
    """Return every measure of each editor, mix and dose; `frame` is that of `summarise_curves`."""
    columns = [
        word_column("editor"),
        word_column("properties", lambda row: ": ".join(filter(None, (mix_name(row["mix"]), row["kind"])))),
        Column("facts", lambda row: f"{row['dose']:,}"),
        Column("edits / samples", lambda row: f"{row['edits']:.4g} / {row['repeats']}"),
        *(Column(head, partial(dose_value, name=name)) for name, (head, _) in MEASURES.items()),
        Column("alarm", lambda row: row["alarm"] or None),
    ]
    about = f"Mean of samples with {BAND:.0%} bands"
    return Table("dose", "Dose and response", about, columns, frame, lines=_METHOD)


def _groups(groups: pd.DataFrame) -> PageSection | None:
    """Return the section on who was affected at the largest dose of every mix; None without groups."""
    if groups.empty:
        return None
    colours = key_colours(groups["editor"])
    axis = Axis.around(groups["D"], [*groups["D_low"], *groups["D_high"]])

    def row(group_row: Mapping[Any, Any], several: bool) -> ForestRow:
        limits = (float(group_row["D_low"]), float(group_row["D_high"]))
        effect = text.estimate(group_row["D"], *limits, ".3g", missing=f"({no_band(group_row['repeats'])})")
        label = f"{group_row['editor']}, {group_row['group']}: {effect}; {group_row['n']} prompts"
        mark = Mark(axis.at(group_row["D"]), axis.span(*limits), colours[group_row["editor"]], text.minus(label))
        name = f"{group_row['group']} · {group_row['editor']}" if several else str(group_row["group"])
        return ForestRow(name, f"{group_row['repeats']}, {group_row['n']:,}", [mark])

    panels: list[Panel] = []
    for (mix, by), own in groups.groupby(["mix", "axis"], sort=False):
        largest = own[own["dose"] == own["dose"].max()]
        places = largest["group"].map(sort_groups(str(by), largest["group"]).index)
        largest = largest.assign(order=places).sort_values(["order", "editor"], kind="stable")
        lines = [row(record, len(colours) > 1) for record in rows_of(largest) if np.isfinite(record["D"])]
        title = f"{mix_name(str(mix))}, {int(largest['dose'].iloc[0]):,} facts together, by {by}"
        about = f"D_d, probability, mean of samples with {BAND:.0%} bands"
        unit = "D, probability"
        heads = ("group", "samples, prompts")
        panels.append(
            Panel(title, about, heads, [ForestColumn("hold the new target", axis)], unit, lines, opened=not panels)
        )
    names = [(colour, 0, name) for name, colour in colours.items()]
    note = (
        "Each line is a group of people who were not edited; 0 means that the edits left the answers about them alone."
    )
    return PageSection("groups", "Who was affected", [Legend(names, note), Panels(panels)])


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
