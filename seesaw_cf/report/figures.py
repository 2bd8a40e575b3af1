"""The pictures of a report, by matplotlib: levels beside their controls, and a forest of the groups of each axis.

One drawing serves the page (SVG, in the page's own ink) and papers (PNG, SVG, PDF). Harm is always to the right of 0.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from seesaw_cf.base.files import atomic_path
from seesaw_cf.base.terminal import cut
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.groups import ALL, AXES, UNKNOWN
from seesaw_cf.report.frame import HARM
from seesaw_cf.report.pairs import Run
from seesaw_cf.report.results import sort_groups
from seesaw_cf.report.rows import rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, BAND = "#1c1917", "#d6d3d1"
COLOURS = ("#c2410c", "#1d4ed8", "#0f766e", "#7e22ce", "#a16207", "#be185d")
CONTROL_COLOUR = "#78716c"
_STYLE: Mapping[str, object] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # names of models and groups are text
    "svg.hashsalt": "seesaw_cf",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "savefig.transparent": True,
}
_ROW = 0.24  # inches a line takes
_LABEL = 28  # letters of a name


def style() -> AbstractContextManager[None]:
    """Return the context in which pictures are made and written."""
    import matplotlib as mpl

    return mpl.rc_context(dict(_STYLE))  # type: ignore[arg-type]


def colours(run: Run) -> dict[str, str]:
    """Return the colour of every editor; controls are grey."""
    names = [name for name in run.editors if not is_control(name)]
    own = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    return {name: own.get(name, CONTROL_COLOUR) for name in run.editors}


def level_figure(frame: pd.DataFrame, run: Run) -> Figure | None:
    """Return what happened to everybody: a panel a unit, each editor above its control, with 95 % intervals.

    None where no level was asked.
    """
    with style():
        return _level_figure(frame, run)


def _level_figure(frame: pd.DataFrame, run: Run) -> Figure | None:
    everybody = frame[(frame["relation"] == ALL) & (frame["axis"] == ALL) & (frame["what"] == "change")]
    everybody = everybody[np.isfinite(everybody["value"].astype(float))]
    decides = everybody["decides"].astype(bool) | everybody["editor"].map(is_control).astype(bool)
    rows = everybody[decides & (everybody["scale"] != "share") | (everybody["about"] == "other_facts")]
    panels = [(about, answer) for about, answer in HARM if len(_of(rows, about, answer))]
    if not panels:
        return None
    order = [name for editor in run.audited for name in (editor, *(c for e, c in run.controls if e == editor))]
    figure, axes = _figure(len(panels), [max(1, len(order))] * len(panels), width=7.4, frame=0.85)
    for ax, (about, answer) in zip(axes, panels, strict=True):
        own = _of(rows, about, answer)
        scale = own.loc[own["decides"].astype(bool), "scale"]
        own = own[own["scale"] == (scale.iloc[0] if len(scale) else own["scale"].iloc[0])]
        sign, factor = HARM[about, answer], 1.0 if own["scale"].iloc[0] == "log-odds" else 100.0
        marks = [
            (name, *_ends(row, sign * factor), colours(run)[name])
            for name in dict.fromkeys(order)
            for row in rows_of(own[own["editor"] == name])
        ]
        margin = factor * float(own["margin"].iloc[0])
        unit = "nats" if factor == 1 else "points"
        _draw_marks(ax, marks, margin, f"worse, {unit} \u2192")
        ax.set_title(_PANELS[about, answer], loc="left", fontsize=9, fontweight="bold")
    return figure


_PANELS = {
    ("other_facts", ""): "Other facts about the edited person: right answers lost",
    ("other_people", "old"): "People for whom the old answer is true: false answer's gain",
    ("other_people", "new"): "People for whom the new answer is true: right answer's loss",
}


def _of(rows: pd.DataFrame, about: str, answer: str) -> pd.DataFrame:
    return rows[(rows["about"] == about) & (rows["true_answer"] == answer)]


def forest_figures(
    frame: pd.DataFrame, run: Run, answers: Sequence[str] = ("old", "new")
) -> Iterator[tuple[str, str, Figure]]:
    """Yield (editor, true answer, forest): every group's mean change with its people, beside its control's."""
    people = frame[(frame["about"] == "other_people") & (frame["what"] == "change") & (frame["relation"] == ALL)]
    for editor in run.audited:
        control = run.control_of(editor)
        for answer in answers:
            own = people[(people["true_answer"] == answer) & people["editor"].isin((editor, control))]
            decided = own[(own["editor"] == editor) & (own["axis"] == ALL) & own["decides"].astype(bool)]
            if decided.empty:
                continue
            own = own[own["scale"] == decided["scale"].iloc[0]]
            with style():
                figure = _forest(own, editor, HARM["other_people", answer], run)
            yield editor, answer, figure


def _forest(rows: pd.DataFrame, editor: str, sign: int, run: Run) -> Figure:
    groups = {axis: sort_groups(axis, rows.loc[rows["axis"] == axis, "group"]) for axis in (ALL, *AXES)}
    groups = {axis: [group for group in names if group != UNKNOWN] for axis, names in groups.items()}
    groups = {axis: names for axis, names in groups.items() if names}
    figure, axes = _figure(len(groups), [len(names) for names in groups.values()], width=5.2)
    factor = 1.0 if rows["scale"].iloc[0] == "log-odds" else 100.0
    for ax, (axis, names) in zip(axes, groups.items(), strict=True):
        for number, name in enumerate(names):
            own = rows[(rows["axis"] == axis) & (rows["group"] == name)]
            for row in rows_of(own):
                shift, colour = (-0.16, colours(run)[editor]) if row["editor"] == editor else (0.16, CONTROL_COLOUR)
                _draw_mark(ax, number + shift, *_ends(row, sign * factor), colour)
        counts = [int(rows.loc[(rows["axis"] == axis) & (rows["group"] == name), "n_people"].max()) for name in names]
        labels = [
            f"{'everybody' if name == ALL else name} ({count:,})" for name, count in zip(names, counts, strict=True)
        ]
        _finish(ax, labels, factor * float(rows["margin"].iloc[0]))
        if axis != ALL:
            ax.set_title(axis, loc="left", fontsize=9, fontweight="bold")
    _share_limits(axes)
    axes[-1].set_xlabel(f"worse, {'nats' if factor == 1 else 'points'} \u2192", loc="right")
    return figure


def _figure(panels: int, rows: Sequence[int], width: float, frame: float = 0.45) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure of panels one below another; `frame`: inches of a panel's title and axis."""
    from matplotlib.figure import Figure

    with style():
        height = sum(rows) * _ROW + frame * panels + 0.35
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(panels, 1, squeeze=False, height_ratios=[max(1, count) for count in rows])
    return figure, list(axes[:, 0])


def _draw_marks(ax: Axes, marks: Sequence[tuple[str, float, float, float, str]], margin: float, label: str) -> None:
    for number, (_, value, low, high, colour) in enumerate(marks):
        _draw_mark(ax, number, value, low, high, colour)
    _finish(ax, [name for name, *_ in marks], margin)
    ax.set_xlabel(label, loc="right")


def _ends(row: Mapping[str, Any], factor: float) -> tuple[float, float, float]:
    """Return a value and the ends of its interval times a factor."""
    value, low, high = (factor * float(row[key]) for key in ("value", "low", "high"))
    return value, low, high


def _draw_mark(ax: Axes, y: float, value: float, low: float, high: float, colour: str) -> None:
    if np.isfinite(low):
        ax.plot([low, high], [y, y], color=colour, linewidth=1.8, solid_capstyle="butt")
    fill = colour if np.isfinite(low) else "none"
    ax.plot([value], [y], marker="o", markersize=4.5, color=colour, markerfacecolor=fill)


def _finish(ax: Axes, labels: Sequence[str], margin: float) -> None:
    ax.axvspan(-margin, margin, color=BAND, alpha=0.45, linewidth=0)
    ax.axvline(0, color=INK, linewidth=0.7)
    ax.set_yticks(range(len(labels)), [cut(label, _LABEL) for label in labels])
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)


def _share_limits(axes: Sequence[Axes]) -> None:
    low, high = (
        pick(limit)
        for pick, limit in ((min, [ax.get_xlim()[0] for ax in axes]), (max, [ax.get_xlim()[1] for ax in axes]))
    )
    for ax in axes:
        ax.set_xlim(low, high)
    for ax in axes[:-1]:
        ax.tick_params(axis="x", labelbottom=False)


def svg(figure: Figure, about: str) -> str:
    """Return a picture as SVG for a page: text stays text, and takes the ink of the page.

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
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font: \1px sans-serif", text)
    # Ids of clips and markers depend on the last digits of the layout.
    names = dict.fromkeys(re.findall(r'id="([mp][0-9a-f]{10})"', text))
    first = sha256(about.encode()).hexdigest()[:6]
    for number, name in enumerate(names):
        text = text.replace(name, f"{first}-{number}")
    label = about.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def save_figures(frame: pd.DataFrame, run: Run, folder: Path) -> list[Path]:
    """Write every picture of a run as PNG and SVG; return their paths."""
    figures = {"levels": level_figure(frame, run)}
    figures |= {f"forest_{editor}_{answer}": own for editor, answer, own in forest_figures(frame, run)}
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in figures.items():
        if figure is None:
            continue
        for form in ("png", "svg"):
            target = folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)}.{form}"
            with atomic_path(target) as path, style():
                metadata = {"Date": None} if form == "svg" else None
                figure.savefig(path, format=form, dpi=200, metadata=metadata, transparent=False)
            written.append(target)
    return written
