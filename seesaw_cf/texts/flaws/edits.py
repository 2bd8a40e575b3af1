"""What raters are told about an edit."""

from __future__ import annotations

import pyarrow as pa

from seesaw_cf.base.errors import UnknownNameError
from seesaw_cf.records.relations import relation


def edit_sentences(edits: pa.Table) -> dict[tuple[str, int], str]:
    """Return a sentence about each edit: (editor, case_id) -> "Ada Oak: gender was changed from female to male."

    Args:
        edits: `edits.parquet` of a long-form run.
    """
    return {
        (row["editor"], row["case_id"]): edit_sentence(
            row["subject"], row["relation"], row["target_true"], row["target_new"]
        )
        for row in edits.to_pylist()
    }


def edit_sentence(subject: str, relation_id: str, old: str, new: str) -> str:
    """Return what raters are told about an edit."""
    return f"{subject}: {property_label(relation_id, 'one fact')} was changed from {old} to {new}."


def property_label(relation_id: str, otherwise: str = "") -> str:
    """Return the label of an edited property; `otherwise` of one that the package does not know."""
    try:
        return relation(relation_id).label
    except UnknownNameError:
        return otherwise
