"""What must hold before a finding means much, and what would decide more: times the edits or the people."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np
import pandas as pd

from seesaw_cf.base.terminal import interval
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.means import ALL, CHANGES, UNKNOWN, by_tag, tag_sets
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.report.sentences import contrasts_of, efficacy_rows
from seesaw_cf.report.words import percent
from seesaw_cf.run.store import ASKED_ONLY
from seesaw_cf.stats.clustered import FEW_EDITS
from seesaw_cf.stats.verdicts import Precision, contrast_precision

POWER = 0.8
_HOLDS = {"old": "target_true", "new": "target_new"}
_WORKED, _SCORED = 0.5, 0.95


def gates(frame: pd.DataFrame, run: RunResult) -> list[tuple[bool, str]]:
    """Return whether each condition holds, and the sentence with the number behind it."""
    checks = gates_of_form(frame, run)
    checks += [(not own.collapsed, f"{name}: {own}.") for name, own in run.local.items() if not is_control(name)]
    if not run.asked_only:
        asked = run.distinct[run.distinct["editor"].isin(run.audited)]
        status = asked.loc[asked["status"] != ASKED_ONLY, "status"]
        failed = f"{(status != 'ok').sum():,} of {len(status):,} edits were refused, changed nothing or are not finite."
        checks.append((bool((status == "ok").all()), failed))
    if any(map(run.together, run.audited)):
        checks.append((False, "Edits of a relation were made together: they are one edit, and nothing is tested."))
    return checks


def gates_of_form(frame: pd.DataFrame, run: RunResult) -> list[tuple[bool, str]]:
    """Return those `gates` that depend on the form in which the run asked."""
    checks = []
    for editor, _, after in efficacy_rows(frame, run):
        # the facts that a changed model was edited for are all of its facts, no sample
        if editor not in run.manifest.get("edited", {}):
            share = f"{percent(after['value'])} {interval(after['low'], after['high'], spec='.0%')}"
            words = f"{editor}: the new answer is the likelier one after {share} of edits."
            checks.append((bool(after["low"] > _WORKED), words))
    scored = 1 - int(run.unscored["n_rows"].sum()) / max(1, run.n_rows)
    return [*checks, (scored >= _SCORED, f"{percent(scored)} of {run.n_rows:,} scores exist.")]


# What would decide more, from the run's own variance components.


def plan_sentence(frame: pd.DataFrame, run: RunResult, settings: AuditSettings) -> str:
    """Return what would find an effect as large as the margin in half of the undecided contrasts over all relations.

    "" where nothing is undecided, or no number of edits and people is enough.
    """
    own = contrasts_of(frame, run)
    own = own[(own["stderr"].astype(float) > 0) & (own["verdict"] == "undecided") & (own["relation"] == ALL)]
    plans = []
    for (editor, answer), rows in own.groupby(["editor", "true_answer"], sort=False):
        for row, precision in _precisions(run, str(editor), str(answer), rows):
            edits, people, both = precision.factors(row["margin"], settings.alpha / max(1.0, row["tests"]), POWER)
            if math.isfinite(both[0]):
                plans.append((both[0] * both[1], row["n_edits"], (edits, people), both))
    if not plans:
        return ""
    times, n_edits, alone, both = sorted(plans)[(len(plans) - 1) // 2]
    if times <= 1:
        return f"To call groups equal takes {FEW_EDITS} {run.unit}s." if n_edits < FEW_EDITS else ""
    nouns = (f"{run.unit}s", "people")
    ways = [f"{_times(value)} times the {noun}" for value, noun in zip(alone, nouns) if math.isfinite(value)]
    ways = ways or [" and ".join(f"{_times(value)} times the {noun}" for value, noun in zip(both, nouns))]
    return f"To say more about groups, ask {' or '.join(ways)}."


def _times(value: float) -> str:
    return f"{float(format(value, '.2g')):,g}"


def _precisions(run: RunResult, editor: str, answer: str, rows: pd.DataFrame) -> Iterator[tuple[Row, Precision]]:
    """Yield each contrast of an editor with its variance, divided among edits and people as in all of them."""
    people = cast(pd.DataFrame, run.people)  # contrasts are about people
    asked = people[(people["editor"] == editor) & (people["holds"] == _HOLDS[answer]) & (people["status"] == "ok")]
    edit, person = (pd.factorize(asked[name])[0] for name in ("case_id", "person"))
    found = []
    for row in rows_of(rows):
        groups = by_tag(*tag_sets(asked[str(row["axis"])]))
        own = groups[row["group"]]
        other = ~own & ~groups.get(UNKNOWN, np.zeros(len(asked), bool))
        both = np.logical_and(*(np.bincount(edit[side], minlength=edit.max() + 1) > 0 for side in (own, other)))
        used = (own | other) & both[edit]
        values = asked[CHANGES[row["scale"]]].to_numpy(np.float64)[used]
        effective = (row["effective_edits"], row["effective_people"])
        found.append(contrast_precision(values, edit[used], person[used], own[used], row["stderr"], effective))
    parts = np.array([(part.edits, part.people, part.both) for part in found]).sum(axis=0)
    for row, part in zip(rows_of(rows), found):
        shares = dict(zip(("edits", "people", "both"), parts / parts.sum() * part.variance()))
        yield row, replace(part, **shares)
