"""The order of rows in the tables of a run: editors as they ran, relations and groups as the papers list them."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from seesaw_cf.report.results import Results, sort_groups, sort_pairs, sort_relations
from seesaw_cf.report.table import Row, rows_of


def in_run_order(results: Results, frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows by editor as they ran, relation as the papers list them, axis, and group."""
    editors, relations = results.editors, sort_relations(frame["relation"])
    axes = list(dict.fromkeys(frame.get("axis", ())))
    groups = {axis: sort_groups(axis, frame.loc[frame["axis"] == axis, "group"]) for axis in axes}

    def key(row: Row) -> tuple[int, ...]:
        place = (editors.index(row["editor"]), relations.index(row["relation"]))
        return (*place, axes.index(row["axis"]), groups[row["axis"]].index(row["group"])) if axes else place

    return sort_rows(frame, key)


def by_pair(results: Results, frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows by editor as they ran, and by pair of relations as the papers list them."""
    pairs = sort_pairs(zip(frame["edit_relation"], frame["effect_relation"], strict=True))
    return sort_rows(
        frame,
        lambda row: (results.editors.index(row["editor"]), pairs.index((row["edit_relation"], row["effect_relation"]))),
    )


def sort_rows(frame: pd.DataFrame, key: Callable[[Row], tuple[int, ...]]) -> pd.DataFrame:
    """Return rows by a key, with a new index."""
    keys = [key(row) for row in rows_of(frame)]
    return frame.iloc[sorted(range(len(frame)), key=keys.__getitem__)].reset_index(drop=True)
