"""ROME and R-ROME: one fact as a rank-one change of one MLP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.fields import AboveZero, Positive
from seesaw_cf.editors.locate import Changes, LocateThenEdit
from seesaw_cf.editors.locate.config import LocateThenEditConfig
from seesaw_cf.editors.locate.fitted import Fitted
from seesaw_cf.editors.locate.optimise import distance, optimise
from seesaw_cf.editors.locate.positions import ROME_STARTS, PreparedEdit, at_subject, average_keys
from seesaw_cf.editors.locate.spread import oriented
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.editor import Diagnostics
from seesaw_cf.models.tensors import in_float64
from seesaw_cf.models.weights import LowRank, WeightDelta, applied


@dataclass(frozen=True, kw_only=True)
class ROMEConfig(LocateThenEditConfig):
    """Settings of ROME; see `LocateThenEditConfig` for the shared ones. Exactly one layer.

    Attributes:
        consistent_keys: R-ROME: the averaged key wherever the published program mixes it with the bare prompt's key.
        bare_keys: p-ROME: the bare prompt's key everywhere, no average over contexts.
        use_moments: Multiply the key by C^-1, as in the paper; False needs no corpus (EasyEdit's default).
    """

    editor: ClassVar[str] = "rome"
    steps: Positive = 20
    clamp: AboveZero = 4.0
    consistent_keys: bool = False
    bare_keys: bool = False
    use_moments: bool = True

    @property
    def moment_layers(self) -> tuple[int, ...]:
        """The layer, or nothing without `use_moments`."""
        return self.layers if self.use_moments else ()

    def __post_init__(self) -> None:
        """Check the settings; see `LocateThenEditConfig`."""
        super().__post_init__()
        if len(self.layers) != 1:
            raise EditError(f"ROMEConfig: layers is {self.layers}, expected exactly one. Use MEMIT to edit several.")


@dataclass(frozen=True)
class ROME(LocateThenEdit):
    """Rank-One Model Editing; with `consistent_keys` R-ROME.

    Source: Meng et al. 2022, eq. 2: W + Lambda (C^-1 k)^T with Lambda = (v* - W k) / ((C^-1 k)^T k). The published
    program averages k over contexts in C^-1 k but takes the bare prompt's k and W k in Lambda; R-ROME (Gupta et al.
    2024) takes the average everywhere, p-ROME of the same authors the bare prompt's. Several requests are edited one
    after another, as published.

    Deviates: Seeded context templates; subject positions from character offsets; C^-1 k by Cholesky in float64.

    Attributes:
        config: The settings.
    """

    config_class: ClassVar[type[ROMEConfig]] = ROMEConfig
    starts: ClassVar[Sequence[tuple[str, int]]] = ROME_STARTS
    config: ROMEConfig

    def changes(self, parts: ModelParts, fitted: Fitted, groups: Sequence[Sequence[PreparedEdit]]) -> Sequence[Changes]:
        """Make all edits at once where every group has one; else those of a group in turn, on the edited model."""
        if all(len(group) == 1 for group in groups):
            rank_ones = self._rank_ones(parts, [edit for group in groups for edit in group], fitted)
            return [(update, [facts]) for update, facts in rank_ones]
        return [self._sequence(parts, fitted, group) for group in groups]

    def _sequence(self, parts: ModelParts, fitted: Fitted, edits: Sequence[PreparedEdit]) -> Changes:
        updates: dict[str, LowRank] = {}
        diagnostics: list[Diagnostics] = []
        for edit in edits:
            with applied(parts.model, WeightDelta(updates)):
                ((update, facts),) = self._rank_ones(parts, [edit], fitted)
            updates = {name: _stacked(updates.get(name), change) for name, change in update.items()}
            diagnostics.append(facts)
        return updates, diagnostics

    def _rank_ones(
        self, parts: ModelParts, edits: Sequence[PreparedEdit], fitted: Fitted
    ) -> list[tuple[dict[str, LowRank], Diagnostics]]:
        """Return the rank-one update of each edit by itself on the model as it is now, and its diagnostics."""
        if not edits:
            raise EditError("no edits were given, expected at least one.")
        layer = self.config.layers[0]
        rows = [row for edit in edits for row in edit.rows]
        seen = at_subject(parts, rows, layer, max_tokens=self.config.batch_tokens)
        share = 1.0 if self.config.bare_keys else None
        mean_keys = average_keys(in_float64(seen.keys), edits, share)
        mean_values = average_keys(in_float64(seen.values), edits, share)
        bare = [sum(len(edit.rows) for edit in edits[:number]) for number in range(len(edits))]
        keys = mean_keys if self.config.consistent_keys else in_float64(seen.keys[bare])
        directions = torch.stack([self._direction(key, layer, fitted) for key in mean_keys])
        along = (keys * directions).sum(1)
        optimised = optimise(parts, edits, layer, self.config, at="mlp", reach=self._reach(parts, along))
        answers: list[tuple[dict[str, LowRank], Diagnostics]] = []
        for number, facts in enumerate(optimised.diagnostics()):
            start, direction = in_float64(optimised.initial[number]), directions[number]
            value = mean_values[number] if self.config.consistent_keys else start
            right = distance(start, in_float64(optimised.shift[number]), value) / along[number]
            update = oriented(parts, right[:, None], direction[:, None], layer)
            facts = {**facts, "key_norm": float(keys[number].norm()), "key_along_direction": float(along[number])}
            answers.append(({parts.weight_name(layer): update}, facts))
        return answers

    def _reach(self, parts: ModelParts, along: Tensor) -> Tensor | None:
        """Return the longest shifts (n,) with changes that are no longer than `max_change` allows."""
        most, weight = self.config.max_change, parts.weight(self.config.layers[0])
        return None if most is None else most * float(in_float64(weight.detach()).norm()) * along.abs()

    def _direction(self, key: Tensor, layer: int, fitted: Fitted) -> Tensor:
        """Return u, (d_ff,), of unit length: along C^-1 k, or along k itself without second moments."""
        if self.config.use_moments:
            key = fitted.factor(layer, key).inverse_times(key[:, None])[:, 0]
        unit: Tensor = key / key.norm()
        return unit


def _stacked(first: LowRank | None, second: LowRank) -> LowRank:
    """Return the sum of two low-rank updates as one, of rank as large as both together."""
    if first is None:
        return second
    return LowRank(torch.cat([first.left, second.left], 1), torch.cat([first.right, second.right], 0))
