"""The pictures of a report, by matplotlib: levels beside their controls, and a forest of the groups of each axis.

One drawing serves the page (SVG, in the page's own ink) and papers (PNG, SVG, PDF), and is as wide as a phone. Harm is
always to the right of 0.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from seesaw_cf.base.files import atomic_path
from seesaw_cf.base.terminal import cut
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.means import ALL, AXES, UNKNOWN
from seesaw_cf.records import groups
from seesaw_cf.report.frame import HARM
from seesaw_cf.report.levels import LEVELS
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.rows import rows_of
from seesaw_cf.report.words import in_order, unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 4.2
"""Inches of a picture that is legible without scrolling on a phone."""
INK = "#1c1917"
COLOURS = ("#c2410c", "#1d4ed8", "#0f766e", "#7e22ce", "#a16207", "#be185d")
CONTROL_COLOUR = "#78716c"
_STYLE: Mapping[str, object] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # names of models and groups are text
    "svg.hashsalt": "seesaw_cf",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.titlesize": "medium",
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "xaxis.labellocation": "right",
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "axes.spines.left"), False),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    "savefig.transparent": True,
}
_ROW = 0.24  # inches a line takes
_LABEL, _TITLE = 30, 26  # letters of a name, of a line of a title
_LEAST_PIXELS = 11  # of a letter on a page
_Mark = tuple[float, float, float, float, str]


@dataclass(frozen=True)
class Panel:
    """Intervals below each other on one axis.

    Attributes:
        title: Above it.
        labels: Names of the lines, from above.
        marks: (line, value, low, high, colour) of each interval; low and high NaN: none.
        margin: What is too small to matter, on either side of 0; drawn as a band.
        label: Of the axis.
    """

    title: str
    labels: Sequence[str]
    marks: Sequence[_Mark]
    margin: float
    label: str = ""


def style() -> AbstractContextManager[None]:
    """Return the context in which pictures are made and written."""
    import matplotlib as mpl

    return mpl.rc_context(dict(_STYLE))  # type: ignore[arg-type]


def colours(run: RunResult) -> dict[str, str]:
    """Return the colour of every editor; controls are grey."""
    names = [name for name in run.editors if not is_control(name)]
    own = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    return {name: own.get(name, CONTROL_COLOUR) for name in run.editors}


def draw_panels(panels: Sequence[Panel]) -> Figure:
    """Return panels one below another, on one axis where they have one unit."""
    from matplotlib.figure import Figure

    rows, one_axis = [max(1, len(panel.labels)) for panel in panels], len({panel.label for panel in panels}) == 1
    more = sum(len(wrap(panel.title, _TITLE)[1:]) for panel in panels)
    height = (sum(rows) + 0.75 * more) * _ROW + (0.45 if one_axis else 0.85) * len(panels) + 0.35
    with style():
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=rows, sharex=one_axis)[:, 0]
        for ax, panel in zip(axes, panels, strict=True):
            _draw(ax, panel)
            if panel is panels[-1] or not one_axis:
                ax.set_xlabel(panel.label)
    return figure


def _draw(ax: Axes, panel: Panel) -> None:
    for y, value, low, high, colour in panel.marks:
        known = bool(np.isfinite(low))
        if known:
            ax.plot([low, high], [y, y], color=colour, linewidth=1.8, solid_capstyle="butt")
        ax.plot([value], [y], marker="o", markersize=4.5, color=colour, markerfacecolor=colour if known else "none")
    ax.axvspan(-panel.margin, panel.margin, color=INK, alpha=0.08, linewidth=0)
    ax.axvline(0, color=INK, linewidth=0.7)
    ax.set_yticks(range(len(panel.labels)), [cut(label, _LABEL) for label in panel.labels])
    ax.set_ylim(len(panel.labels) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.set_title("\n".join(wrap(panel.title, _TITLE)))


def level_figures(frame: pd.DataFrame, run: RunResult) -> Iterator[tuple[str, str, str, Figure]]:
    """Yield name, editor ("" = all), caption and picture of what happened to everybody: a panel a level, each editor
    above its control."""
    pairs = [(editor, *(control for of, control in run.controls if of == editor)) for editor in run.audited]
    order = list(dict.fromkeys(name for pair in pairs for name in pair))
    panels = []
    for (about, answer), (_, measure) in LEVELS.items():
        own = _changes(frame, about, answer, run.audited, order)
        if len(own := own[own["axis"] == ALL]):
            title = f"{answer} answer true: {measure}".capitalize() if answer else "Other facts: right answers lost"
            panels.append(_panel(own, title, "editor", [name for name in order if name in set(own["editor"])], run))
    if panels:
        yield "levels", "", "What happened to everybody, with likely ranges", draw_panels(panels)


def group_figures(
    frame: pd.DataFrame, run: RunResult, most: int | None = None
) -> Iterator[tuple[str, str, str, Figure]]:
    """Yield name, editor, caption and picture of every group's mean change with its people, beside its control's.

    Args:
        frame: Numbers.
        run: The run.
        most: Of each axis this many groups, those with most people; None = all.
    """
    for editor, answer in product(run.audited, ("old", "new")):
        own = _changes(frame, "other_people", answer, [editor], [editor, run.control_of(editor)])
        panels = []
        for axis in (ALL, *AXES):
            if len(rows := own[(own["axis"] == axis) & (own["group"] != UNKNOWN)]):
                largest = rows.sort_values("n_people", ascending=False)["group"].unique()[:most]
                names = in_order(largest, (ALL, *groups.AXES.get(axis, ())))
                rows = rows[rows["group"].isin(names)]
                panels.append(_panel(rows, "" if axis == ALL else axis, "group", names, run))
        if panels:
            caption = f"People for whom the {answer} answer is true"
            yield f"forest_{editor}_{answer}", editor, caption, draw_panels(panels)


def _changes(
    frame: pd.DataFrame, about: str, answer: str, editors: Sequence[str], order: Sequence[str]
) -> pd.DataFrame:
    """Return changes over all relations on the scale that decides about everybody, of the first of these editors."""
    own = frame[(frame["relation"] == ALL) & (frame["what"] == "change") & (frame["about"] == about)]
    own = own[(own["true_answer"] == answer) & own["editor"].isin(order) & np.isfinite(own["value"].astype(float))]
    decided = own[own["decides"].astype(bool) & (own["axis"] == ALL) & own["editor"].isin(editors)]
    return own[own["scale"] == "".join(decided["scale"].head(1))]


def _panel(rows: pd.DataFrame, title: str, line: str, names: Sequence[str], run: RunResult) -> Panel:
    """Return changes by editor, or by group, each above what the control did to it; harm is to the right."""
    factor, unit = unit_of(rows["scale"].iloc[0])
    sign, marks = HARM[rows["about"].iloc[0], rows["true_answer"].iloc[0]], list[_Mark]()
    for row in rows_of(rows):
        below = line == "group" and rows["editor"].nunique() > 1 and is_control(row["editor"])
        value, low, high = (sign * factor * float(row[key]) for key in ("value", "low", "high"))
        y = names.index(row[line]) + (0.16 if below else -0.16 if line == "group" else 0.0)
        marks.append((y, value, low, high, colours(run)[row["editor"]]))
    people, known = rows.groupby(line)["n_people"].max(), set(rows.loc[np.isfinite(rows["low"]), line])
    counted = [f"{'everybody' if name == ALL else name} ({people[name]:,})" for name in names]
    few = ["" if name in known else ": too few" for name in names]
    labels = list(map("".join, zip(counted, few))) if line == "group" else names
    return Panel(title, labels, marks, factor * float(rows["margin"].iloc[0]), f"worse, {unit} \u2192")


def svg(figure: Figure, about: str) -> Markup:
    """Return a picture as SVG for a page: text stays text, takes the ink of the page, and stays legible on a phone.

    Args:
        figure: The picture.
        about: What it shows, for those who do not see it.
    """
    with style():
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # Ids of clips and markers depend on the last digits of the layout.
    names = dict.fromkeys(re.findall(r'id="([mp][0-9a-f]{10})"', text))
    first = sha256(about.encode()).hexdigest()[:6]
    for number, name in enumerate(names):
        text = text.replace(name, f"{first}-{number}")
    letters = [float(size) for size in re.findall(r"([\d.]+)px", text)]
    width = 72 * float(figure.get_figwidth())  # in the units of the picture, points
    least = width * _LEAST_PIXELS / min(letters, default=_LEAST_PIXELS)
    fit = f"width: 100%; max-width: {1.4 * width:.0f}px; min-width: {least + 1:.0f}px; height: auto"
    return Markup(text.replace("<svg ", f'<svg role="img" aria-label="{escape(about)}" style="{fit}" ', 1))


def save_figure(figure: Figure, folder: Path, name: str, forms: Sequence[str] = ("png",)) -> list[Path]:
    """Write a picture as files of some forms, the same bytes every time; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    targets = [folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)}.{form}" for form in forms]
    for target in targets:
        with atomic_path(target) as path, style():
            metadata = {"Date": None} if target.suffix == ".svg" else None
            figure.savefig(path, format=target.suffix[1:], dpi=200, metadata=metadata, transparent=False)
    return targets
