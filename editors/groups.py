"""Editors that turn groups of requests into one change each: a group edited together, or each request by itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.types import EditRequest
from seesaw_cf.models.hooks import alone
from seesaw_cf.models.weights import WeightDelta


class EditsGroups(ABC):
    """An editor that works on many groups at once, none of which depends on another; a subclass defines how."""

    def edit(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Sequence[EditRequest]
    ) -> WeightDelta:
        """Edit all requests: together, or (ROME) one after another.

        Args:
            model: Left as it is.
            tokenizer: The model's tokenizer.
            requests: n requests; where the method works in batches, their order decides those.

        Returns:
            One change for all requests: of rank n per layer, or (FT) a matrix in float32 (float64 for float64 models).

        Raises:
            EditError: Not fitted, contradictory requests, equations without a solution, a loss or an update that is not
                finite.
            PromptError: A prompt that cannot be encoded as asked.
            UnsupportedModelError: A model or layer that cannot be edited.
        """
        with alone(model):
            return self._edit_groups(model, tokenizer, [requests])[0]

    def edit_each(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Sequence[EditRequest]
    ) -> list[WeightDelta]:
        """Edit every request by itself, as `edit(model, tokenizer, [request])` would, in a fraction of the time.

        Args:
            model: Left as it is.
            tokenizer: The model's tokenizer.
            requests: n requests; they may contradict each other.

        Returns:
            n deltas, in order; they agree with those of `edit` to rounding.

        Raises:
            SeesawError: See `edit`.
        """
        with alone(model):
            return self._edit_groups(model, tokenizer, [[request] for request in requests]) if requests else []

    @abstractmethod
    def _edit_groups(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, groups: Sequence[Sequence[EditRequest]]
    ) -> list[WeightDelta]:
        """Return one delta per group, each made on the model as it is."""
