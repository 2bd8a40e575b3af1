"""ROME and R-ROME: one fact as a rank-one change of one MLP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.editors.activations import at_subject, average_keys
from seesaw_cf.editors.arch import ModelParts
from seesaw_cf.editors.checks import check_requests, finished
from seesaw_cf.editors.config import LocateThenEditConfig
from seesaw_cf.editors.fitted import Fitted, fit
from seesaw_cf.editors.groups import ready
from seesaw_cf.editors.hooks import untouched
from seesaw_cf.editors.optimise import distance, optimise
from seesaw_cf.editors.positions import PreparedEdit, prepare
from seesaw_cf.editors.presets import preset
from seesaw_cf.editors.spread import oriented
from seesaw_cf.editors.templates import ROME_STARTS
from seesaw_cf.errors import EditError
from seesaw_cf.types import EditRequest
from seesaw_cf.weights import LowRank, WeightDelta, applied, base_facts

__all__ = ["ROME", "ROMEConfig"]


@dataclass(frozen=True, kw_only=True)
class ROMEConfig(LocateThenEditConfig):
    """Settings of ROME; see `LocateThenEditConfig` for the shared ones. Exactly one layer.

    Attributes:
        consistent_keys: R-ROME: the averaged key wherever the published program mixes it with the bare prompt's key.
        bare_keys: p-ROME: the bare prompt's key everywhere, no average over contexts.
        use_moments: Multiply the key by C^-1, as in the paper; False needs no corpus (EasyEdit's default).
    """

    steps: int = 20
    clamp: float = 4.0
    consistent_keys: bool = False
    bare_keys: bool = False
    use_moments: bool = True

    @property
    def moment_layers(self) -> tuple[int, ...]:
        """The layer, or nothing without `use_moments`."""
        return self.layers if self.use_moments else ()

    def __post_init__(self) -> None:
        """Checks the settings; see `LocateThenEditConfig`."""
        LocateThenEditConfig.__post_init__(self)
        if len(self.layers) != 1:
            raise EditError(f"ROMEConfig: layers is {self.layers}, expected exactly one. Use MEMIT to edit several.")

    @classmethod
    def for_model(cls, model: PreTrainedModel, quiet: bool = False) -> Self:
        """The published settings for a known model; a stated rule, with a warning, otherwise (see `preset`)."""
        return cls(**preset("rome", model, quiet))


@dataclass(frozen=True)
class ROME:
    """Rank-One Model Editing; with `consistent_keys` R-ROME.

    Source: Meng et al. 2022, eq. 2: W + Lambda (C^-1 k)^T with Lambda = (v* - W k) / ((C^-1 k)^T k). The published
    program averages k over contexts in C^-1 k but takes the bare prompt's k and W k in Lambda; R-ROME (Gupta et al.
    2024) takes the average everywhere, p-ROME of the same authors the bare prompt's. Several requests are edited one
    after another, as published.

    Deviates: Seeded context templates; subject positions from character offsets; C^-1 k by Cholesky in float64.

    Attributes:
        config: The settings.
        corpus: Texts for the second moment; not needed without `use_moments`.
        fitted: What `fit` found; None before.
    """

    config_class: ClassVar[type[ROMEConfig]] = ROMEConfig
    config: ROMEConfig
    corpus: Sequence[str] | None = field(default=None, repr=False)
    fitted: Fitted | None = field(default=None, repr=False)

    def fit(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Self:
        """Samples context templates and computes the layer's second moment, or finds it on disk.

        Returns:
            A new editor; this one is not changed.

        Raises:
            EditError: No texts.
            UnsupportedModelError: A model or layer that cannot be edited.
            StorageError: A damaged cache file.
        """
        fitted = fit(model, tokenizer, self.config, self.corpus, ROME_STARTS, "ROME", self.config.use_moments)
        return replace(self, fitted=fitted)

    def edit(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Sequence[EditRequest]
    ) -> WeightDelta:
        """Edits the requests one after another, each on the model with the earlier ones.

        Args:
            model: Left as it is.
            tokenizer: The model's tokenizer.
            requests: n requests; their order matters.

        Returns:
            One update of rank n.

        Raises:
            EditError: Not fitted, contradictory requests, a loss or an update that is not finite.
            PromptError: A prompt that cannot be encoded as asked.
            UnsupportedModelError: A model or layer that cannot be edited.
        """
        check_requests(requests, "rome", self.config.allow_identity)
        fitted, parts = ready("rome", self.config, self.fitted, model)
        edits = [prepare(model, tokenizer, r, fitted.templates, self.config.kl_prompt) for r in requests]
        updates: dict[str, LowRank] = {}
        diagnostics: list[dict[str, Any]] = []
        with untouched(model):
            for edit in edits:
                with applied(model, WeightDelta(updates)):
                    ((update, facts),) = self._rank_ones(parts, [edit], fitted)
                updates = {name: _stacked(updates.get(name), change) for name, change in update.items()}
                diagnostics.append(facts)
        base = base_facts(model, WeightDelta(updates))
        return finished("rome", asdict(self.config), requests, updates, diagnostics, **fitted.facts(), base=base)

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
        for request in requests:
            check_requests([request], "rome", self.config.allow_identity)
        fitted, parts = ready("rome", self.config, self.fitted, model)
        edits = [prepare(model, tokenizer, r, fitted.templates, self.config.kl_prompt) for r in requests]
        with untouched(model):
            found = self._rank_ones(parts, edits, fitted)
        base = base_facts(model, WeightDelta({name: change for update, _ in found for name, change in update.items()}))
        settings = asdict(self.config)
        return [
            finished("rome", settings, [request], update, [facts], **fitted.facts(), base=base)
            for request, (update, facts) in zip(requests, found)
        ]

    def _rank_ones(
        self, parts: ModelParts, edits: Sequence[PreparedEdit], fitted: Fitted
    ) -> list[tuple[dict[str, LowRank], dict[str, Any]]]:
        """The rank-one update of each edit by itself on the model as it is now, and its diagnostics."""
        layer = self.config.layers[0]
        found = optimise(parts, edits, layer, self.config, at="mlp")
        rows = [row for edit in edits for row in edit.rows]
        seen = at_subject(parts, rows, layer, max_tokens=self.config.batch_tokens)
        share = 1.0 if self.config.bare_keys else None
        mean_keys = average_keys(seen.keys.double(), edits, share)
        mean_values = average_keys(seen.values.double(), edits, share)
        first = 0
        answers = []
        for number, (edit, facts) in enumerate(zip(edits, found.diagnostics())):
            key, start = seen.keys[first].double(), found.initial[number].double()
            value = start
            if self.config.consistent_keys:
                key, value = mean_keys[number], mean_values[number]
            direction = self._direction(mean_keys[number], layer, fitted)
            along = key @ direction
            right = distance(start, found.shift[number].double(), value) / along
            update = oriented(parts, right[:, None], direction[:, None], layer)
            facts = {**facts, "key_norm": float(key.norm()), "key_along_direction": float(along)}
            answers.append(({parts.weight_name(layer): update}, facts))
            first += len(edit.rows)
        return answers

    def _direction(self, key: Tensor, layer: int, fitted: Fitted) -> Tensor:
        """u: C^-1 k of unit length, or k itself without second moments."""
        if self.config.use_moments:
            key = fitted.factor(layer, key).inverse_times(key[:, None])[:, 0]
        unit: Tensor = key / key.norm()
        return unit


def _stacked(first: LowRank | None, second: LowRank) -> LowRank:
    """The sum of two low-rank updates as one of the ranks' sum."""
    if first is None:
        return second
    return LowRank(torch.cat([first.left, second.left], 1), torch.cat([first.right, second.right], 0))
