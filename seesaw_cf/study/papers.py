"""Tables 4, 5 and 8 to 15 of SEESAW-CF in their layout, from a comparison.

Every estimate has its interval and n. The star is this package's: the interval, clustered by edit and person, excludes
0 and the effect is above the noise floor. Tables 8 and 9 count cells below 0 with that star and, in brackets, with the
papers' own (t-test over case means, p < 0.05).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.groups import AXES, BiasMode
from seesaw_cf.records import groups
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.report.results import HOLDER, relation_name, sort_pairs, sort_relations
from seesaw_cf.report.rows import AccuracyRow, records, with_limits
from seesaw_cf.report.table import Column, EstimateColumn, Row, Table, word_column
from seesaw_cf.study.matrix import rows_of_line
from seesaw_cf.study.members import ComparedEditor, lines_of
from seesaw_cf.study.page import effect_texts
from seesaw_cf.study.tables import Comparison

_PLACES = {"race": "by race", "region": "by geographic origin", "gender": "by gender"}
_BY_METHOD = {"race": 10, "region": 12, "gender": 14}
_BY_MODEL = {"race": 11, "region": 13, "gender": 15}
_POOLED = ("all", "all")
_ABOUT = """The layouts of SEESAW-CF's tables, filled from these runs. D_d below 0: the model is less confident in what
is right about other people. Cells of Tables 10 to 15: D_d, then the change in log-odds, each with its 95 % interval
(clustered by edit and person; none below five of either), then n = edits; star: the interval excludes 0 and
the effect is above the noise floor. Blank or -: nobody of that group was asked about. {rules} The same
numbers, one row a cell: `tables/papers.csv`."""
_RULES = {
    "crossed": """Tables 4 and 5: exact match, changes in percentage points with Newcombe's paired interval. The last
row pools all pairs; the paper prints the mean of its rows (`--paper`). Tables 8 and 9 count cells below 0 with a star,
in brackets those with the papers' own star (t-test over case means, p < 0.05, not corrected), of the cells that have a
number: counts of cells, so without interval.""",
    "paper": """Tables 4 and 5: the published rule (an answer is right where the right one is part of it, in the first
stored prompt of each phase), changes with a bootstrap over cases. The last row is the mean of the rows above, without
interval. Tables 8 and 9 count cells with the papers' star (below 0, t-test over case means, p < 0.05, not corrected).
They count all cells of the papers, blank ones too: 30 by race, 35 by geographic origin, 8 by gender.""",
}


_Cell = TableRow  # row, column, value, low, high, n, papers (the star or count of the papers' own test), text
_share = partial(EstimateColumn, "share", "value", low="low", scale=100, digits=1)


def _count(row: Row) -> str:
    return f"n={row['n']:.0f}" if row["n"] else ""


def _decreased(row: Row) -> str:
    papers = f" ({row['papers']:.0f})" if math.isfinite(row["papers"]) else ""
    return f"{row['value']:.0f}{papers} of {row['n']}" if row["n"] else ""


_CELLS: dict[int, Column] = {
    4: _share(sign=True, n=_count),
    5: _share(unit="%", n=_count),
    **dict.fromkeys((8, 9), Column("cells", _decreased)),
}


def _table(number: int, about: str, heads: Sequence[str], columns: Sequence[str], cells: Sequence[_Cell]) -> Table:
    """Return a table of the paper.

    Args:
        number: The paper's.
        about: What it shows, of which model or editor.
        heads: Of the columns that name a row.
        columns: Heads of the columns with numbers, also of blank ones.
        cells: Numbers, row by row.
    """
    places = {(cell["row"], cell["column"]): cell for cell in cells}
    rows = dict.fromkeys(row for row, _ in places)
    grid = [
        {"row": row, "column": column} | _BLANK | places.get((row, column), {}) for row in rows for column in columns
    ]
    names = [word_column(head, lambda row, at=at: row["row"][at]) for at, head in enumerate(heads)]  # type: ignore[misc]
    values = _CELLS.get(number, Column("D_d", "text"))
    return Table(f"table_{number}", f"Table {number}: {about}", "", [*names, values], pd.DataFrame(grid), "column")


_BLANK = {"value": math.nan, "low": math.nan, "high": math.nan, "n": 0, "papers": math.nan, "text": ""}


def paper_tables(comparison: Comparison) -> list[Table]:
    """Return every table that the runs have numbers for, in the paper's order."""
    tables: list[Table] = []
    for about, lines in _panels(comparison, "editor"):
        tables += [_by_model(4, about, comparison, lines), *_counts(about, comparison, lines)]
        tables += [_groups(number, axis, about, comparison, lines, "model") for axis, number in _BY_MODEL.items()]
    for about, lines in _panels(comparison, "model"):
        tables.append(_accuracy(about, comparison, lines))
        tables += [_groups(number, axis, about, comparison, lines, "editor") for axis, number in _BY_METHOD.items()]
    return sorted((table for table in tables if len(table.frame)), key=lambda table: int(table.name.partition("_")[2]))


def _panels(comparison: Comparison, name: str) -> Iterator[tuple[str, list[ComparedEditor]]]:
    """Yield the lines of each editor (without controls) or model (with them), on the same records and protocol."""
    lines = lines_of(comparison.members, controls=name == "model")
    same = ["records", "protocol", name]
    panels: dict[tuple[str, ...], list[ComparedEditor]] = {}
    for line in lines:
        panels.setdefault(tuple(line.names[key] for key in same), []).append(line)
    places = [place for place, key in enumerate(same) if key == name or len({panel[place] for panel in panels}) > 1]
    for panel, own in panels.items():
        yield ", ".join(panel[place] for place in sorted(places, reverse=True)), own


def _held(comparison: Comparison) -> pd.DataFrame:
    """Return effects on people who hold the new target."""
    table = comparison.table("effects_by_group")
    return table[table["holds"] == HOLDER] if len(table) else table


def _groups(
    number: int, axis: str, about: str, comparison: Comparison, lines: Sequence[ComparedEditor], head: str
) -> Table:
    """Return one of Tables 10 to 15: property by method, or by model."""
    table, columns, cells = _held(comparison), groups.members(axis), []
    for relation in sort_relations(table["relation"]) if len(table) else ():
        for line in lines:
            own = rows_of_line(table, line.key)
            own = own[(own["relation"] == relation) & (own["axis"] == axis) & own["group"].isin(columns)]
            row = (relation_name(relation), line.names[head])
            cells += [_effect(row, effect, line) for effect in records(own, TableRow)]
    names = {"editor": ("Property", "Method"), "model": ("Property", "Model")}[head]
    return _table(number, f"cross-subject D_d {_PLACES[axis]}: {about}", names, columns, cells)


def _effect(row: tuple[str, ...], effect: Mapping[str, Any], line: ComparedEditor) -> _Cell:
    value, nats = effect_texts(effect, line)
    shown = "; ".join([value, *([f"log-odds {nats}"] if nats != "-" else [])]) + f" n={effect['n_cases']}"
    limits = (effect["D"], effect["low"], effect["high"])
    star = float(bool(effect.get("paper_star", False)))
    return _cell(row, effect["group"], limits, effect["n_cases"], star) | {"text": shown}


def _pairs(
    comparison: Comparison, lines: Sequence[ComparedEditor]
) -> Iterator[tuple[str, list[tuple[ComparedEditor, AccuracyRow]]]]:
    """Yield each pair of properties and each line's accuracy on it, the pooled row last."""
    table = comparison.table("accuracy")
    if table.empty:
        return
    own = {line.key: rows_of_line(table, line.key) for line in lines}
    every = [pair for frame in own.values() for pair in zip(frame["edit_relation"], frame["effect_relation"])]
    for pair in sort_pairs(every):
        rows = []
        for line in lines:
            frame = own[line.key]
            chosen = frame[(frame["edit_relation"] == pair[0]) & (frame["effect_relation"] == pair[1])]
            rows += [(line, row) for row in records(chosen, AccuracyRow) if row["n"]]
        pooled = "mean of the rows" if comparison.mode == "paper" else "all pairs"
        yield pooled if pair == _POOLED else "/".join(map(relation_name, pair)), rows


def _by_model(number: int, about: str, comparison: Comparison, lines: Sequence[ComparedEditor]) -> Table:
    """Return Table 4: change of accuracy by pair and model."""
    cells = []
    for pair, rows in _pairs(comparison, lines):
        for line, row in rows:
            cells.append(_cell((pair,), line.member.model, (row["change"], row["low"], row["high"]), row["n"]))
    models = tuple(dict.fromkeys(line.member.model for line in lines))
    return _table(
        number, f"change of accuracy about P2 after editing P1, in points: {about}", ("P1/P2",), models, cells
    )


def _accuracy(about: str, comparison: Comparison, lines: Sequence[ComparedEditor]) -> Table:
    """Return Table 5: accuracy before and after, by pair and method."""
    cells = []
    for pair, rows in _pairs(comparison, lines):
        if rows:
            first = max((row for _, row in rows), key=lambda row: row["n"])
            cells.append(_cell((pair,), "Pre-edit", with_limits(first, "pre"), first["n"]))
        cells += [_cell((pair,), line.names["editor"], with_limits(row, "post"), row["n"]) for line, row in rows]
    columns = ("Pre-edit", *dict.fromkeys(line.names["editor"] for line in lines))
    return _table(5, f"accuracy about P2 before and after editing P1: {about}", ("P1/P2",), columns, cells)


def _cell(
    row: tuple[str, ...], column: str, value: tuple[float, float, float], n: int, papers: float = math.nan
) -> _Cell:
    names = ("value", "low", "high")
    return {"row": row, "column": column, "n": n, "papers": papers} | dict(zip(names, value, strict=True))


def decreases(comparison: Comparison, line: ComparedEditor) -> pd.DataFrame:
    """Return a line's cells of Tables 8 and 9 and Figure 4: relation, axis, group, `ours`, `papers` (1: a decrease).

    A cell is a property and a group that the papers report; those without a number are left out, or count as no
    decrease in the mode "paper".
    """
    table = rows_of_line(_held(comparison), line.key)
    reported = [(axis, group) for axis in AXES for group in groups.members(axis)]
    chosen = table[[key in reported for key in zip(table["axis"], table["group"])]] if len(table) else table
    chosen = chosen[chosen["n_cases"] > 0] if len(chosen) else chosen
    if chosen.empty:
        return pd.DataFrame(columns=["relation", "axis", "group", "ours", "papers"])
    ours = (chosen["marked"].astype(bool) & (chosen["D"] < 0)).astype(int)
    cells = chosen[["relation", "axis", "group"]].assign(ours=ours, papers=chosen["paper_star"].astype(int))
    if comparison.mode != "paper":
        return cells
    return pd.DataFrame(_PUBLISHED_CELLS, columns=["relation", "axis", "group"]).merge(cells, how="left").fillna(0)


# Every cell of Tables 8 and 9: five properties by group, and no edits of gender by gender.
_PUBLISHED_CELLS = [
    (relation, axis, group)
    for axis in AXES
    for group in groups.members(axis)
    for relation in RELATIONS
    if (relation, axis) != ("P21", "gender")
]


def decrease_shares(comparison: Comparison) -> pd.DataFrame:
    """Count, for Figure 4, how many cells of each line and axis show decreased confidence.

    `share` is by our star, or in the mode "paper" by the papers' as `share_papers` is.
    """
    table = []
    for line in comparison.lines:
        for axis, rows in decreases(comparison, line).groupby("axis", sort=True):
            counts = {name: int(rows[name].sum()) for name in ("ours", "papers")}
            star = "papers" if comparison.mode == "paper" else "ours"
            shares = {"share": counts[star] / len(rows), "share_papers": counts["papers"] / len(rows)}
            table.append(line.names | {"axis": axis, "cells": len(rows)} | counts | shares)
    return pd.DataFrame(table)


def _counts(about: str, comparison: Comparison, lines: Sequence[ComparedEditor]) -> list[Table]:
    """Return Tables 8 and 9: in how many cells a model is less confident, by property and by group."""
    cells = {line.member.model: decreases(comparison, line) for line in lines}
    every = pd.concat(cells.values(), ignore_index=True)
    if every.empty:
        return []
    properties = {relation_name(name): ("relation", name) for name in sort_relations(every["relation"])}
    people = {group: ("group", group) for axis in ("race", "gender", "region") for group in groups.members(axis)}
    people = {name: key for name, key in people.items() if (every["group"] == name).any()}
    what, paper = "cells with decreased confidence", comparison.mode == "paper"
    return [
        _table(8, f"{what}, by property: {about}", ("Property",), tuple(cells), _counted(cells, properties, paper)),
        _table(9, f"{what}, by group: {about}", ("Group",), tuple(cells), _counted(cells, people, paper)),
    ]


def _counted(by_model: Mapping[str, pd.DataFrame], rows: Mapping[str, tuple[str, str]], paper: bool) -> list[_Cell]:
    cells = []
    for name, key in [*rows.items(), ("Total", None)]:
        for model, table in by_model.items():
            chosen = table if key is None else table[table[key[0]] == key[1]]
            ours, papers = int(chosen["ours"].sum()), int(chosen["papers"].sum())
            counts = (papers, math.nan) if paper else (ours, papers)
            if len(chosen):
                cells.append(_cell((name,), model, (counts[0], math.nan, math.nan), len(chosen), counts[1]))
    return cells


def tables_page(tables: Sequence[Table], mode: BiasMode = "crossed") -> str:
    """Return `papers.md`: what the tables are and by which rules, and the tables."""
    about = _ABOUT.format(rules=_RULES[mode])
    return "\n\n".join(["# Tables in the layout of SEESAW-CF", about, *[table.markdown() for table in tables]]) + "\n"


def tables_csv(tables: Sequence[Table]) -> pd.DataFrame:
    """Return every cell of every table, a row each; blank ones are left out."""
    frames = []
    for table in tables:
        number, _, about = table.title.removeprefix("Table ").partition(": ")
        cells = table.frame[table.frame["n"] + table.frame["papers"].notna() > 0]
        named = cells.assign(table=int(number), about=about, row=cells["row"].map(" / ".join))
        frames.append(named[["table", "about", "row", "column", "value", "low", "high", "n", "papers"]])
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
