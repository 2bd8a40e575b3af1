"""AlphaEdit: MEMIT's update projected onto the null space of what the model already knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.editors.config import LocateThenEditConfig
from seesaw_cf.editors.fitted import Fitted, fit, parts_for, require
from seesaw_cf.editors.groups import edit_groups
from seesaw_cf.editors.hooks import untouched
from seesaw_cf.editors.positions import prepare
from seesaw_cf.editors.presets import preset
from seesaw_cf.editors.spread import keys_of
from seesaw_cf.editors.templates import MEMIT_STARTS
from seesaw_cf.errors import EditError
from seesaw_cf.types import EditRequest
from seesaw_cf.weights import WeightDelta

__all__ = ["AlphaEdit", "AlphaEditConfig"]


@dataclass(frozen=True, kw_only=True)
class AlphaEditConfig(LocateThenEditConfig):
    """Settings of AlphaEdit; see `LocateThenEditConfig` for the shared ones.

    Attributes:
        null_threshold: Eigenvectors of C with an eigenvalue below span the space that may be written to.
        norm_weight: L2, the weight of the update's own norm.
    """

    null_threshold: float = 2e-2
    norm_weight: float = 10.0

    @classmethod
    def for_model(cls, model: PreTrainedModel, quiet: bool = False) -> Self:
        """The published settings for a known model; a stated rule, with a warning, otherwise (see `preset`)."""
        return cls(**preset("alphaedit", model, quiet))


@dataclass(frozen=True)
class AlphaEdit:
    """Null-space constrained editing, for long sequences of edits.

    Source: Fang et al. 2025, eq. 14: Delta = R K^T P (K K^T P + K_p K_p^T P + L2 I)^-1 with P the projector onto the
    null space of C and K_p the keys of earlier edits.

    The cache of earlier keys is explicit and belongs to the caller: `edit` never changes it. For a sequence:

        for batch in batches:
            delta = editor.edit(model, tokenizer, batch)
            stack.enter_context(applied(model, delta))
            editor = editor.remember(model, tokenizer, batch)

    Deviates: The published program keeps P in a file of a fixed name that it then uses for any model, and its cache in
    a module variable that also grows with edits that were undone. It solves in float32; here float64 and Woodbury.

    Attributes:
        config: The settings.
        corpus: Texts for the second moments.
        fitted: What `fit` found; None before.
        bases: Layer -> (d_ff, r), orthonormal columns spanning the null space; made by `fit`.
        past: Layer -> (d_ff, m), keys of earlier edits.
    """

    config_class: ClassVar[type[AlphaEditConfig]] = AlphaEditConfig
    config: AlphaEditConfig
    corpus: Sequence[str] | None = field(default=None, repr=False)
    fitted: Fitted | None = field(default=None, repr=False)
    bases: Mapping[int, Tensor] = field(default_factory=dict, repr=False)
    past: Mapping[int, Tensor] = field(default_factory=dict, repr=False)

    def fit(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Self:
        """Context templates, second moments (computed or found on disk) and null spaces.

        Returns:
            A new editor with an empty cache; this one is not changed.

        Raises:
            EditError: No texts, or a threshold that leaves no null space.
            UnsupportedModelError: A model or layer that cannot be edited.
            StorageError: A damaged cache file.
        """
        fitted = fit(model, tokenizer, self.config, self.corpus, MEMIT_STARTS, "AlphaEdit")
        bases = {layer: self._null_space(moment.matrix, layer) for layer, moment in fitted.moments.items()}
        return replace(self, fitted=fitted, bases=bases, past={})

    def _null_space(self, moment: Tensor, layer: int) -> Tensor:
        values, vectors = torch.linalg.eigh(moment.double())
        small = values < self.config.null_threshold
        if not bool(small.any()):
            raise EditError(
                f"AlphaEdit: no eigenvalue of the second moment of layer {layer} is below null_threshold="
                f"{self.config.null_threshold} (smallest {float(values[0]):.3g}, median {float(values.median()):.3g}): "
                "nothing may be written. Raise null_threshold."
            )
        basis: Tensor = vectors[:, small].contiguous()
        return basis

    def edit(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Sequence[EditRequest]
    ) -> WeightDelta:
        """Edits all requests together, sparing earlier keys in `past`.

        Args:
            model: Left as it is.
            tokenizer: The model's tokenizer.
            requests: n requests.

        Returns:
            One update of rank n per layer.

        Raises:
            EditError: Not fitted, contradictory requests, a loss or an update that is not finite.
            PromptError: A prompt that cannot be encoded as asked.
            UnsupportedModelError: A model or layer that cannot be edited.
        """
        groups = [requests]
        return edit_groups(
            "alphaedit", self.config, self.fitted, model, tokenizer, groups, self._solve, **self._facts()
        )[0]

    def edit_each(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Sequence[EditRequest]
    ) -> list[WeightDelta]:
        """Edits every request by itself, as `edit(model, tokenizer, [request])` would, in a fraction of the time.

        Values are optimised for all requests together; results agree with the one-at-a-time path to rounding.

        Args:
            model: Left as it is.
            tokenizer: The model's tokenizer.
            requests: n requests; they may contradict each other.

        Returns:
            n deltas, in order.

        Raises:
            SeesawError: See `edit`.
        """
        groups = [[request] for request in requests]
        return edit_groups(
            "alphaedit", self.config, self.fitted, model, tokenizer, groups, self._solve, **self._facts()
        )

    def remember(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Sequence[EditRequest]
    ) -> Self:
        """Adds the keys of requests that have been edited and stay so.

        Args:
            model: The model with the edit applied, as published.
            tokenizer: Its tokenizer.
            requests: What was edited.

        Returns:
            A new editor whose `past` holds these keys too; this one is not changed.
        """
        fitted, parts = require(self.fitted, "AlphaEdit"), parts_for(model, self.config)
        edits = [prepare(model, tokenizer, r, fitted.templates, self.config.kl_prompt) for r in requests]
        past = dict(self.past)
        with untouched(model):
            for layer in self.config.layers:
                keys = keys_of(parts, edits, layer, self.config.batch_tokens).double().cpu()
                past[layer] = torch.cat([past[layer], keys], 1) if layer in past else keys
        return replace(self, past=past)

    def _facts(self) -> dict[str, Any]:
        return {
            "null_space": {str(layer): basis.shape[1] for layer, basis in self.bases.items()},
            "past_keys": {str(layer): keys.shape[1] for layer, keys in self.past.items()},
        }

    def _solve(self, layer: int, keys: Tensor) -> Tensor:
        """(P (K K^T + K_p K_p^T) + L2 I)^-1 P K, (d_ff, n) in float64, through a system of the number of keys."""
        basis = self.bases[layer].to(keys.device)
        new = basis.T @ keys.double()
        old = self.past.get(layer)
        every = new if old is None else torch.cat([new, basis.T @ old.to(basis)], 1)
        small = every.T @ every + self.config.norm_weight * torch.eye(every.shape[1]).to(every)
        solved: Tensor = basis @ (new - every @ torch.linalg.solve(small, every.T @ new)) / self.config.norm_weight
        return solved
