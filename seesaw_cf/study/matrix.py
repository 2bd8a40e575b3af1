"""Editors by measures: what each did, its control in the line below, and the verdict between the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.audit import hypotheses
from seesaw_cf.effects.groups import ALL
from seesaw_cf.report.levels import BETTER, SAME, WORDS, WORSE, LevelChange, level_changes
from seesaw_cf.report.rows import EfficacyRow, records, rows_of, with_limits
from seesaw_cf.report.strips import level_marks
from seesaw_cf.report.table import Column, EstimateColumn, Row, Table, word_column
from seesaw_cf.stats.verdicts import AFFECTED, VERDICTS
from seesaw_cf.study.members import NAMES, ComparedEditor, varying
from seesaw_cf.study.tables import Comparison

_SIGNS: Mapping[str, str] = {WORSE: "▼", BETTER: "▲", SAME: "="}
_ABOUT = """▼ worse than the control in the line below, ▲ better, = no more than it; no sign: not known, or no control.
95 % intervals; n where there is none."""
ABOUT_MEASURES = """Takes: share of edits after which the new answer is likelier than the old one. Neighbours: share of
neighbours whose true answer is the likelier one. Other facts: share of the other facts about the edited person that are
answered rightly. Old answer, new answer: change for people who hold it, towards the new answer, in probability (or
nats, where it says so). Groups: contrasts that are decided, of those that could be tested."""
_NAN = float("nan")


def matrix_table(comparison: Comparison) -> Table:
    """Return editors and their controls as rows and measures as columns; a measure that nobody asked has none."""
    rows = [row for line in comparison.lines for row in _rows(line, comparison)]
    frame = pd.DataFrame(rows)
    telling = varying(comparison.lines)
    names = [name for name in NAMES if name == "editor" or name in telling]
    measures = [*map(_share, ("takes", "neighbours", "other facts")), *map(_shift, ("old answer", "new answer"))]
    measures = [column for column in measures if column.head in frame and frame[column.head].notna().any()]
    groups = [Column("groups", _groups)] if "tested" in frame else []
    columns = [*(word_column(name) for name in names), *measures, *groups]
    return Table("matrix", "Editors and measures", _ABOUT, columns, frame, lines=(ABOUT_MEASURES,))


def changes_of(line: ComparedEditor) -> dict[str, LevelChange]:
    """Return level -> what the edits of a line did."""
    changes = level_changes(line.member.results)
    return {change.level: change for change in changes if change.editor == line.name}


def rows_of_line(table: pd.DataFrame, key: tuple[str, ...]) -> pd.DataFrame:
    """Return the rows of a table that belong to a line."""
    return table[(table[list(NAMES)] == list(key)).all(axis=1)] if len(table) else table


def _share(head: str) -> Column:
    return EstimateColumn(head, scale=100, unit="%", digits=1, star=f"{head}_sign", note=_count(head))


def _shift(head: str) -> Column:
    unit = f"{head}_unit"
    return EstimateColumn(head, zero=0.0, star=f"{head}_sign", note=_count(head), n=lambda row: row.get(unit) or "")


def _count(head: str) -> Callable[[Row], str]:
    return lambda row: f"n={row[f'{head}_n']:.0f}" if pd.notna(row.get(f"{head}_n")) else ""


def _groups(row: Row) -> str | None:
    return None if pd.isna(row["tested"]) else f"{row['decided']:.0f} of {row['tested']:.0f}"


def _rows(line: ComparedEditor, comparison: Comparison) -> list[TableRow]:
    """Return the row of a line, then that of the control of most of its levels."""
    changes, results = changes_of(line), line.member.results
    controls = [str(change.row["control"]) for change in changes.values() if change.row["control"]]
    names = [line.name, *([max(controls, key=controls.count)] if controls else [])]
    keys = {name: (*line.key[:3], line.member.editors.get(name, name)) for name in names}
    rows = {name: _measures(key, comparison) for name, key in keys.items()}
    for level, change in changes.items():
        head, signs = WORDS[level].head.lower(), {line.name: _SIGNS.get(change.verdict, "")}
        numbers = {name: numbers for name, numbers, _ in level_marks(change.row, results)}
        for name in filter(numbers.get, names):
            rows[name] |= _numbers(head, *numbers[name], change.row["n"])
            rows[name][f"{head}_sign"] = signs.get(name, "")
            rows[name][f"{head}_unit"] = "nats" * (change.row["scale"] == "log-odds")
    return list(rows.values())


def _numbers(head: str, value: float, low: float, high: float, n: float) -> TableRow:
    return {head: value, f"{head}_low": low, f"{head}_high": high, f"{head}_n": n, f"{head}_sign": ""}


def _measures(key: tuple[str, ...], comparison: Comparison) -> TableRow:
    """Return the measures that are not levels: whether edits take, neighbours, and contrasts between groups."""
    row: TableRow = dict(zip(NAMES, key, strict=True))
    took, success, verdicts = (
        rows_of_line(comparison.table(name), key) for name in ("efficacy", "success", "verdicts")
    )
    for edits in records(took[took["relation"] == ALL], EfficacyRow) if len(took) else []:
        row |= _numbers("takes", *with_limits(edits, "post"), edits.get("n", _NAN))
    for part in rows_of(success[success["measure"] == "neighbourhood"]) if len(success) else []:
        row |= _numbers("neighbours", part["value"], part["low"], part["high"], part["n_cases"])
    if "verdict" in verdicts and len(verdicts):
        found = hypotheses(verdicts)["verdict"]
        row |= {"decided": int(found.isin(AFFECTED).sum()), "tested": int((found != VERDICTS[-1]).sum())}
    return row
