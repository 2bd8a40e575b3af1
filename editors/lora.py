"""LoRA fine-tuning: the plain parameter-efficient baseline, trained on the edit requests alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.arguments import check_public
from seesaw_cf.editors.locate.config import check_settings
from seesaw_cf.editors.locate.fitted import parts_for
from seesaw_cf.editors.locate.presets import preset
from seesaw_cf.editors.training import Method, Tuned, delta, fine_tuned
from seesaw_cf.errors import EditError
from seesaw_cf.models.architectures import Architecture, ModelParts
from seesaw_cf.models.weights import LowRank, WeightDelta
from seesaw_cf.types import EditRequest

__all__ = ["LoRA", "LoRAConfig"]


@dataclass(frozen=True, kw_only=True)
class LoRAConfig:
    """Settings of LoRA fine-tuning.

    Attributes:
        layers: Blocks whose MLP output projection gets a low-rank change, from 0.
        rank: Rank of each change.
        alpha: The change is alpha / rank times the product of its factors.
        learning_rate: Of Adam.
        steps: Most passes over the requests.
        weight_decay: Of Adam (an L2 term on the factors).
        batch_size: Requests per step.
        stop_below: A batch whose loss is below makes no step; training ends when the mean loss of a pass is below
            (nats per target token).
        seed: For the random first factor.
        allow_identity: Accept target_new == target_true (the identity control).
        architecture: Row for a model type that the table lacks.
    """

    editor: ClassVar[str] = "lora"
    layers: tuple[int, ...]
    rank: int = 8
    alpha: float = 32.0
    learning_rate: float = 5e-3
    steps: int = 70
    weight_decay: float = 0.0
    batch_size: int = 64
    stop_below: float = 1e-2
    seed: int = 0
    allow_identity: bool = False
    architecture: Architecture | None = None

    def __post_init__(self) -> None:
        """Checks the numbers."""
        check_settings(self)
        if self.rank < 1 or not self.alpha > 0:
            raise EditError(f"LoRAConfig: rank is {self.rank} and alpha {self.alpha}, expected numbers above 0.")

    @classmethod
    def for_model(cls, model: PreTrainedModel) -> Self:
        """What was found for a known model; a stated rule, with a warning, otherwise (see `preset`).

        EasyEdit's settings (every block, rank 8, alpha 32, learning rate 5e-3, 70 steps) are not among them: on
        SmolLM2-135M no neighbour and little fluency is left after one edit.
        """
        return cls(**preset("lora", model))


@dataclass(frozen=True)
class LoRA:
    """Trains low-rank changes of MLP output projections so that every prompt continues with its new target.

    The change is added to the projections' outputs by hooks while training, so the base is never written.

    Source: Hu et al. 2021, arXiv 2106.09685, equation 3; rank, alpha and learning rate as in EasyEdit's hparams/LoRA.

    Deviates: MLP output projections instead of query and value, so that it changes what the other editors change; no
    dropout; training stops when the loss is small.

    Attributes:
        config: The settings.
        corpus: Not used; accepted so that all editors are made alike.
    """

    config_class: ClassVar[type[LoRAConfig]] = LoRAConfig
    config: LoRAConfig
    corpus: Sequence[str] | None = None

    def fit(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Self:
        """Nothing to prepare."""
        return self

    def edit(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Sequence[EditRequest]
    ) -> WeightDelta:
        """Trains on all requests together.

        Args:
            model: Left as it is.
            tokenizer: The model's tokenizer.
            requests: n requests; their order decides the batches.

        Returns:
            Low-rank changes of rank `config.rank` in float32 (float64 for float64 models).

        Raises:
            EditError: Contradictory requests, or a loss that is not finite.
            PromptError: A prompt that cannot be encoded as asked.
            UnsupportedModelError: A model or layer that cannot be edited.
        """
        return self._edit_groups(model, tokenizer, [requests])[0]

    def edit_each(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, requests: Sequence[EditRequest]
    ) -> list[WeightDelta]:
        """Edits every request by itself, as `edit(model, tokenizer, [request])` would, in a fraction of the time.

        Args:
            model: Left as it is.
            tokenizer: The model's tokenizer.
            requests: n requests; they may contradict each other.

        Returns:
            n deltas, in order; they agree with those of `edit` to rounding.

        Raises:
            SeesawError: See `edit`.
        """
        return self._edit_groups(model, tokenizer, [[request] for request in requests])

    def _edit_groups(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, groups: Sequence[Sequence[EditRequest]]
    ) -> list[WeightDelta]:
        config = self.config
        parts = parts_for(model, config)
        start = {name: value for layer in config.layers for name, value in _start(parts, layer, config).items()}
        project = partial(_project, parts.row.orientation == "conv1d", config.alpha / config.rank)
        made = fine_tuned(model, tokenizer, groups, parts, Method(start, project), config)
        return [delta(model, config, self._updates(parts, one), one) for one in made]

    def _updates(self, parts: ModelParts, one: Tuned) -> dict[str, LowRank | Tensor]:
        scale = self.config.alpha / self.config.rank
        return {
            parts.weight_name(layer): LowRank(one.values[f"left.{layer}"] * scale, one.values[f"right.{layer}"])
            for layer in self.config.layers
        }


def _start(parts: ModelParts, layer: int, config: LoRAConfig) -> dict[str, Tensor]:
    """Factors of a change that is zero: the one the input meets first is random, the other zero."""
    weight = parts.weight(layer)
    wide = torch.promote_types(weight.dtype, torch.float32)
    generator = torch.Generator().manual_seed(config.seed * 100_003 + layer)
    size = parts.key_size(layer)
    first = torch.randn(size, config.rank, generator=generator, dtype=torch.float64).to(
        weight.device, wide
    ) / math.sqrt(size)
    other = torch.zeros(weight.numel() // size, config.rank, device=weight.device, dtype=wide)
    left, right = (first, other.T) if parts.row.orientation == "conv1d" else (other, first.T)
    return {f"left.{layer}": left.contiguous(), f"right.{layer}": right.contiguous()}


def _project(conv1d: bool, scale: float, layer: int, values: Mapping[str, Tensor], x: Tensor, output: Tensor) -> Tensor:
    """Adds x dW to the projection's output: each group's own change to its own tokens."""
    left, right = values[f"left.{layer}"], values[f"right.{layer}"]
    factors = (left, right) if conv1d else (right.mT, left.mT)
    return output + (x.to(left.dtype) @ factors[0] @ factors[1] * scale).to(output.dtype)


check_public(globals())
