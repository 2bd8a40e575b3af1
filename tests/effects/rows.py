"""Score tables made by hand, and the means of `seesaw_cf.effects.means` as a table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.tables import SCORES
from seesaw_cf.effects.means import ALL, AXES, CLUSTERS, group_means

DEFAULTS: dict[str, Any] = {
    "editor": "memit",
    "case_id": 1,
    "edit_relation": "P27",
    "effect_relation": "P27",
    "kind": "cross_subject",
    "prompt_id": 0,
    "template_id": "P27-cloze-01",
    "prompt": "Ann is a citizen of",
    "subject_id": "Q1",
    "subject": "Ann",
    "gender": [],
    "race": [],
    "region": [],
    "holds": "target_new",
    "target": "Japan",
    "role": "target_new",
    "gold": False,
    "phase": "pre",
    "logprob": -1.0,
    "n_tokens": 1,
    "greedy": False,
    "status": "ok",
}


def table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """A score table from rows that leave most columns to `DEFAULTS`."""
    return pa.Table.from_pylist([DEFAULTS | row for row in rows], schema=SCORES)


def four(pre_new: float, pre_true: float, post_new: float, post_true: float, **rest: Any) -> list[dict[str, Any]]:
    """The four rows of one prompt."""
    return [
        rest | {"phase": phase, "role": role, "target": target, "logprob": value}
        for phase, role, target, value in (
            ("pre", "target_new", "Japan", pre_new),
            ("pre", "target_true", "France", pre_true),
            ("post", "target_new", "Japan", post_new),
            ("post", "target_true", "France", post_true),
        )
    ]


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
