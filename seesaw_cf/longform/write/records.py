"""The records that long-form texts are written for, as the configs `coupled_*` and `open_ended` hold them."""

from __future__ import annotations

from typing import Literal, TypedDict

# Passage -> the field of a record that holds its entity.
SIDES: dict[Literal["subject", "related"], Literal["subject_entity", "related_entity"]] = {
    "subject": "subject_entity",
    "related": "related_entity",
}


# Not a class: a class whose field is named `str` could not use the type.
EntityRecord = TypedDict("EntityRecord", {"id": "str | None", "str": str}, total=False)  # noqa: UP013
"""An entity: its identifier and its name."""


class Rewrite(TypedDict, total=False):
    """An edit request, with CounterFact's field names."""

    prompt: str
    subject: str
    relation_id: str
    target_new: EntityRecord
    target_true: EntityRecord


class Truth(TypedDict):
    """A recorded fact of an entity: a property and its values."""

    property_id: str
    property: str
    values: list[EntityRecord]


class CoupledEntity(TypedDict, total=False):
    """One of two coupled entities: its facts, and its prompt in two wordings."""

    entity: EntityRecord | None
    ground_truth: list[Truth] | None
    essay: str | None
    article: str | None


class LongformRecord(TypedDict, total=False):
    """A row of a config. Those of `coupled_*` have two sides, those of `open_ended` a prompt and its use."""

    case_id: int
    kind: str
    requested_rewrite: Rewrite
    subject_entity: CoupledEntity | None
    related_entity: CoupledEntity | None
    paraphrase_prompts: list[str] | None
    neighborhood_prompts: list[str] | None
    use: str
    prompt: str
    subject_id: str | None
