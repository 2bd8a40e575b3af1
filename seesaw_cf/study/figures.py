"""Figures 2, 3 and 4 of SEESAW-CF from a comparison. Needs the extra `plots` (matplotlib)."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seesaw_cf.base.files import safe_name
from seesaw_cf.base.terminal import printable
from seesaw_cf.records import groups
from seesaw_cf.report.canvas import Columns, add_legend, grouped_bars, new_figure, picture_style, save_picture
from seesaw_cf.report.results import relation_name, sort_relations
from seesaw_cf.study.members import NAMES
from seesaw_cf.study.tables import Comparison

_PICTURED = ("P103", "P19")  # language and birth, as in the paper
_AXES = {"race": "race", "region": "geographic origin", "gender": "gender"}
_LONGEST = 120  # characters of a file name
_UNIT = "D_d (probability)"
_SHARES = {
    "crossed": "cells below 0 whose interval excludes 0; numbers under the bars: cells with a number",
    "paper": "cells below 0 with p < 0.05 (t-test over cases); numbers under the bars: all cells, blank ones too",
}
_HINT = "below 0: less confident in what is right; 95 % intervals; numbers under the bars: edits"


def draw_figures(comparison: Comparison, shares: pd.DataFrame, folder: Path) -> dict[str, str]:
    """Draw what the runs have numbers for; controls are left out.

    Args:
        comparison: The comparison.
        shares: Rows of `seesaw_cf.study.papers.decrease_shares`.
        folder: Where the files go.

    Returns:
        File name -> description, of the pictures written.

    Raises:
        StorageError: A file could not be written.
    """
    files: dict[str, str] = {}
    with picture_style():
        for name, about, figure in _figures(comparison, shares):
            file = picture_file(name, files)
            save_picture(figure, folder / file)
            files[file] = about
    return files


def picture_file(name: str, files: Container[str]) -> str:
    """Return the file name of a picture: one that no file system refuses and no other picture has."""
    file = f"{safe_name(name)}.png"
    if len(file) <= _LONGEST and file not in files:
        return file
    return f"{safe_name(name)[: _LONGEST - 14]}-{sha256(name.encode()).hexdigest()[:8]}.png"


def _figures(comparison: Comparison, shares: pd.DataFrame) -> Iterator[tuple[str, str, Figure]]:
    real = {line.key for line in comparison.lines}
    effects, continents = (_only(comparison.table(name), real) for name in ("effects_by_group", "citizenship"))
    for key, rows in _panels(effects, ["model", "records", "protocol"]):
        if len(chosen := _pictured(rows)):
            about = f"Figure 2: D_d by race and geographic origin, {key}"
            yield f"figure_2_{key}", about, _by_group(chosen, about)
    for key, rows in _panels(continents, ["model", "editor", "records", "protocol"]):
        about = f"Figure 3: D_d after editing citizenship, by continent of the new target and race, {key}"
        yield f"figure_3_{key}", about, _by_continent(rows, about)
    for key, rows in _panels(_only(shares, real), ["editor", "records", "protocol"]):
        about = f"Figure 4: share of cells with decreased confidence, {key}"
        yield f"figure_4_{key}", about, _by_share(rows, f"{about}\n{_SHARES[comparison.mode]}")


def _only(table: pd.DataFrame, keys: set[tuple[str, str, str, str]]) -> pd.DataFrame:
    rows = table[list(NAMES)].itertuples(index=False, name=None) if len(table) else ()
    return table[[key in keys for key in rows]] if len(table) else table


def _panels(table: pd.DataFrame, names: list[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each picture's rows, after its names that are not the same in all; the first name is always included."""
    if len(table):
        places = [number for number, name in enumerate(names) if not number or table[name].nunique() > 1]
        for key, rows in table.groupby(names, sort=False):
            yield ", ".join(str(key[number]) for number in places), rows


def _pictured(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of language and birth, or of every property where neither was edited; only the papers' groups."""
    rows = effects[(effects["holds"] == "target_new") & (effects["n_cases"] > 0)]
    reported = [group in groups.AXES.get(axis, ()) for axis, group in zip(rows["axis"], rows["group"])]
    rows = rows[np.array(reported, dtype=bool) & rows["axis"].isin(("race", "region")).to_numpy()]
    near = rows[rows["relation"].isin(_PICTURED)]
    return near if len(near) else rows


def _by_group(rows: pd.DataFrame, about: str) -> Figure:
    relations = sort_relations(rows["relation"])
    axes = [axis for axis in ("race", "region") if (rows["axis"] == axis).any()]
    figure, panels = new_figure(1.2 + 3.4 * len(axes), len(axes), len(relations), width=max(12.0, 6.0 * len(relations)))
    for panel, (axis, relation) in zip(panels, ((axis, relation) for axis in axes for relation in relations)):
        chosen = rows[(rows["axis"] == axis) & (rows["relation"] == relation)]
        names = [group for group in groups.members(axis) if (chosen["group"] == group).any()]
        _bars(panel, chosen, ("group", names), "editor", ("D", "low", "high"))
        panel.set_title(f"edited: {relation_name(relation)}, by {_AXES[axis]}", loc="left")
    return _finished(figure, panels, f"{about}\n{_HINT}")


def _by_continent(rows: pd.DataFrame, about: str) -> Figure:
    figure, panels = new_figure(5.5)
    chosen = rows[rows["group"].isin(groups.members("race")) & (rows["n_cases"] > 0)]
    chosen = chosen.sort_values("group", key=lambda own: own.map(groups.members("race").index), kind="stable")
    names = sorted(set(chosen["continent"]))
    _bars(panels[0], chosen, ("continent", names), "group", ("D", "low", "high"))
    return _finished(figure, panels, f"{about}\n{_HINT}")


def _by_share(rows: pd.DataFrame, about: str) -> Figure:
    figure, panels = new_figure(4.8)
    named = rows.assign(trait=rows["axis"].map(_AXES), n_cases=rows["cells"])
    names = [name for name in _AXES.values() if (named["trait"] == name).any()]
    _bars(panels[0], named, ("trait", names), "model", ("share", "", ""))
    panels[0].set_ylabel("share of cells (property × group)")
    return _finished(figure, panels, about)


def _bars(panel: Axes, rows: pd.DataFrame, places: tuple[str, Sequence[str]], bar: str, columns: Columns) -> None:
    """Draw groups of bars: one group for each place, one bar for each value of `bar`; n under or over each."""
    grouped_bars(panel, rows, places, bar, columns, counts="n_cases")
    names = places[1]
    panel.axhline(0, color="black", linewidth=1)
    panel.set_xticks(range(len(names)), [printable(name)[:16].replace(" ", "\n") for name in names])
    panel.set_ylabel(_UNIT)
    panel.margins(y=0.15)
    bottom, top = panel.get_ylim()
    panel.set_ylim(min(bottom, -0.12 * top), top)  # bars that start at 0 leave no room for the numbers below it


def _finished(figure: Figure, panels: Sequence[Axes], title: str) -> Figure:
    handles: Mapping[str, Any] = {
        label: handle for panel in panels for handle, label in zip(*panel.get_legend_handles_labels())
    }
    add_legend(figure, list(handles.values()), 6)
    figure.suptitle("\n".join(printable(line)[:130] for line in title.split("\n")), fontsize=12)
    return figure
