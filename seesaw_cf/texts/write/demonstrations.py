"""Worked examples for in-context editing, from coupled records that no text is written about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from seesaw_cf.base.types import Case
from seesaw_cf.models.editor import Example
from seesaw_cf.texts.write.passages import SIDES, LongformRecord, entity_name, request_of

NONE_LEFT = (
    "IKE was given no demonstrations: a text is written about the subject of every record. Its edits are zero-shot. "
    "Keep some records back with --limit."
)


def spare_cases(rows: Sequence[LongformRecord], evaluated_rows: Sequence[LongformRecord]) -> list[Case]:
    """Return the records that demonstrations may come from.

    Args:
        rows: All records of the run's configs. Paraphrase and neighbourhood prompts, where they have them, give
            "update" and "retain".
        evaluated_rows: Those that texts are written for. Their people, as subject of the edit or as related entity, are
            in no demonstration.

    Returns:
        One case for each other edit, in their order.
    """
    evaluated = {name for row in evaluated_rows for name in _people(row)}
    cases: dict[tuple[int, str], Case] = {}
    for row in rows:
        request = request_of(row)
        if evaluated.isdisjoint(_people(row)):
            case = Case(
                row["case_id"],
                request,
                paraphrase_prompts=tuple(row.get("paraphrase_prompts") or ()),
                neighborhood_prompts=tuple(row.get("neighborhood_prompts") or ()),
            )
            cases.setdefault((case.case_id, request.text), case)
    return list(cases.values())


def _people(row: LongformRecord) -> set[str]:
    sides = (entity_name(row.get(side)) for side in SIDES.values())
    return {name for name in (row["requested_rewrite"]["subject"], *sides) if name}


def pool_digest(pool: Sequence[Example]) -> str:
    """Return a hash over demonstrations, for the manifest."""
    return hashlib.sha256(json.dumps([example.text for example in pool]).encode()).hexdigest()[:16]
