"""LEME's Figures 3 to 7 and the flaws of SEESAW-CF's Table 6 as pictures, by matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from seesaw_cf.base.terminal import cut, printable
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.report.figures import COLOURS, CONTROL_COLOUR, style
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.rows import rows_of
from seesaw_cf.texts.report.rows import BASELINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABEL_COLOURS = dict(zip(LABELS, ("#0f766e", "#d6d3d1", "#c2410c"), strict=True))
_ROW, _FRAME, _WIDTH = 0.19, 0.75, 6.8  # inches a line takes, a panel takes beside its lines, and the width


class Picture(NamedTuple):
    """A picture of one kind of number."""

    what: str
    caption: str
    label: str  # of the axis
    across: str  # column of the lines; the editors stand below each other in each
    panels: tuple[str, ...]  # columns with a panel for every value
    ends: tuple[float, float] | None = None


PICTURES = (
    Picture("flaw_these_raters", "Mean rating of every flaw, right of 0: more after the edit", "mean rating", "asked",
            ("relation",), (-1, 1)),
    Picture("rating", "Mean rating of every statement (LEME Figure 3)", "rating", "asked",
            ("dataset", "rater"), (1, 7)),
    Picture("claims", "What texts say of claims (LEME Figure 4)", "share of claims", "asked",
            ("dataset", "rater", "about"), (0, 1)),
    Picture("contradicted", "Claims that texts contradict (LEME Figure 5)", "share contradicted", "asked",
            ("dataset", "rater", "about"), (0, 1)),
    Picture("by_kind", "Ratings by kind of edit (LEME Figure 6)", "difference from the other edits", "reference",
            ("dataset", "rater", "asked")),
    Picture("short_by_kind", "Short form by kind of edit (LEME Figure 7)", "difference from the other edits",
            "reference", ("dataset", "asked")),
)  # fmt: skip


def figures_of(frame: pd.DataFrame) -> Iterator[tuple[str, str, Figure]]:
    """Yield name, caption and figure of everything that there are numbers for."""
    against = frame[(frame["what"] == "claims") & (frame["answer"] == "contradicts")].assign(what="contradicted")
    every = pd.concat([frame, against]).dropna(subset="value")
    for picture in PICTURES:
        rows = every[every["what"] == picture.what]
        if len(rows):
            with style():
                yield picture.what, picture.caption, _figure(rows, picture)


def _figure(rows: pd.DataFrame, picture: Picture) -> Figure:
    from matplotlib.figure import Figure

    by = [name for name in picture.panels if rows[name].notna().any()]
    panels = list(rows.groupby(by, sort=False)) if by else [((), rows)]
    lines = [own.drop_duplicates([picture.across, "editor"]) for _, own in panels]
    heights = [_FRAME + _ROW * (len(own) + own[picture.across].nunique()) for own in lines]
    figure = Figure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights).ravel()
    editors = [name for name in dict.fromkeys(rows["editor"]) if name != BASELINE]
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(editors)} | {BASELINE: CONTROL_COLOUR}
    for ax, (key, own), names in zip(axes, panels, lines, strict=True):
        places = _places(ax, names, picture.across)
        for row in rows_of(own):
            y = places[row[picture.across], row["editor"]]
            if picture.what == "claims":
                left = sum(own.loc[(own[picture.across] == row[picture.across]) & (own["editor"] == row["editor"])
                                   & own["answer"].isin(LABELS[: LABELS.index(row["answer"])]), "value"])  # fmt: skip
                ax.barh(y, row["value"], left=left, color=_LABEL_COLOURS[row["answer"]], height=0.7)
            else:
                ax.plot(row["value"], y, "o", markersize=4, color=colours[row["editor"]])
                ax.hlines(y, row["low"], row["high"], color=colours[row["editor"]], linewidth=1.6)
        ax.set_title(
            printable(cut(", ".join(relation_name(str(name)) for name in key), 70)).replace("_", " "),
            loc="left",
            fontsize=9,
        )
        ax.set_xlabel(picture.label)
        if picture.ends:
            ax.set_xlim(*picture.ends)
        if picture.what == "claims":
            words = "   ".join(f"{name}: {word}" for name, word in zip(LABELS, ("green", "grey", "red"), strict=True))
            ax.set_xlabel(f"{picture.label}; {words}")
        elif not picture.ends or picture.ends[0] < 0:
            ax.axvline(0, color="#78716c", linewidth=0.8)
    return figure


def _places(ax: Axes, names: pd.DataFrame, across: str) -> dict[tuple[object, object], float]:
    """Give every editor of every value its line, and return which."""
    places: dict[tuple[object, object], float] = {}
    labels, y = {}, 0.0
    for value, own in names.groupby(across, sort=False):
        for editor in own["editor"]:
            places[value, editor] = y
            first = editor == own["editor"].iloc[0]
            word = f"{str(value).replace('_', ' ')} · " if first else ""
            labels[y] = printable(cut(f"{word}{editor}", 48))
            y += 1
        y += 0.6
    ax.set_yticks(np.array(list(labels)), list(labels.values()))
    ax.set_ylim(y - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    return places
