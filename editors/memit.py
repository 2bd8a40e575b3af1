"""MEMIT: many facts at once, spread over the MLPs of several layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.editors.config import LocateThenEditConfig
from seesaw_cf.editors.fitted import Fitted, fit, require
from seesaw_cf.editors.groups import edit_groups
from seesaw_cf.editors.presets import preset
from seesaw_cf.editors.templates import MEMIT_STARTS
from seesaw_cf.types import EditRequest
from seesaw_cf.weights import WeightDelta

__all__ = ["MEMIT", "MEMITConfig"]


@dataclass(frozen=True, kw_only=True)
class MEMITConfig(LocateThenEditConfig):
    """Settings of MEMIT; see `LocateThenEditConfig` for the shared ones.

    Attributes:
        moment_weight: Lambda, the weight of the second moment against the new keys (15,000 for GPT-J).
    """

    moment_weight: float = 15_000.0

    @classmethod
    def for_model(cls, model: PreTrainedModel, quiet: bool = False) -> Self:
        """The published settings for a known model; a stated rule, with a warning, otherwise (see `preset`)."""
        return cls(**preset("memit", model, quiet))


@dataclass(frozen=True)
class MEMIT:
    """Mass-Editing Memory In a Transformer.

    Source: Meng et al. 2023, Algorithm 1: z by gradient descent at the last edited layer's output, then for each layer
    Delta = R K^T (lambda C + K K^T)^-1 with the residual shared equally among the layers left.

    Deviates: Seeded context templates; subject positions from character offsets; the target's tokens are those behind
    the prompt in the whole string; one Cholesky factor of C and Woodbury instead of a dense solve per edit. On models
    with a norm behind the MLP (Gemma 2 and 3, OLMo 2), which the paper does not treat, the projection is given the
    value that the norm turns into the wanted one, or the nearest there is.

    Attributes:
        config: The settings.
        corpus: Texts for the second moments.
        fitted: What `fit` found; None before.
    """

    config_class: ClassVar[type[MEMITConfig]] = MEMITConfig
    config: MEMITConfig
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
        return replace(self, fitted=fit(model, tokenizer, self.config, self.corpus, MEMIT_STARTS, "MEMIT"))

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
            EditError: Not fitted, contradictory requests, a loss or an update that is not finite.
            PromptError: A prompt that cannot be encoded as asked.
            UnsupportedModelError: A model or layer that cannot be edited.
        """
        groups = [requests]
        return edit_groups("memit", self.config, self.fitted, model, tokenizer, groups, self._solve)[0]

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
        return edit_groups("memit", self.config, self.fitted, model, tokenizer, groups, self._solve)

    def _solve(self, layer: int, keys: Tensor) -> Tensor:
        """A = (lambda C + K K^T)^-1 K, (d_ff, n) in float64."""
        return require(self.fitted, "MEMIT").factor(layer, keys).regularised(keys, self.config.moment_weight)
