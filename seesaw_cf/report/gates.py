"""What must hold before a finding means much, and what would decide more: times the edits or the people."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.answers import LEAST_LOCAL
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.means import ALL, CHANGES, UNKNOWN, mask, members
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.sentences import contrasts_of, efficacy_rows
from seesaw_cf.report.words import percent
from seesaw_cf.stats.clustered import FEW_EDITS
from seesaw_cf.stats.verdicts import Precision, contrast_precision

POWER = 0.8
_HOLDS = {"old": "target_true", "new": "target_new"}
_WORKED, _SCORED = 0.5, 0.95


def gates(frame: pd.DataFrame, run: RunResult) -> list[tuple[bool, str]]:
    """Return whether each condition holds, and the sentence with the number behind it."""
    checks = []
    for editor, _, after in efficacy_rows(frame, run):
        if editor in run.changed:  # the facts it was edited for are all of its facts, no sample
            continue
        low, high = percent(after["low"]), percent(after["high"])
        words = (
            f"{editor}: the new answer is the likelier one after {percent(after['value'])} [{low}, {high}] of edits."
        )
        checks.append((bool(after["low"] > _WORKED), words))
    for editor, local in run.local.items():
        if not is_control(editor):
            words = f"{editor}: {local.others} right {percent(local.before)} before, {percent(local.after)} after; "
            words += (
                f"{percent(local.local.value)} of {local.local.n} edits leave at least {LEAST_LOCAL:.0%} of them right."
            )
            checks.append((not local.collapsed, words))
    if not run.asked_only:
        failed = int((run.distinct["status"] != "ok").sum())
        checks.append(
            (not failed, f"{failed:,} of {len(run.distinct):,} edits were refused, changed nothing or are not finite.")
        )
    share = 1 - int(run.unscored["n_rows"].sum()) / max(1, run.n_rows)
    checks.append((share >= _SCORED, f"{percent(share)} of {run.n_rows:,} scores exist."))
    if run.protocol == "batch":
        checks.append(
            (False, "Edits of a relation were made together, so that they are one edit and nothing is tested.")
        )
    return checks


# What would decide more, from the run's own variance components.


def needed(frame: pd.DataFrame, run: RunResult, settings: AuditSettings) -> pd.DataFrame:
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


def _precisions(run: RunResult, editor: str, answer: str, rows: pd.DataFrame) -> Iterator[Precision]:
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


def plan_sentence(frame: pd.DataFrame, run: RunResult, settings: AuditSettings) -> str:
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
