"""Edits and people that a study needs to find effects as large as its declared margin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from seesaw_cf.effects.groups import AXES, UNKNOWN, members
from seesaw_cf.effects.planning import run_components
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.stats import Components, Design, plan
from seesaw_cf.study.cells import cells_of, is_finished
from seesaw_cf.study.declared import Study
from seesaw_cf.types import Case

_GROUP = 5  # people; a smaller group is not planned for


def sizes_of(records: str, cases: Sequence[Case], study: Study, out: Path) -> Iterator[dict[str, object]]:
    """How many edits of one relation and people the declared margin needs, per axis, and how many there are.

    Args:
        records: The name of the record set.
        cases: Its cases.
        study: What was declared.
        out: The study's folder; a finished cell there gives the spread of effects.

    Yields:
        Rows, one for each axis on which two groups have five people.
    """
    held = [(case, p) for case in cases for p in case.attribute_prompts if p.holds == "target_new"]
    if not held:
        return
    people = {(p.subject.id or p.subject.label): p for _, p in held}
    pairs = {(case.case_id, p.subject.id or p.subject.label) for case, p in held}
    edits = len({case.case_id for case, _ in held})
    relations = pd.Series([case.request.relation_id for case in cases if case.attribute_prompts]).value_counts()
    per_edit, per_person = max(1, round(len(pairs) / edits)), max(1.0, len(pairs) / len(people))
    for axis in AXES:
        tags = members([getattr(p, axis) for p in people.values()])
        groups = {name: len(rows) for name, rows in tags.items() if name != UNKNOWN and len(rows) >= _GROUP}
        if len(groups) < 2:
            continue
        group = sorted(groups, key=lambda name: (groups[name], name))[(len(groups) - 1) // 2]
        share = groups[group] / len(people)
        spread, source = _spread(records, axis, group, study, out)
        design, declared = Design(per_edit, per_person, share), study.audit
        need = plan(declared.margin, spread, design, tests=len(groups), alpha=declared.alpha)
        yield {
            "records": records,
            "axis": axis,
            "group": group,
            "share": share,
            "tests": len(groups),
            "edits_needed": need.edits if need.reachable else None,
            "people_needed": need.people if need.reachable else None,
            "edits_there": int(relations.min()),
            "most_edits": int(relations.max()),
            "people_there": len(people),
            "spread": source,
        }


def _spread(records: str, axis: str, group: str, study: Study, out: Path) -> tuple[Components, str]:
    """Standard deviations from the first finished cell on these records that has enough; else the simulation's."""
    for cell in cells_of(study):
        if cell.parts[1] == records and cell.parts[2] == "single" and is_finished(cell, out):
            try:
                return run_components(cell.folder(out), axis=axis, group=group)[0], cell.name
            except (RecordError, UnknownNameError):
                continue
    return Components(), "the simulation's"
