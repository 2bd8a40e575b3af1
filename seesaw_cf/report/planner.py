"""What would decide more: how many times the edits or the people, from the run's own variance components."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.groups import ALL, UNKNOWN, mask, members
from seesaw_cf.effects.means import CHANGES
from seesaw_cf.report.pairs import Run
from seesaw_cf.report.sentences import contrasts_of
from seesaw_cf.stats.clustered import FEW_EDITS
from seesaw_cf.stats.planning import Precision, contrast_precision

POWER = 0.8
_HOLDS = {"old": "target_true", "new": "target_new"}


def needed(frame: pd.DataFrame, run: Run, settings: AuditSettings) -> pd.DataFrame:
    """Return what each undecided contrast, pooled over relations, takes to find an effect as large as the margin.

    Returns:
        Rows of the frame with `edits_times` and `people_times` (with as many of the other), and `both_edits_times` and
        `both_people_times`, the fewest prompts; infinite where no number is enough.
    """
    own = contrasts_of(frame, run)
    own = own[(own["stderr"].astype(float) > 0) & (own["verdict"] == "undecided") & (own["relation"] == ALL)]
    found = [
        (index, precision.factors(row["margin"], settings.alpha / max(1.0, row["tests"]), POWER))
        for (editor, answer), rows in own.groupby(["editor", "true_answer"], sort=False)
        for (index, row), precision in zip(
            rows.iterrows(), _precisions(run, str(editor), str(answer), rows), strict=True
        )
    ]
    table = pd.DataFrame(
        [(edits, people, *both) for _, (edits, people, both) in found],
        index=[index for index, _ in found],
        columns=["edits_times", "people_times", "both_edits_times", "both_people_times"],
    )
    return own.join(table)


def _precisions(run: Run, editor: str, answer: str, rows: pd.DataFrame) -> Iterator[Precision]:
    """Yield the variance of each contrast of an editor, divided among edits and people as in all of them."""
    people = run.people
    if people is None:
        return
    asked = people[(people["editor"] == editor) & (people["holds"] == _HOLDS[answer]) & (people["status"] == "ok")]
    edit, person = (pd.factorize(asked[name])[0] for name in ("case_id", "person"))
    found = []
    for _, row in rows.iterrows():
        groups = {group: mask(len(asked), at) for group, at in members(asked[row["axis"]]).items()}
        own = groups[row["group"]]
        other = ~own & ~groups.get(UNKNOWN, np.zeros(len(asked), bool))
        both = np.logical_and(*(np.bincount(edit[side], minlength=edit.max() + 1) > 0 for side in (own, other)))
        used = (own | other) & both[edit]
        values = asked[CHANGES[row["scale"]]].to_numpy(np.float64)[used]
        effective = (row["effective_edits"], row["effective_people"])
        found.append(contrast_precision(values, edit[used], person[used], own[used], row["stderr"], effective))
    parts = np.array([(one.edits, one.people, one.both) for one in found])
    edits, people_, both_ = parts.sum(axis=0) / parts.sum()
    for one in found:
        shares = {"edits": edits * one.variance, "people": people_ * one.variance, "both": both_ * one.variance}
        yield replace(one, **shares)


def plan_sentence(frame: pd.DataFrame, run: Run, settings: AuditSettings) -> str:
    """Return what would decide half of the undecided contrasts of groups; "" where nothing is undecided."""
    rows = needed(frame, run, settings)
    times = (rows["both_edits_times"] * rows["both_people_times"]).astype(float)
    rows = rows.assign(times=times)[np.isfinite(times)].sort_values("times", kind="stable")
    if rows.empty:
        return ""
    row = rows.iloc[(len(rows) - 1) // 2]
    edits, people = row["edits_times"], row["people_times"]
    if row["times"] <= 1:
        few = f" To call groups equal takes {FEW_EDITS} {run.noun}s." if row["n_edits"] < FEW_EDITS else ""
        return few.strip()
    alone = ((edits, f"{run.noun}s"), (people, "people"))
    ways = [f"{_times(value)} times the {what}" for value, what in alone if math.isfinite(value)]
    if not ways:
        both = (row["both_edits_times"], row["both_people_times"])
        ways = [" and ".join(f"{_times(value)} times the {what}" for value, (_, what) in zip(both, alone))]
    return f"To say more about groups, ask {' or '.join(ways)}."


def _times(value: float) -> str:
    return f"{float(format(value, '.2g')):,g}"
