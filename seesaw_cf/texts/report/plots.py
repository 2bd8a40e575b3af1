"""Pictures of a long-form report: survey means, labels and contradicted claims, kinds of edits. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seesaw_cf.base.terminal import printable
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.report.canvas import grouped_bars, new_figure, picture_style, save_picture

_LABEL_COLOURS = dict(zip(LABELS, ("#009E73", "#bdbdbd", "#D55E00"), strict=True))


def draw(frames: Mapping[str, pd.DataFrame], folder: Path) -> dict[str, str]:
    """Draw what there are numbers for.

    Args:
        frames: Name of a section -> its frame.
        folder: Where the files go.

    Returns:
        File name -> description.

    Raises:
        StorageError: A file cannot be written.
    """
    files: dict[str, str] = {}
    with picture_style():
        for name, (about, picture) in _PICTURES.items():
            frame = frames.get(name)
            if frame is None or frame["value"].notna().sum() == 0:
                continue
            file = f"longform_{name}.png"
            save_picture(picture(frame), folder / file)
            files[file] = about
    return files


def _panels(frame: pd.DataFrame, by: list[str], height: float) -> list[tuple[Figure, Axes, str, pd.DataFrame]]:
    """Make one row of axes per block of the frame."""
    keys = [name for name in by if name in frame]
    parts = list(frame.groupby(keys, sort=False, observed=True)) if keys else [((), frame)]
    figure, axes = new_figure(1.2 + height * len(parts), len(parts))
    titles = [", ".join(printable(word) for word in key) for key, _ in parts]
    return [(figure, axis, title, part) for axis, title, (_, part) in zip(axes, titles, parts, strict=True)]


def _bars(
    frame: pd.DataFrame,
    by: list[str],
    across: str,
    label: str,
    height: float,
    ends: tuple[float | None, float | None] = (None, None),
    about: str = "",
) -> Figure:
    """Draw bars of every method side by side over the values of a column, with their intervals.

    Args:
        frame: Of a section.
        by: Blocks with separate axes.
        across: What is side by side.
        label: Words of the vertical axis.
        height: Of a panel.
        ends: Of the vertical axis.
        about: What titles begin with.
    """
    panels = _panels(frame, ["dataset", "model", *by], height)
    for _, axis, title, part in panels:
        places = list(dict.fromkeys(part[across]))
        grouped_bars(axis, part, (across, places), "method", ("value", "low", "high"))
        names = [printable(place).replace("_", " ") for place in places]
        axis.set_xticks(range(len(places)), names, rotation=15, ha="right")
        axis.axhline(0, color="black", linewidth=0.8)
        axis.legend(ncols=4, frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1))
        axis.set_ylim(*ends)
        axis.set_ylabel(f"{label}, 95 % interval")
        axis.set_title(about + title, loc="left")
    return panels[0][0]


def _labels(frame: pd.DataFrame) -> Figure:
    panels = _panels(frame, ["dataset", "model", "annotator", "passage"], 3.0)
    for _, axis, title, part in panels:
        wide = part.pivot_table(index=["claim_kind", "method"], columns="label", values="value").reindex(columns=LABELS)
        left = np.zeros(len(wide))
        for label in LABELS:
            axis.barh(range(len(wide)), wide[label], left=left, color=_LABEL_COLOURS[label], label=label)
            left += wide[label].fillna(0).to_numpy()
        names = [f"{kind.replace('_', ' ')}: {printable(method)[:24]}" for kind, method in wide.index]
        axis.set_yticks(range(len(wide)), names)
        axis.set_xlim(0, 1)
        axis.set_xlabel("share of claims")
        axis.set_title(f"passages: {title}", loc="left")
        axis.legend(ncols=3, frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1))
    return panels[0][0]


_PICTURES: dict[str, tuple[str, Callable[[pd.DataFrame], Figure]]] = {
    "survey": (
        "Mean rating of every method on every item, with 95 % intervals",
        partial(_bars, by=["rater"], across="metric", label="mean rating", height=3.4, ends=(1, 7.6)),
    ),
    "labels": ("Share of claims that passages support, leave open and contradict", _labels),
    "contradicted": (
        "Share of claims that passages contradict, with 95 % intervals",
        partial(
            _bars,
            by=["annotator", "passage"],
            across="claim_kind",
            label="share contradicted",
            height=3.0,
            ends=(0, 1),
            about="passages: ",
        ),
    ),
    "kind_differences": (
        "Rating by kind of edit: difference from the other edits",
        partial(_bars, by=["rater", "metric"], across="contrast", label="difference", height=2.8),
    ),
    "short_differences": (
        "Short form by kind of edit: difference from the other edits",
        partial(
            _bars, by=["metric"], across="contrast", label="difference of shares", height=2.4, about="short form: "
        ),
    ),
}
