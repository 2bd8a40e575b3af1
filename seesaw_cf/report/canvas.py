"""What every picture shares: colours, size, and how it is written."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from seesaw_cf.base.files import atomic_path
from seesaw_cf.base.terminal import printable
from seesaw_cf.report.rows import rows_of

# Okabe and Ito's colours, told apart with every common kind of colour blindness; a marker each, for print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
GREY = "#8a8a8a"
_STYLE: Any = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "white",
    "text.parse_math": False,  # names come from data: "$" is a character, not a formula
}
_WIDTH, _DPI = 12.0, 100  # 1200 pixels wide
Columns = tuple[str, str, str]
"""Of a value and of the ends of its interval; "" where there is none."""


@contextmanager
def picture_style() -> Iterator[None]:
    """Draw pictures in the block with the fonts and lines of this package, overriding matplotlib's settings."""
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name in a script the font lacks
        yield


def save_picture(figure: Figure, path: Path) -> None:
    """Write a picture whole or not at all, with the same bytes for the same data."""
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=_DPI, metadata={"Software": None})


def new_figure(
    height: float,
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = _WIDTH,
    share_x: bool = False,
    share_y: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Make an empty figure and return it with its panels, in reading order.

    Args:
        height, width: In inches; the width is a report's.
        rows, columns: Of panels.
        share_x: All panels have the same x axis, with its numbers under each of them.
        share_y: All panels have the same y axis, with its numbers at the first of a row.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=share_x, sharey=share_y)
    for panel in axes.flat:
        panel.tick_params(labelbottom=True)
    return figure, list(axes.flat)


def grouped_bars(
    axes: Axes, rows: pd.DataFrame, places: tuple[str, Sequence[object]], by: str, columns: Columns, counts: str = ""
) -> None:
    """Draw a group of bars at each place, one bar for each value of a column, with their intervals.

    Args:
        axes: Where.
        rows: One row per bar.
        places: A column, and its values from left to right.
        by: Column of the bars of a group; its values are the legend's.
        columns: See `Columns`.
        counts: Column of a count that stands at the foot of each bar.
    """
    (across, names), (value, low, high) = places, columns
    kinds = list(dict.fromkeys(rows[by]))
    wide = 0.8 / max(1, len(kinds))
    cells = {(row[across], row[by]): row for row in rows_of(rows)}
    for number, kind in enumerate(kinds):
        colour = COLOURS[number % len(COLOURS)]
        axes.bar([0], [0], color=colour, label=printable(kind)[:24])
        for place, name in enumerate(names):
            if (row := cells.get((name, kind))) is None:
                continue
            x = place - 0.4 + wide * (number + 0.5)
            axes.bar([x], [row[value]], 0.92 * wide, color=colour)
            if low and row[low] == row[low]:
                axes.vlines(x, row[low], row[high], color="black", linewidth=1.2)
            if counts:
                axes.annotate(str(int(row[counts])), (x, 0), xytext=(0, -11 if row[value] >= 0 else 3),
                              textcoords="offset points", ha="center", fontsize=7)  # fmt: skip
