"""The means of `seesaw_cf.effects.means` as a table with a row for each editor, relation and group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from seesaw_cf.effects.means import ALL, AXES, CLUSTERS, group_means

_NUMBERS = ("low", "high", "stderr", "p", "df")


def estimate_groups(
    prompts: pd.DataFrame,
    *,
    axes: Sequence[str] = AXES,
    holds: str = "target_new",
    clusters: Mapping[str, str] = CLUSTERS,
) -> pd.DataFrame:
    """Return the fields of D's estimate, and those of the other scales under names of their own."""
    rows = []
    for names, changes, *_ in group_means(prompts, axes=axes, holds=holds, clusters=clusters):
        if names["relation"] == ALL:
            continue
        row: dict[str, Any] = names | asdict(changes["probability"])
        for name, scale in (("log_odds", "log-odds"), ("share", "share")):
            row |= {name: changes[scale].value} | changes[scale].columns(*_NUMBERS, prefix=f"{name}_")
        rows.append(row)
    return pd.DataFrame(rows)
