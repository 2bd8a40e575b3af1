"""A change of a model, whatever made it: written into the weights, or added while the model computes."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class MovedPart(TypedDict):
    """What a change moves at one place.

    Attributes:
        name: Of the parameter, or of the module that gets a vector added to its output.
        shape: Of the parameter or the vector.
        rank: Of a change that is a product; None for a full matrix or a vector.
        norm: Frobenius norm.
        relative: `norm` over that of the base's weights; None where they are 0 or there are none.
    """

    name: str
    shape: list[int]
    rank: int | None
    norm: float
    relative: float | None


class EditedModel(TypedDict, total=False):
    """What a run's manifest records of a changed model.

    Attributes:
        source: As it was given.
        form: See `seesaw_cf.models.edited.Checkpoint`.
        moved: What it moves.
        notes: What a reader of its numbers must know, in sentences.
        null: Kind of its random control, see `seesaw_cf.editors.nulls`; "" for none.
        server: Of a served model, see `seesaw_cf.run.served.Measured`.
    """

    source: str
    form: str
    moved: list[MovedPart]
    notes: list[str]
    null: str
    server: Mapping[str, Any]


class Change(Protocol):
    """What turns a base into a changed model, and back to the same bytes: `WeightDelta`, `SteeringVector`."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """Return facts about the change, JSON-able."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the parameters that the change writes."""

    def applied(self, model: PreTrainedModel) -> AbstractContextManager[PreTrainedModel]:
        """Return a block in which the model is the changed one; afterwards it has its bytes and hooks of before."""

    def is_zero(self) -> bool:
        """Return whether nothing would change."""

    def is_finite(self) -> bool:
        """Return whether every stored number is finite."""

    def norms(self) -> Mapping[str, float]:
        """Return the Frobenius norm of the change at each place."""

    def moved(self, model: PreTrainedModel) -> list[MovedPart]:
        """Return one row for each place that the change moves."""

    def sha256(self) -> str:
        """Return a SHA-256 (hex) of everything that is stored."""
