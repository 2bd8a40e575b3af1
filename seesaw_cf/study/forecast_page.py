"""The plan of a study in words and as tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from seesaw_cf.base.files import csv_text, size, write_text
from seesaw_cf.base.terminal import wrap
from seesaw_cf.report.table import Column, Row, Table, word_column
from seesaw_cf.study.forecast import Forecast, plan_folder

_SIZES = """For a contrast as large as the declared margin: a group of middle size with all others, two-sided level over
all tests of an editor (Holm's first step over axes, relations and holders of either answer), power 80 %. Edits are of
one relation; where fewer are there than needed, an effect of that size will more likely stay undetermined."""
_NOBODY = "No prompt about other people with tags: how many edits a contrast needs cannot be said."
_COSTS = "Of each cell, its controls included; hours of open cells at the measured rate."
_COUNTED = ("edits", "prompts", "tokens", "editing", "texts")
_SUMMED = (*_COUNTED, "flops", "disk", "hours")


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
    files = {"costs.csv": pd.DataFrame(map(asdict, plan.costs))} | (
        {"sizes.csv": plan.sizes} if len(plan.sizes) else {}
    )
    for name, frame in files.items():
        write_text(folder / name, csv_text(frame))
    rates = "\n".join(wrap(f"{rate}.") for rate in plan.rates)
    notes = "\n".join(map(wrap, plan.notes))
    written = f"Written to {folder}: {', '.join(files)}."
    return "\n\n".join([_sizes(plan.sizes).terminal(), _costs(plan).terminal(), rates, notes, written])


def _sizes(sizes: pd.DataFrame) -> Table:
    columns = [
        *(word_column(name) for name in ("records", "axis", "group")),
        Column("share", lambda row: f"{row['share']:.1%}"),
        Column("tests"),
        Column("edits needed", _count("edits_needed")),
        Column(
            "edits there", lambda row: " to ".join(f"{n:,}" for n in sorted({row["edits_there"], row["most_edits"]}))
        ),
        Column("people needed", _count("people_needed")),
        Column("people there", _count("people_there")),
    ]
    spread = [f"Spread of effects: {', '.join(dict.fromkeys(sizes['spread']))}."] if len(sizes) else []
    return Table("sizes", "Edits and people", _SIZES if len(sizes) else _NOBODY, columns, sizes, lines=spread)


def _count(name: str) -> Callable[[Row], str]:
    return lambda row: "not reached" if pd.isna(row[name]) else f"{row[name]:,.0f}"


def _costs(plan: Forecast) -> Table:
    """Return what each cell costs, named by what tells it apart, and all open cells: sums, and the largest memory."""
    parts = [cost.cell.split("/") for cost in plan.costs]
    places = [place for place in range(4) if len({part[place] for part in parts}) > 1] or [3]
    names = ["/".join(part[place] for place in places) for part in parts]
    rows = [asdict(cost) | {"cell": name} for name, cost in zip(names, plan.costs)]
    pending = [row for row in rows if row["state"] != "finished"]
    if len(pending) > 1:
        total = {name: sum(row[name] for row in pending) for name in _SUMMED}
        total |= {"cell": "all open cells", "state": "open", "memory": max(row["memory"] for row in pending)}
        rows.append(total)
    columns = [
        word_column("cell"),
        *(Column(name, _count(name)) for name in _COUNTED),
        Column("FLOP", lambda row: f"{row['flops']:.2g}"),
        Column("memory", lambda row: size(row["memory"])),
        Column("disk", lambda row: size(row["disk"])),
        Column("hours", lambda row: "done" if row["state"] == "finished" else f"{row['hours']:.2g}"),
    ]
    return Table("costs", "Costs", _COSTS, columns, pd.DataFrame(rows))
