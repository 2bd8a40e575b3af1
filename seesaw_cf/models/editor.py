"""What an editor is, and what some editors and their configs can do beyond it: protocols, checked with `isinstance`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field
from typing import ClassVar, Protocol, Self, runtime_checkable

from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.types import Case, EditRequest
from seesaw_cf.models.architectures import Architecture
from seesaw_cf.models.weights import WeightDelta

Model = PreTrainedModel
Tokenizer = PreTrainedTokenizerBase
Requests = Sequence[EditRequest]
Settings = Mapping[str, object]
"""Setting of an editor -> plain value, as a JSON file gives it."""
Overrides = Mapping[str, Settings]
"""Editor or kind of control -> settings that differ from its preset."""


Diagnostics = Mapping[str, object]
"""What an editor records of a request: losses, norms, layers."""


class Dataclass(Protocol):
    """An instance of any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]


class EditorConfig(Dataclass, Protocol):
    """The settings of an editor: a frozen dataclass that can be made for a model."""

    @classmethod
    def for_model(cls, model: Model) -> Self:
        """Return the settings that are used when the user gives none."""


@runtime_checkable
class Editor(Protocol):
    """What every editing method offers; the object itself is immutable."""

    @property
    def config(self) -> EditorConfig:
        """The settings."""

    def fit(self, model: Model, tokenizer: Tokenizer) -> Self:
        """Prepare what does not depend on requests (second moments, a hyper-network); may return self."""

    def edit(self, model: Model, tokenizer: Tokenizer, requests: Requests) -> WeightDelta:
        """Compute the delta for all `requests` together; weights, grads, hooks, RNG and mode stay untouched."""


@runtime_checkable
class EditsEach(Editor, Protocol):
    """Editor that makes many edits, each by itself, in less time than one after another."""

    def edit_each(self, model: Model, tokenizer: Tokenizer, requests: Requests) -> list[WeightDelta]:
        """Return one delta per request, in order: that of `edit(model, tokenizer, [request])` up to rounding."""


@runtime_checkable
class RemembersEdits(Editor, Protocol):
    """Editor that spares what was edited before (AlphaEdit)."""

    @property
    def past(self) -> Mapping[int, Tensor]:
        """Layer -> keys of earlier edits."""

    def remember(self, model: Model, tokenizer: Tokenizer, requests: Requests) -> Self:
        """Return the same editor, which spares these edits too; the model has them already."""


class Example(Protocol):
    """What an editor learns from a case: a demonstration, or another edit."""

    @property
    def text(self) -> str:
        """It in words."""


@runtime_checkable
class LearnsFromCases(Editor, Protocol):
    """Editor that takes examples from cases that are not evaluated (in-context editing, the control `unrelated`)."""

    @property
    def pool(self) -> Sequence[Example]:
        """The examples."""

    def learn(self, cases: Iterable[Case]) -> Self:
        """Return the same editor with the examples that `cases` give."""


@runtime_checkable
class AvoidsCases(Editor, Protocol):
    """Must know what is asked after its edits, so that it edits nothing of it (the control `unrelated`)."""

    def avoid(self, cases: Iterable[Case]) -> Self:
        """Return the same editor, aware of the cases of the run."""


@runtime_checkable
class WrapsEditor(Editor, Protocol):
    """A control of another editor."""

    @property
    def inner(self) -> Editor | None:
        """The wrapped editor; None before it is made."""


@runtime_checkable
class HasLayers(Protocol):
    """A config that names the blocks to edit."""

    @property
    def layers(self) -> tuple[int, ...]:
        """Block numbers, from 0."""

    @property
    def architecture(self) -> Architecture | None:
        """Row for a model type absent from the table."""


@runtime_checkable
class ReadsTexts(Protocol):
    """A config of an editor that may learn from a corpus."""

    @property
    def needs_texts(self) -> bool:
        """Whether `fit` cannot do without one."""


@runtime_checkable
class AllowsIdentity(EditorConfig, Protocol):
    """A config that can allow requests with target_new == target_true."""

    @property
    def allow_identity(self) -> bool:
        """Whether they are accepted."""
