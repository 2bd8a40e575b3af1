"""Changes with their intervals as a picture: tasks, and the groups of each field, on one axis per scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from seesaw_cf.logs.differences import SCORES
from seesaw_cf.logs.log import MARGIN
from seesaw_cf.logs.tables import change_text, shown_scale
from seesaw_cf.report.html.findings import Legend, Panels, Part
from seesaw_cf.report.html.forest import Axis, ForestColumn, ForestRow, Mark, Panel, key_colours
from seesaw_cf.report.table import Row, rows_of

_SIDES = ("score", MARGIN)


def change_panels(differences: pd.DataFrame, by_group: bool) -> list[Part]:
    """Return a panel of tasks, or one of each field's groups: change of the score, and of the margin in nats."""
    rows = differences[differences["value"].notna() & ~differences["contrast"].astype(bool)]
    rows = rows[(rows["field"] != "") == by_group]
    scores = differences[differences["family"] == SCORES]
    firsts = set(zip(scores["task"], scores["metric"]))
    keyed = [
        row
        for row in rows_of(rows)
        if row["metric"] == MARGIN or ((row["task"], row["metric"]) in firsts and row["is_share"])
    ]
    colours = key_colours(differences["changed"])
    fields = list(dict.fromkeys(row["field"] for row in keyed))
    panels = [
        _panel(field, [row for row in keyed if row["field"] == field], colours, field == fields[0]) for field in fields
    ]
    if not panels:
        return []
    note = "Right of 0: more after the change. Lines: 95 % intervals, clustered; dotted: the margin."
    legend = [Legend([(colour, 0, name) for name, colour in colours.items()], note)]
    return [*legend, Panels(panels)]


def _panel(field: str, rows: Sequence[Row], colours: dict[str, int], opened: bool) -> Panel:
    by_side = {side: [row for row in rows if (row["metric"] == MARGIN) == (side == MARGIN)] for side in _SIDES}
    axes = {side: _axis(own) for side, own in by_side.items() if own}
    scores = Counter((row["task"], row["group"], row["changed"]) for row in by_side["score"])
    lines: dict[tuple[str, str, str, str], dict[str, Row]] = {}
    for row in by_side["score"]:
        key = (row["task"], row["group"], row["changed"])
        lines[(*key, row["metric"] if scores[key] > 1 else "")] = {"score": row}
    for row in by_side[MARGIN]:  # next to the score, where a task has one alone
        lines.setdefault((row["task"], row["group"], row["changed"], ""), {})[MARGIN] = row

    def mark(side: str, row: Row | None) -> Mark | None:
        if row is None:
            return None
        value, low, high = (shown_scale(row) * float(row[name]) for name in ("value", "low", "high"))
        said = f"{row['changed']}, {row['task']} {row['group']}: {change_text(row)}; {row['n']:,} items"
        return Mark(axes[side].at(value), axes[side].span(low, high), colours[row["changed"]], said)

    drawn = [
        ForestRow(_name(key, len(colours) > 1), f"{max(row['n'] for row in own.values()):,}",
                  [mark(side, own.get(side)) for side in axes])
        for key, own in lines.items()
    ]  # fmt: skip
    titles = {"score": "score, points", MARGIN: "margin, nats"}
    margins = {side: float(own[0]["margin"]) * shown_scale(own[0]) for side, own in by_side.items() if own}
    columns = [ForestColumn.with_margin(titles[side], axis, margins[side]) for side, axis in axes.items()]
    title = f"By {field}" if field else "By task"
    return Panel(
        title, "Change, after minus before", ("group" if field else "task", "items"), columns, "", drawn, opened
    )


def _name(key: tuple[str, str, str, str], several: bool) -> str:
    task, group, model, metric = key
    return " · ".join(filter(None, (group, f"{task} {metric}".strip(), model if several else "")))


def _axis(rows: Sequence[Row]) -> Axis:
    ends = [shown_scale(row) * float(row[name]) for row in rows for name in ("low", "high")]
    return Axis.around([shown_scale(row) * float(row["value"]) for row in rows], ends)
