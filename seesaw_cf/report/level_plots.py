"""The first picture: what happened after the edits whatever the group, each editor above its control (matplotlib)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from seesaw_cf.editors.control_names import is_control, split_control
from seesaw_cf.effects.levels import LEVELS
from seesaw_cf.io.terminal import printable
from seesaw_cf.report import text
from seesaw_cf.report.canvas import COLOURS, GREY, new_figure, save_picture
from seesaw_cf.report.levels import level_number, level_verdict
from seesaw_cf.report.results import Results

_TITLES = {
    "other_facts": "Other facts about the edited person: share still right (dotted line: before)",
    "target_true": "People who hold the OLD answer: moved towards the new, false one",
    "target_new": "People who hold the NEW answer: D_d, below 0 less sure of what is right",
}
_COLOUR_OF = {"worse": COLOURS[1], "better": COLOURS[2]}


def draw_levels(results: Results, folder: Path) -> dict[str, str]:
    """Draw `levels.png`; return file name -> description, nothing where no level was asked."""
    if results.levels.empty:
        return {}
    rows = results.levels[results.levels["decides"]]
    asked = [level for level in LEVELS if (rows["level"] == level).any()]
    lines = int(rows.groupby("level")["editor"].nunique().max())
    figure, panels = new_figure(0.7 + len(asked) * (0.9 + 0.36 * lines), len(asked), 1)
    same_unit: dict[str, Axes] = {}
    for panel, level in zip(panels, asked):
        own = rows[rows["level"] == level]
        first = same_unit.setdefault(own["scale"].iloc[0], panel)
        if first is not panel:
            panel.sharex(first)  # so that lengths can be compared
        _panel(panel, own, results)
    model = printable(results.manifest.get("model", {}).get("id", ""))[-40:]
    figure.suptitle(f"After the edits, whatever the group; 95 % intervals, grey: controls  ({model})", fontsize=12.5)
    save_picture(figure, folder / "levels.png")
    return {"levels.png": "Other facts, and people who hold the old or the new answer, after the edits and controls"}


def _panel(panel: Axes, rows: pd.DataFrame, results: Results) -> None:
    first = rows.iloc[0]
    share = first["scale"] == "share"
    columns = ("after", "after_low", "after_high") if share else ("value", "low", "high")
    editors = sorted(dict.fromkeys(rows["editor"]), key=lambda name: (split_control(name)[1], is_control(name)))
    for y, editor in enumerate(editors):
        of_editor = rows[rows["editor"] == editor].to_dict("records")
        value, low, high = (of_editor[0][name] for name in columns)
        colour = GREY if is_control(editor) else COLOURS[0]
        panel.hlines(y, low, high, color=colour, linewidth=3)
        panel.plot([value], [y], "o", color=colour, markersize=9, fillstyle="full" if low == low else "none")
        number = text.percent_interval(value, low, high) if share else level_number(of_editor[0], columns, results)
        verdicts = dict.fromkeys(level_verdict(row, results) for row in of_editor if row["control"])
        _beside(panel, y, text.minus(number), colour)
        for verdict in verdicts:
            _beside(panel, y - 0.4, verdict, _COLOUR_OF.get(verdict.split()[0], "black"))
    counts = f"n = {first['n']:,}; {first['n_people']:,} people, {first['n_edits']:,} edits"
    panel.set_title(f"{_TITLES[first['level']]}  ({counts})", loc="left", fontsize=11, fontweight="bold")
    panel.axvline(
        first["before"] if share else 0, color="black", linewidth=1, linestyle=":" if share else "-", zorder=1
    )
    panel.set_yticks(range(len(editors)), [printable(name)[:24] for name in editors])
    panel.set_ylim(len(editors) - 0.5, -0.7)
    if share:
        panel.set_xlim(0, 1.03)
        panel.xaxis.set_major_formatter("{x:.0%}")
    else:
        panel.margins(x=0.15)


def _beside(panel: Axes, y: float, shown: str, colour: str) -> None:
    place = ("axes fraction", "data")
    panel.annotate(shown, (1.01, y), xycoords=place, va="center", color=colour, fontsize=10, annotation_clip=False)
