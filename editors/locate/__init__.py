"""What ROME, MEMIT, EMMET and AlphaEdit share: fitting, checks of requests, and the course from requests to deltas.

Fine-tuning shares the first part: groups of requests that become one change each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import ClassVar, Self

import torch
from torch import Tensor

from seesaw_cf.base.errors import EditError
from seesaw_cf.editors.locate.checks import check_requests, make_delta
from seesaw_cf.editors.locate.config import LocateThenEditConfig
from seesaw_cf.editors.locate.fitted import Fitted, fit, parts_for, require
from seesaw_cf.editors.locate.optimise import optimise
from seesaw_cf.editors.locate.positions import MEMIT_STARTS, PreparedEdit, prepare
from seesaw_cf.editors.locate.spread import keys_of, spread
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.editor import Diagnostics, Model, Requests, Tokenizer
from seesaw_cf.models.hooks import alone, frozen
from seesaw_cf.models.weights import LowRank, WeightDelta, base_facts


class EditsGroups(ABC):
    """An editor that works on many groups at once, none of which depends on another; a subclass defines how."""

    def edit(self, model: Model, tokenizer: Tokenizer, requests: Requests) -> WeightDelta:
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

    def edit_each(self, model: Model, tokenizer: Tokenizer, requests: Requests) -> list[WeightDelta]:
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
    def _edit_groups(self, model: Model, tokenizer: Tokenizer, groups: Sequence[Requests]) -> list[WeightDelta]:
        """Return one delta per group, each made on the model as it is."""


Changes = tuple[dict[str, LowRank], Sequence[Diagnostics]]
"""Of one group of edits: parameter name -> update, and the diagnostics of each edit."""


@dataclass(frozen=True)
class LocateThenEdit(EditsGroups):
    """A method that finds a new value at the subject's last token and writes it into MLP output projections.

    A subclass names its config class and gives its formula, `changes`; see `SpreadEdit` where the value is spread over
    several layers.

    Attributes:
        config: The settings.
        corpus: Texts for the second moments; not needed when the config has no `moment_layers`.
        fitted: What `fit` found; None before.
    """

    config_class: ClassVar[type[LocateThenEditConfig]] = LocateThenEditConfig
    starts: ClassVar[Sequence[tuple[str, int]]] = MEMIT_STARTS
    """What sampled context templates begin with, and their lengths in tokens."""
    config: LocateThenEditConfig
    corpus: Sequence[str] | None = field(default=None, repr=False)
    fitted: Fitted | None = field(default=None, repr=False)

    def fit(self, model: Model, tokenizer: Tokenizer) -> Self:
        """Sample context templates and compute the second moments of the layers, or find them on disk.

        Returns:
            A new editor; this one is not changed.

        Raises:
            EditError: No texts.
            UnsupportedModelError: A model or layer that cannot be edited.
            StorageError: A damaged cache file.
        """
        fitted = fit(model, tokenizer, self.config, self.corpus, self.starts, type(self).__name__)
        return replace(self, fitted=fitted)

    @abstractmethod
    def changes(self, parts: ModelParts, fitted: Fitted, groups: Sequence[Sequence[PreparedEdit]]) -> Sequence[Changes]:
        """Return the updates of each group by itself on the model as it is now."""

    def facts(self) -> Diagnostics:
        """Return facts of the method for a delta's `meta`, in addition to settings and fitted state."""
        return {}

    def _edit_groups(self, model: Model, tokenizer: Tokenizer, groups: Sequence[Requests]) -> list[WeightDelta]:
        name, config = self.config.editor, self.config
        for group in groups:
            check_requests(group, name, config.allow_identity)
        fitted, parts = require(self.fitted, name), parts_for(model, config)
        self._check_sizes(fitted, parts)
        edits = [[prepare(model, tokenizer, r, fitted.templates, config.kl_prompt) for r in group] for group in groups]
        with frozen(model):
            changes = self.changes(parts, fitted, edits)
        base, facts = base_facts(model, WeightDelta(changes[0][0])), {**fitted.facts(), **self.facts()}
        return [
            make_delta(model, config, group, update, diagnostics, base, **facts)
            for group, (update, diagnostics) in zip(groups, changes, strict=True)
        ]

    def _check_sizes(self, fitted: Fitted, parts: ModelParts) -> None:
        """Refuse a fitted state of a model with keys of another length."""
        for layer, moment in fitted.moments.items():
            size = parts.key_size(layer)
            if len(moment.matrix) != size:
                raise EditError(
                    f"{self.config.editor}: the second moment of layer {layer} is of size {len(moment.matrix)}, the "
                    f"keys of {type(parts.model).__name__} have length {size}: the editor was fitted on another model. "
                    "Fit it again: editor = editor.fit(model, tokenizer)."
                )


@dataclass(frozen=True)
class SpreadEdit(LocateThenEdit):
    """A locate-then-edit method that spreads its value over several layers as in MEMIT; a subclass gives `solve`.

    Keys of earlier edits, which a method may spare, are explicit and belong to the caller: `edit` never changes them.
    For a sequence:

        for batch in batches:
            delta = editor.edit(model, tokenizer, batch)
            stack.enter_context(applied(model, delta))
            editor = editor.remember(model, tokenizer, batch)

    Attributes:
        past: Layer -> (d_ff, m), keys of earlier edits.
    """

    past: Mapping[int, Tensor] = field(default_factory=dict, repr=False)

    @property
    def remembers(self) -> bool:
        """Whether the method spares earlier edits."""
        return False

    def remember(self, model: Model, tokenizer: Tokenizer, requests: Requests) -> Self:
        """Add the keys of requests that have been edited and stay so.

        Args:
            model: The model with the edit applied, as AlphaEdit's authors do.
            tokenizer: Its tokenizer.
            requests: What was edited.

        Returns:
            A new editor with these keys in its `past`; this one is not changed.
        """
        if not requests or not self.remembers:
            return self
        fitted, parts = require(self.fitted, self.config.editor), parts_for(model, self.config)
        edits = [prepare(model, tokenizer, r, fitted.templates, self.config.kl_prompt) for r in requests]
        past = dict(self.past)
        with frozen(model):
            for layer in self.config.layers:
                keys = keys_of(parts, edits, layer, self.config.batch_tokens).cpu().double()
                past[layer] = torch.cat([past[layer], keys], 1) if layer in past else keys
        return replace(self, past=past)

    def facts(self) -> Diagnostics:
        """Return how many keys of earlier edits are spared."""
        return {"past_keys": {str(layer): keys.shape[1] for layer, keys in self.past.items()}} if self.remembers else {}

    @abstractmethod
    def solve(self, fitted: Fitted, layer: int, keys: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return A of each group, (d_ff, n) in float64, of the layer's change R A^T.

        Args:
            fitted: Second moments of the model.
            layer: The block that changes.
            keys: K of each group, (d_ff, n); R is (d, n). See `spread`.
        """

    def changes(self, parts: ModelParts, fitted: Fitted, groups: Sequence[Sequence[PreparedEdit]]) -> Sequence[Changes]:
        """Return the updates of each group by itself on the model as it is now.

        Values are optimised for all groups at once.

        Source: MEMIT (Meng et al. 2023), Algorithm 1.
        """
        config = self.config
        optimised = optimise(parts, [edit for group in groups for edit in group], max(config.layers), config)
        slices = [slice(*pair) for pair in pairwise([0, *accumulate(map(len, groups))])]
        values = [optimised.part(mine) for mine in slices]
        solve, most = partial(self.solve, fitted), config.max_change
        updates = spread(parts, groups, values, config.layers, solve, config.batch_tokens, most)
        facts = optimised.diagnostics()
        return [(update, facts[mine]) for update, mine in zip(updates, slices, strict=True)]
