"""Editors that train MLP output projections: FT and LoRA."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.arguments import check_public
from seesaw_cf.editors.groups import EditsGroups
from seesaw_cf.editors.locate.checks import check_requests, make_delta, shortened
from seesaw_cf.editors.locate.fitted import parts_for
from seesaw_cf.editors.locate.positions import prepare
from seesaw_cf.editors.training import Method, TuningConfig, train
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.hooks import frozen
from seesaw_cf.models.weights import LowRank, WeightDelta, base_facts
from seesaw_cf.types import EditRequest

_COPIES = 5
"""Of each trained parameter: its value, its gradient, two moments of Adam and the value kept at the end."""


@dataclass(frozen=True)
class FineTuning(EditsGroups):
    """An editor that trains MLP output projections; a subclass says what is trained and what change that makes.

    Attributes:
        config: The settings.
        corpus: Not used; accepted so that all editors are made alike.
    """

    config: TuningConfig
    corpus: Sequence[str] | None = None

    @abstractmethod
    def _method(self, parts: ModelParts, tokenizer: PreTrainedTokenizerBase) -> Method:
        """What is trained on a model."""

    @abstractmethod
    def _updates(self, parts: ModelParts, method: Method, values: Mapping[str, Tensor]) -> dict[str, LowRank | Tensor]:
        """Parameter name -> change, from one group's trained parameters."""

    def fit(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Self:
        """Nothing to prepare."""
        return self

    def _edit_groups(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, groups: Sequence[Sequence[EditRequest]]
    ) -> list[WeightDelta]:
        """As many groups at once as memory allows."""
        config = self.config
        for group in groups:
            check_requests(group, config.editor, config.allow_identity)
        parts = parts_for(model, config)
        method = self._method(parts, tokenizer)
        rows = [[prepare(model, tokenizer, request, ("{}",)).rows[0] for request in group] for group in groups]
        if method.cut is not None:
            rows = [[method.cut(row) for row in group] for group in rows]
        size, deltas = _groups_at_once(parts, method.start), list[WeightDelta]()
        with frozen(model):
            for first in range(0, len(groups), size):
                part = slice(first, first + size)
                values, losses = train(parts, rows[part], method, config)
                for number, (requests, log) in enumerate(zip(groups[part], losses, strict=True)):
                    own = {name: value[number].clone() for name, value in values.items()}
                    updates = shortened(model, self._updates(parts, method, own), config.max_change)
                    deltas.append(_delta(model, config, requests, updates, log))
        return deltas


def _delta(
    model: PreTrainedModel,
    config: TuningConfig,
    requests: Sequence[EditRequest],
    updates: Mapping[str, LowRank | Tensor],
    losses: Sequence[float],
) -> WeightDelta:
    facts = {"steps": len(losses), "first_loss": losses[0], "final_loss": losses[-1]}
    base = base_facts(model, WeightDelta(updates))
    diagnostics = [facts for _ in requests]
    return make_delta(config.editor, config, requests, updates, diagnostics, losses=list(losses), base=base)


def _groups_at_once(parts: ModelParts, parameters: Mapping[str, Tensor]) -> int:
    """As many as take half the memory of the model, at least one."""
    model = sum(p.numel() * p.element_size() for p in parts.model.parameters())
    return max(1, model // (2 * _COPIES * sum(p.numel() * p.element_size() for p in parameters.values())))


check_public(globals())
