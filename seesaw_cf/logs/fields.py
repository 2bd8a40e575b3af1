"""Groups and clusters of items: fields that benchmarks are known by, named columns, or a mapping file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from seesaw_cf.base.errors import RecordError
from seesaw_cf.logs.log import EvalLog
from seesaw_cf.logs.tables_log import item_column, read_table_file

KNOWN_GROUPS = (
    *("category", "context_condition", "question_polarity"),  # BBQ
    *("bias_type", "stereo_antistereo"),  # CrowS-Pairs, StereoSet
    *("condition", "gender", "race", "religion", "region", "nationality"),  # WinoBias, Winogender and others
)
"""Fields of documents that are groups unless others are named."""
KNOWN_CLUSTERS = (("cluster",), ("pair_id",), ("category", "question_index"), ("occupation", "participant"))
"""Fields that together name what items share: a story (BBQ), a sentence in several forms. The first that are there."""


def wanted_fields(groups: Sequence[str], clusters: Sequence[str]) -> tuple[str, ...]:
    """Return the fields that readers keep."""
    known = [name for names in KNOWN_CLUSTERS for name in names]
    return tuple(dict.fromkeys([*groups, *KNOWN_GROUPS, *(clusters or known)]))


def check_fields(log: EvalLog, groups: Sequence[str], clusters: Sequence[str]) -> None:
    """Refuse fields that no item has.

    Raises:
        RecordError: Names one, and the fields there are.
    """
    for option, names in (("group", groups), ("cluster", clusters)):
        if missing := [name for name in names if name not in log.fields]:
            fields = ", ".join(sorted({*log.known, *log.fields})[:40]) or "none"
            raise RecordError(
                f"compare: no item of {log.name} has the {option} field {missing[0]!r}; fields are {fields}. Name one "
                "of them, or give it with --mapping FILE."
            )


def add_mapping(log: EvalLog, file: Path) -> EvalLog:
    """Return a log with the columns of a table as fields, joined by item, and by task where the table has one.

    Raises:
        RecordError: The table names an item twice, or none of the log's items.
    """
    table = read_table_file(file)
    key = item_column(file, table)
    table = table.astype(dict.fromkeys([key, *(["task"] if "task" in table else [])], "str"))
    keys = ["task", "item"] if "task" in table else ["item"]
    table = table.rename(columns={key: "item"})
    names = [str(name) for name in table if name not in (*keys, "task")]
    if table.duplicated(keys).any():
        row = table.loc[table.duplicated(keys), keys].iloc[0].tolist()
        raise RecordError(f"{file}: two rows of {' '.join(map(str, row))}, expected one row per item. Remove one.")
    table = table[[*keys, *names]].rename(columns={name: f"field:{name}" for name in names})
    items = log.items.drop(columns=[f"field:{name}" for name in names], errors="ignore").astype({"task": "str"})
    joined = items.merge(table, on=keys, how="left")
    if joined[[f"field:{name}" for name in names]].isna().all(axis=None):
        raise RecordError(
            f"{file}: none of its items is in the log of {log.name}, which has such as {log.items['item'].iloc[0]!r}. "
            "Name items as the log does."
        )
    kinds = {f"field:{name}": "str" for name in names}
    joined = joined.astype(kinds).astype(dict.fromkeys(["task", *kinds], "category"))
    return replace(log, items=joined, fields=tuple(dict.fromkeys([*log.fields, *names])))


def cluster_codes(frame: pd.DataFrame, clusters: Sequence[str]) -> tuple[dict[str, np.ndarray], str]:
    """Return the clusters of items by dimension, and in words what they are.

    Args:
        frame: Items with columns "field:NAME", `case`, `content`, `task` and `item`.
        clusters: Fields, each of which is a dimension; () = the first of `KNOWN_CLUSTERS` that an item has.

    Returns:
        Dimension -> (n,) codes. Items without a value are clusters alone.
    """
    alone = _alone(frame)
    if clusters:
        codes = {name: pd.factorize(_labels(frame, (name,), alone))[0] for name in clusters}
        return codes, " and ".join(clusters)
    labels, used = alone, list[str]()
    for names in KNOWN_CLUSTERS[::-1]:
        if all(f"field:{name}" in frame for name in names):
            labels = _labels(frame, names, labels)
            used.insert(0, "/".join(names))
    kinds = set(labels.str.partition("\x1f")[0])
    return {"cluster": pd.factorize(labels)[0]}, ", ".join(name for name in used if name in kinds)


def _alone(frame: pd.DataFrame) -> pd.Series:
    """Return what an item shares with nothing but the same document in other tasks."""
    name = frame["task"].astype("str") + "\x1f" + frame["item"].astype("str")
    return name.where(frame["case"] == 0, frame["case"].astype("str"))


def _labels(frame: pd.DataFrame, names: Sequence[str], otherwise: pd.Series) -> pd.Series:
    """Return the values of fields as one text, where all are there: the same in every task."""
    columns = [frame[f"field:{name}"] for name in names]
    there = pd.concat([column.notna() & (column != "") for column in columns], axis=1).all(axis=1)
    text = columns[0].astype("str")
    for column in columns[1:]:
        text = text + "/" + column.astype("str")
    return otherwise.where(~there, "/".join(names) + "\x1f" + text)
