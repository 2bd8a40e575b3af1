"""Coupled Entity Prompts as LEME's authors keep them: in CounterFact's and zsRE's records, under one key.

Source: LEME, `produce_coupled_entities.py`. The subject and each related entity have a prompt, their facts by name of
property, and how these couple the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seesaw_cf.base.types import Case, TableRow
from seesaw_cf.records.formats import request_row

KEYS = ("coupled_prompts_and_properties", "dependancies")  # the second in older files
# Kind of coupling in the config `coupled_*` -> lists of properties of a related entity.
_COUPLINGS = {
    "other": ("mutual_properties", "subject_as_object", "original_property_of_subject_as_object"),
    "target": ("target_true_as_object",),
    "shared": ("overlap_properties",),
}


def coupled_part(case: Case) -> Mapping[str, Any]:
    """Return what a record couples its subject with; empty for records without."""
    parts = (case.extra.get(key) for key in KEYS)
    return next((part for part in parts if isinstance(part, Mapping) and part.get("subject_entity")), {})


def edited_id(case: Case) -> str:
    """Return the identifier that a record gives its edited subject; "" where it gives none."""
    side = coupled_part(case).get("subject_entity") or {}
    id = case.extra.get("subject_id") or side.get("entity_id")
    return id if isinstance(id, str) else ""


def coupled_row(case: Case) -> TableRow | None:
    """Return a record as a row of a config `coupled_*`; None when it couples its subject with nothing.

    The related entity is the first of the record. zsRE's record is its counterfactual edit: from its answer to `alt`.
    """
    part = coupled_part(case)
    related = next(iter(part.get("coupled_entities") or ()), None)
    if not part or not isinstance(related, Mapping):
        return None
    rewrite = request_row(case.request)
    if case.record_format == "zsre":
        rewrite |= {
            "target_true": rewrite["target_new"],
            "target_new": {"str": str(case.extra.get("alt") or ""), "id": None},
        }
    subject = part["subject_entity"]
    return {
        "case_id": case.case_id,
        "record_format": case.record_format,
        "kind": "counterfactual",
        "requested_rewrite": rewrite,
        "truth": rewrite["target_true"],
        "subject_entity": _side(subject, case.request.subject, {}),
        "related_entity": _side(related, "", related),
        "paraphrase_prompts": list(case.paraphrase_prompts),
        "neighborhood_prompts": list(case.neighborhood_prompts),
        "loc_ans": case.extra.get("loc_ans"),
    }


def _side(side: Mapping[str, Any], name: str, couplings: Mapping[str, Any]) -> TableRow:
    """Return an entity with its facts and its prompt, which stands for both wordings."""
    facts = side.get("ground_truth")
    if not isinstance(facts, Mapping):
        facts = {**(side.get("overlapping_ground_truth") or {}), **(side.get("not_overlapping_ground_truth") or {})}
    kinds = {word: kind for kind, keys in _COUPLINGS.items() for key in keys for word in couplings.get(key) or ()}
    prompt = str(side.get("coupled_prompt") or "")
    return {
        "entity": {"str": str(side.get("entity") or name), "id": side.get("entity_id")},
        "ground_truth": [
            {
                "property_id": "",
                "property": str(property),
                "coupled": kinds.get(property, ""),
                "values": [
                    {"str": str(value), "id": None} for value in ([values] if isinstance(values, str) else values)
                ],
            }
            for property, values in facts.items()
        ],
        "properties": [str(word) for word in side.get("properties") or facts],
        "essay": prompt,
        "article": prompt,
    }
