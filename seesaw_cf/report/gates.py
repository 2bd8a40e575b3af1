"""What must hold before a finding means much: edits that work, are local and were made, and scores that exist."""

from __future__ import annotations

import pandas as pd

from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.locality import LEAST_LOCAL
from seesaw_cf.report.pairs import Run
from seesaw_cf.report.sentences import efficacy_rows
from seesaw_cf.report.words import percent

_WORKED, _SCORED = 0.5, 0.95


def gates(frame: pd.DataFrame, run: Run) -> list[tuple[bool, str]]:
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
