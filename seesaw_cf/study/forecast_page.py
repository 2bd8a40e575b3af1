"""The plan of a study in words and as a table."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd

from seesaw_cf.base.files import csv_text, write_text
from seesaw_cf.base.terminal import column_table, wrap
from seesaw_cf.run.preflight import size
from seesaw_cf.study.forecast import Cost, Forecast, plan_folder

_SIZES = """EDITS AND PEOPLE for a contrast as large as the declared margin: a group of middle size with all others,
two-sided level over the groups of its axis (Holm's first step), power 80 %. Edits are of one relation; where fewer are
there than needed, an effect of that size will more likely stay undetermined."""
_COSTS = """COSTS of each cell, its controls included; hours of open cells at the measured rate."""
_SPREAD = "Spread of effects: {}."


def write_forecast(plan: Forecast, out: Path) -> str:
    """Write `costs.csv` and `sizes.csv` into the folder `OUT-plan`.

    Args:
        plan: The plan.
        out: The study's folder, which need not be there.

    Returns:
        What a terminal shows.

    Raises:
        StorageError: A file could not be written.
    """
    folder = plan_folder(out)
    write_text(folder / "costs.csv", csv_text(pd.DataFrame([asdict(cost) for cost in plan.costs])))
    parts = []
    if len(plan.sizes):
        write_text(folder / "sizes.csv", csv_text(plan.sizes))
        sources = ", ".join(dict.fromkeys(plan.sizes["spread"]))
        parts.append(f"{wrap(_SIZES)}\n{_sizes(plan.sizes)}\n{wrap(_SPREAD.format(sources))}")
    else:
        parts.append(wrap("No prompt about other people with tags: how many edits a contrast needs cannot be said."))
    parts.append(f"{wrap(_COSTS)}\n{_costs(plan)}")
    parts.append("\n".join(wrap(str(rate) + ".") for rate in plan.rates))
    parts.append("\n".join(map(wrap, plan.notes)))
    return "\n\n".join([*parts, f"Written to {folder}: costs.csv{', sizes.csv' if len(plan.sizes) else ''}."])


def _sizes(sizes: pd.DataFrame) -> str:
    heads = ("records", "axis", "group", "share", "tests", "edits needed", "there", "people needed", "there")
    rows = []
    for row in sizes.astype(object).where(sizes.notna(), None).to_dict("records"):
        needed = [f"{row[name]:,.0f}" if row[name] is not None else "not reached" for name in _NEEDED]
        most = f" to {row['most_edits']:,}" if row["most_edits"] > row["edits_there"] else ""
        there = f"{row['edits_there']:,}{most}"
        people = f"{row['people_there']:,}"
        names = [row["records"], row["axis"], row["group"], f"{row['share']:.1%}", row["tests"]]
        rows.append([*names, needed[0], there, needed[1], people])
    return column_table(heads, rows, left=3)


_NEEDED = ("edits_needed", "people_needed")


def _costs(plan: Forecast) -> str:
    parts = [cost.cell.split("/") for cost in plan.costs]
    places = [place for place in range(4) if len({part[place] for part in parts}) > 1] or [3]
    names = ["/".join(part[place] for place in places) for part in parts]
    open_ones = [cost for cost in plan.costs if cost.state != "finished"]
    rows = [[name, *_row(cost)] for name, cost in zip(names, plan.costs)]
    if len(open_ones) > 1:
        rows.append(["all open cells", *_row(_total(open_ones))])
    heads = ("cell", "edits", "prompts", "tokens", "editing", "texts", "FLOP", "memory", "disk", "hours")
    return column_table(heads, rows)


def _total(costs: list[Cost]) -> Cost:
    """All open cells: sums, and the largest memory."""
    summed = {name: sum(getattr(cost, name) for cost in costs) for name in _SUMMED}
    return replace(costs[0], memory=max(cost.memory for cost in costs), **summed)


_SUMMED = ("edits", "prompts", "tokens", "editing", "texts", "flops", "disk", "hours")


def _row(cost: Cost) -> list[str]:
    counts = [f"{getattr(cost, name):,}" for name in ("edits", "prompts", "tokens", "editing", "texts")]
    hours = "done" if cost.state == "finished" else f"{cost.hours:.2g}"
    return [*counts, f"{cost.flops:.2g}", size(cost.memory), size(cost.disk), hours]
