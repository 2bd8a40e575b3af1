"""A leaderboard as tables: one for each measure on the same questions, controls beside each number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from seesaw_cf.io.terminal import column_table, printable, wrap
from seesaw_cf.page.render import csv_files, render
from seesaw_cf.page.table import Line, Table
from seesaw_cf.report import text
from seesaw_cf.report.results import relation_name
from seesaw_cf.sharing.leaderboard_rows import Measured, Row

_HEADS = ("model", "editor", "value", "95 % interval", "n", "controls")
_ABOUT = (
    "Every row was computed anew from the score table that was submitted, and carries the SHA-256 of the run's "
    "tables; nobody ran the model again. Rows are compared where they answer the same questions under the same "
    "protocol; intervals that overlap are no order."
)


@dataclass(frozen=True, slots=True)
class Board:
    """What can be compared: the same questions, asked in the same way.

    Attributes:
        title: Data, configs and protocol.
        rows: Of the editors.
        tables: One for each measure.
    """

    title: str
    rows: Sequence[Row]
    tables: Sequence[Table]


def boards(rows: Sequence[Row]) -> list[Board]:
    """The boards, the one with most rows first."""
    keys = dict.fromkeys((row.data, row.configs, row.data_sha256, row.protocol) for row in rows)
    found: list[Board] = []
    for key in keys:
        own = [row for row in rows if (row.data, row.configs, row.data_sha256, row.protocol) == key]
        data, configs, digest, protocol = key
        title = f"{data} ({configs}), protocol {protocol}, records {digest[:12]}"
        measures = dict.fromkeys((one.measure, one.share) for row in own for one in _of_editor(row))
        tables = [_table(f"{len(found)}-{number}", *one, own) for number, one in enumerate(measures)]
        found.append(Board(title, own, tables))
    return sorted(found, key=lambda board: (-len(board.rows), board.title))


def leaderboard_text(rows: Sequence[Row]) -> str:
    """The tables for a terminal."""
    parts = []
    for board in boards(rows):
        parts.append(printable(board.title).upper())
        for table in board.tables:
            cells = [line.cells for line in table.rows]
            parts += [printable(f"{table.title}: {table.about}"), column_table(table.heads, cells, 2)]
    return "\n\n".join([*parts, wrap(_ABOUT)])


def leaderboard_page(rows: Sequence[Row], title: str) -> str:
    """The page: nothing is fetched, and the same rows give the same bytes."""
    frame = pd.DataFrame(list(_flat(rows)))
    values = {
        "title": f"Leaderboard {title}",
        "about": _ABOUT,
        "boards": boards(rows),
        "submissions": _submissions(rows),
        "downloads": csv_files({"leaderboard": frame}),
    }
    return render("leaderboard.html", values)


def _of_editor(row: Row) -> Iterable[Measured]:
    return (one for one in row.numbers if one.editor == row.editor)


def _table(number: str, measure: str, share: bool, rows: Sequence[Row]) -> Table:
    """Best first: the largest share, the smallest effect."""
    there = [(row, one) for row in rows for one in _of_editor(row) if (one.measure, one.share) == (measure, share)]
    there.sort(key=lambda pair: (-pair[1].value if share else abs(pair[1].value), pair[0].model, pair[0].editor))
    name, _, relation = measure.partition("/")
    title = f"{name}, edited: {relation_name(relation)}" if relation else name
    order = "the largest first" if share else "the smallest first, whatever its sign"
    lines = [Line((row.model, row.editor, *_said(one), _beside(row, one))) for row, one in there]
    return Table(f"measure-{number}", title, f"{there[0][1].about}; {order}", _HEADS, 2, lines)


def _said(one: Measured) -> tuple[str, str, str]:
    ends = (math.nan if one.low is None else one.low, math.nan if one.high is None else one.high)
    show = text.percent_interval if one.share else text.effect
    shown, bracket, interval = text.minus(show(one.value, *ends)).partition(" [")
    return shown, f"[{interval}" if bracket else "none", f"{one.n:,}"


def _beside(row: Row, one: Measured) -> str:
    """The controls' numbers, each with its interval and n."""
    found = [other for other in row.numbers if other.measure == one.measure and other.editor != row.editor]
    return "; ".join(f"{other.editor}: {' '.join(_said(other)[:2])}, n={other.n:,}" for other in found) or "none"


def _submissions(rows: Sequence[Row]) -> Table:
    heads = ("model", "editor", "edits", "seed", "run", "scores.parquet", "records", "checked", "seesaw_cf")
    lines = [
        Line(
            (
                f"{row.model} ({row.dtype}, weights {row.weights[:12]})",
                row.editor,
                f"{row.edits:,}",
                str(row.seed),
                *(digest[:12] for digest in (row.run, row.scores_sha256, row.data_sha256)),
                row.checked,
                row.seesaw_cf,
            )
        )
        for row in rows
    ]
    about = "SHA-256 by their first twelve digits; whole ones are in the table to download"
    return Table("submissions", "Submissions", about, heads, len(heads), lines)


def _flat(rows: Sequence[Row]) -> Iterator[dict[str, object]]:
    """One row for each number."""
    names = [name for name in Row.__dataclass_fields__ if name not in ("form", "numbers")]
    for row in rows:
        for one in row.numbers:
            number = {name: getattr(one, name) for name in ("measure", "share", "value", "low", "high", "n")}
            yield {**{name: getattr(row, name) for name in names}, "measured": one.editor, **number}
