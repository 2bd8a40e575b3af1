"""People, cases, clozes and their scores: the types of the public functions."""

from seesaw_cf.base.types import (
    AttributePrompt,
    Case,
    Cloze,
    ClozeScore,
    EditRequest,
    Entity,
    Estimate,
    Holds,
    Kind,
    Phase,
    Role,
)

__all__ = [
    "AttributePrompt",
    "Case",
    "Cloze",
    "ClozeScore",
    "EditRequest",
    "Entity",
    "Estimate",
    "Holds",
    "Kind",
    "Phase",
    "Role",
]
