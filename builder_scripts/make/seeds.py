"""Edits out of files: CounterFact, the released `_eff`, SEESAW-CF and zsRE records.

The files name their subjects, they do not identify them. A subject is linked to the human of that name who holds the
old value, or who has most sitelinks; names of things other than humans, and relations that are not one of the five,
make no edit. Both are counted. For zsRE see `seesaw_cf.builder_scripts.make.zsre`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Case
from seesaw_cf.builder_scripts.make.edits import Edit
from seesaw_cf.builder_scripts.make.zsre import rewrites
from seesaw_cf.builder_scripts.source.people import Facts, RecordedPerson
from seesaw_cf.records.arrow import read_cases
from seesaw_cf.records.relations import RELATIONS


def read_seeds(paths: Iterable[str | os.PathLike[str]]) -> list[Case]:
    """Read the records of edit files, in their order.

    Raises:
        StorageError: A file is missing.
        RecordError: A file is damaged or malformed, or two records share a case_id.
    """
    cases: dict[tuple[bool, int], Case] = {}
    for path in paths:
        for case in read_cases(path):
            key = (case.record_format == "zsre", case.case_id)  # zsRE records have no numbers but their places
            if key in cases:
                raise RecordError(
                    f"{path}: case_id {case.case_id} is in another edits file too, expected every edit to have its "
                    "own. Renumber one of the files."
                )
            cases[key] = case
    return list(cases.values())


def _unusable(case: Case) -> str:
    """Return why a record can make no edit; "" when it can."""
    request = case.request
    if request.relation_id not in RELATIONS:
        return f"relation {request.relation_id or 'not given'}"
    lacking = [name for name in ("target_new", "target_true") if not getattr(request, name).id]
    return f"no id of {' and '.join(lacking)}" if lacking else ""


def likeliest(case: Case, people: Sequence[RecordedPerson]) -> tuple[RecordedPerson, bool]:
    """Resolve a record's subject to one of its namesakes; return the person and whether another is as likely."""
    true = case.request.target_true.id
    holders = [person for person in people if true in person.holds(case.request.relation_id)]
    likely = sorted(holders or people, key=lambda person: (-(person.sitelinks or 0), person.id))
    tied = len(likely) > 1 and likely[0].sitelinks == likely[1].sitelinks
    return likely[0], tied


def seed_edits(facts: Facts, cases: Sequence[Case]) -> tuple[list[Edit], Counter[str]]:
    """Turn records into edits of identified people.

    Args:
        facts: Where people come from.
        cases: Records with a name, a relation and two identified targets, or zsRE records; see `read_seeds`.

    Returns:
        The edits, and reason -> number of records that make none. An edit is flagged
        "ambiguous_subject" when its subject could be another person of the same name: both hold the old value, or none
        does, and their sitelinks are equal.
    """
    cases, skipped = rewrites(facts, cases)
    usable = []
    for case in cases:
        reason = _unusable(case)
        skipped.update([reason] if reason else [])
        usable += [] if reason else [case]
    humans = facts.named(case.request.subject for case in usable)
    facts.people(id for ids in humans.values() for id in ids)
    edits = []
    for case in usable:
        people = facts.people(humans[case.request.subject])
        if people:
            edits.append(_edit(case, *likeliest(case, people)))
        else:
            skipped.update(["no human of that name"])
    return edits, skipped


def _edit(case: Case, person: RecordedPerson, tied: bool) -> Edit:
    request = case.request
    return Edit(
        person,
        request.relation_id,
        str(request.target_true.id),
        str(request.target_new.id),
        names=(request.target_true.label, request.target_new.label),
        prompt=request.prompt,
        case_id=None if case.record_format == "zsre" else case.case_id,
        flags=("ambiguous_subject",) if tied else (),
    )
