"""Contrasts between groups as forest plots of a page: difference, interval, margin and verdict of every one tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pandas as pd

from seesaw_cf.base.terminal import quantity
from seesaw_cf.effects.groups import ALL
from seesaw_cf.report import text
from seesaw_cf.report.html.forest import Axis, ForestColumn, ForestRow, Mark, Panel
from seesaw_cf.report.page_cases import cell_link
from seesaw_cf.report.page_forest import lines_of
from seesaw_cf.report.results import HOLDER, Results, relation_name, sort_groups, sort_relations
from seesaw_cf.report.rows import VerdictRow, records

_ABOUT = (
    "change of confidence in the new answer, group minus reference within the same edits; 95 % intervals, each alone; "
    "dashed: margin"
)


def contrast_panels(results: Results, colours: Mapping[str, int]) -> list[Panel]:
    """Return a panel for each axis and scale with the contrasts of edits that were tested, pooled relations first.

    Args:
        results: What the run found.
        colours: Of the editors that are shown.
    """
    audit = results.audit
    if audit is None or "verdict" not in audit.verdicts:
        return []
    own = audit.contrasts[audit.contrasts["editor"].isin(colours) & audit.contrasts["p"].notna()]
    return list(_panels(own, results, colours))


def _panels(own: pd.DataFrame, results: Results, colours: Mapping[str, int]) -> Iterator[Panel]:
    assert results.audit is not None
    order = [ALL, *(name for name in sort_relations(own["relation"]) if name != ALL)]
    for number, ((by, scale), rows) in enumerate(own.groupby(["axis", "scale"], sort=False)):
        groups = sort_groups(str(by), rows["group"])
        rows = rows.assign(at=rows["relation"].map(order.index), place=rows["group"].map(groups.index))
        rows = rows.sort_values(["at", "place"], kind="stable")
        axis = Axis.around(rows["value"], [*rows["low"], *rows["high"]])
        limits = lines_of(scale, [results.floor], results.audit.settings)  # type: ignore[arg-type]
        column = ForestColumn.marked("difference between groups", axis, *limits)
        lines = [_row(row, axis, colours, results.words) for row in records(rows, VerdictRow)]
        heads = ("contrast: verdict", "difference")
        yield Panel(f"By {by}, {scale}", results.words(_ABOUT), heads, [column], str(scale), lines, not number)


def _row(row: VerdictRow, axis: Axis, colours: Mapping[str, int], words: Callable[[str], str]) -> ForestRow:
    about = "all properties" if row["relation"] == ALL else relation_name(row["relation"])
    names = [f"{row['group']} − {row['reference']}", about, *([row["editor"]] if len(colours) > 1 else [])]
    holds = str(row.get("holds", HOLDER))
    names += [words(f"hold the {text.HOLDS[holds]}")] if holds != HOLDER else []
    size = text.minus(text.effect(row["value"], row["low"], row["high"]))
    edits, people = (row["clusters"].get(name, 0) for name in ("edit", "person"))
    counts = words(quantity(edits, "edit")) + f", {quantity(people, 'person', 'people')}"
    mark = Mark(axis.at(row["value"]), axis.span(row["low"], row["high"]), colours[row["editor"]], f"{size}; {counts}")
    cell = (row["editor"], row["relation"], holds, row["axis"], row["group"])
    return ForestRow(f"{' · '.join(names)}: {row['verdict']}", size, [mark], cell_link(cell))
