"""EMMET: ROME's equality constraint for a batch of facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.editors.config import LocateThenEditConfig
from seesaw_cf.editors.fitted import Fitted, fit, require
from seesaw_cf.editors.groups import edit_groups
from seesaw_cf.editors.presets import preset
from seesaw_cf.editors.templates import MEMIT_STARTS
from seesaw_cf.errors import EditError
from seesaw_cf.types import EditRequest
from seesaw_cf.weights import WeightDelta

__all__ = ["EMMET", "EMMETConfig"]


@dataclass(frozen=True, kw_only=True)
class EMMETConfig(LocateThenEditConfig):
    """Settings of EMMET; see `LocateThenEditConfig` for the shared ones.

    Attributes:
        moment_weight: Weight of the second moment C.
        norm_weight: Weight of the identity beside it (the authors' update_norm_lambda).
        slack: Added to the diagonal of K^T C^-1 K, so that near-equal keys of a batch cannot blow the update up (the
            authors' emmet_lambda).
        slack_for_one: Also for a single request, as EasyEdit does; the authors' program does not.
    """

    moment_weight: float = 100_000.0
    norm_weight: float = 0.0
    slack: float = 0.1
    slack_for_one: bool = False

    @classmethod
    def for_model(cls, model: PreTrainedModel, quiet: bool = False) -> Self:
        """The published settings for a known model; a stated rule, with a warning, otherwise (see `preset`)."""
        return cls(**preset("emmet", model, quiet))


@dataclass(frozen=True)
class EMMET:
    """Equality-constrained Mass Model Editing in a Transformer.

    Source: Gupta et al. 2024: Delta = R (K^T D K + slack I)^-1 K^T D with D = (w C + l I)^-1; several layers share the
    residual as in MEMIT.

    Attributes:
        config: The settings.
        corpus: Texts for the second moments.
        fitted: What `fit` found; None before.
    """

    config_class: ClassVar[type[EMMETConfig]] = EMMETConfig
    config: EMMETConfig
    corpus: Sequence[str] | None = field(default=None, repr=False)
    fitted: Fitted | None = field(default=None, repr=False)

    def fit(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Self:
        """Samples context templates and computes the second moments of all layers, or finds them on disk.

        Returns:
            A new editor; this one is not changed.

        Raises:
            EditError: No texts.
            UnsupportedModelError: A model or layer that cannot be edited.
            StorageError: A damaged cache file.
        """
        return replace(self, fitted=fit(model, tokenizer, self.config, self.corpus, MEMIT_STARTS, "EMMET"))

    def edit(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Sequence[EditRequest]
    ) -> WeightDelta:
        """Edits all requests together.

        Args:
            model: Left as it is.
            tokenizer: The model's tokenizer.
            requests: n requests.

        Returns:
            One update of rank n per layer.

        Raises:
            EditError: Not fitted, contradictory requests, equal keys without slack, a loss or an update that is not
                finite.
            PromptError: A prompt that cannot be encoded as asked.
            UnsupportedModelError: A model or layer that cannot be edited.
        """
        groups = [requests]
        return edit_groups("emmet", self.config, self.fitted, model, tokenizer, groups, self._solve)[0]

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
        return edit_groups("emmet", self.config, self.fitted, model, tokenizer, groups, self._solve)

    def _solve(self, layer: int, keys: Tensor) -> Tensor:
        """A = D K (K^T D K + slack I)^-1, (d_ff, n) in float64."""
        config = self.config
        factor = require(self.fitted, "EMMET").factor(layer, keys, config.norm_weight / config.moment_weight)
        spread_keys = factor.inverse_times(keys) / config.moment_weight
        small = keys.to(spread_keys).T @ spread_keys
        if len(small) > 1 or config.slack_for_one:
            small = small + config.slack * torch.eye(len(small)).to(small)
        try:
            solved: Tensor = torch.linalg.solve(small.T, spread_keys.T)
        except RuntimeError as error:
            raise EditError(
                f"EMMET: the keys of {len(small)} requests at layer {layer} are linearly dependent ({error}), so they "
                "cannot all be met exactly. Set slack above 0, or drop repeated requests. The model is unchanged."
            ) from error
        return solved.T
