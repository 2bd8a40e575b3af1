"""The form of answers: how many are none, and whether one answer is given to nearly every item."""

from __future__ import annotations

import pandas as pd

from seesaw_cf.logs.pairing import BASE, CHANGED, PairedItems
from seesaw_cf.stats import mcnemar

ALARM = 0.1
"""A change of the share of invalid answers from which the form of answers is named before any score."""
_ALARM_P = 0.01
_SAME = 0.95  # one answer to so many items is no answer to any of them
_FEWEST = 20  # items


def answer_forms(pairs: PairedItems) -> pd.DataFrame:
    """Return one row per task with answers.

    Returns:
        `task`, `n`; `invalid_before`, `invalid_after` (shares without an answer); `common_before`, `common_after` (the
        most frequent answer) with their `share_before`, `share_after`; `other_answer` (share that is another one after
        the change); `alarm` (whether the form changed), `constant_before`, `constant_after` (whether nearly every item
        has one answer).
    """
    rows = [_form(str(task), own) for task, own in pairs.frame.groupby("task", observed=True, sort=False)]
    columns = ("task", "n", "alarm", "constant_before", "constant_after", "invalid_before", "invalid_after")
    return pd.DataFrame([row for row in rows if row] or {name: [] for name in columns})


def _form(task: str, frame: pd.DataFrame) -> dict[str, object]:
    answers = {side: frame[f"answer/{side}"].astype("str").fillna("") for side in (BASE, CHANGED)}
    invalid = {side: frame[f"invalid/{side}"].to_numpy(float) > 0.5 for side in (BASE, CHANGED)}
    if not any((answer != "").any() for answer in answers.values()):
        return {}
    row: dict[str, object] = {"task": task, "n": len(frame)}
    for side, when in ((BASE, "before"), (CHANGED, "after")):
        counts, none = answers[side].value_counts(), float(invalid[side].mean())
        share = float(counts.iloc[0]) / len(frame)
        row |= {f"invalid_{when}": none, f"common_{when}": str(counts.index[0]), f"share_{when}": share}
        row[f"constant_{when}"] = share >= _SAME and len(frame) >= _FEWEST and none < _SAME
    row["other_answer"] = float((answers[BASE] != answers[CHANGED]).mean())
    more, fewer = invalid[CHANGED] & ~invalid[BASE], invalid[BASE] & ~invalid[CHANGED]
    difference = abs(float(more.mean()) - float(fewer.mean()))
    row["alarm"] = difference >= ALARM and mcnemar(int(more.sum()), int(fewer.sum())) < _ALARM_P
    return row
