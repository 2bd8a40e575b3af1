"""Worked examples for in-context editing, from coupled records that no text is written about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from seesaw_cf.longform.passages import request_of
from seesaw_cf.types import Case

__all__ = ["NONE_LEFT", "pool_digest", "spare_cases"]

NONE_LEFT = (
    "IKE was given no demonstrations: a text is written about the subject of every record. Its edits are zero-shot. "
    "Keep some records back with --limit."
)


def spare_cases(rows: Sequence[Mapping[str, Any]], kept: Sequence[Mapping[str, Any]]) -> list[Case]:
    """The records that demonstrations may come from.

    Args:
        rows: All records of the run's configs. Paraphrase and neighbourhood prompts, where they have them, give
            "update" and "retain".
        kept: Those that texts are written for; whoever they are about, as the edit's subject or as its related entity,
            is in no demonstration.

    Returns:
        One case for each other edit, in their order.
    """
    evaluated = {name for row in kept for name in _people(row)}
    found: dict[tuple[int, str], Case] = {}
    for row in rows:
        request = request_of(row)
        if evaluated.isdisjoint(_people(row)):
            prompts: dict[str, Any] = {
                name: tuple(row.get(name) or ()) for name in ("paraphrase_prompts", "neighborhood_prompts")
            }
            found.setdefault((row["case_id"], request.text), Case(row["case_id"], request, **prompts))
    return list(found.values())


def _people(row: Mapping[str, Any]) -> set[str]:
    sides = [((row.get(side) or {}).get("entity") or {}).get("str") for side in ("subject_entity", "related_entity")]
    return {name for name in (row["requested_rewrite"]["subject"], *sides) if name}


def pool_digest(pool: Sequence[Any]) -> str:
    """A hash over demonstrations, for the manifest."""
    return hashlib.sha256(json.dumps([example.text for example in pool]).encode()).hexdigest()[:16]
