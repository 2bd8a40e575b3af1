"""LoRA fine-tuning: the plain parameter-efficient baseline, trained on the edit requests alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from seesaw_cf.base.fields import AboveZero, Positive
from seesaw_cf.editors.ft import FineTuning
from seesaw_cf.editors.training import Method, TuningConfig
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.tensors import in_float64
from seesaw_cf.models.weights import LowRank


@dataclass(frozen=True, kw_only=True)
class LoRAConfig(TuningConfig):
    """Settings of LoRA fine-tuning; see `TuningConfig` for the shared ones.

    The defaults are EasyEdit's. A model's own settings (`for_model`) differ: these, on every block, leave no
    neighbour and little fluency of SmolLM2-135M after one edit.

    Attributes:
        rank: Rank of each change.
        alpha: The change is alpha / rank times the product of its factors.
    """

    editor: ClassVar[str] = "lora"
    learning_rate: AboveZero = 5e-3
    steps: Positive = 70
    rank: Positive = 8
    alpha: AboveZero = 32.0


@dataclass(frozen=True)
class LoRA(FineTuning):
    """Trains low-rank changes of MLP output projections so that every prompt continues with its new target.

    The change is added to the projections' outputs by hooks while training, so the base is never written.

    Source: Hu et al. 2021, arXiv 2106.09685, equation 3; the config's defaults for rank, alpha and learning rate are
    those of EasyEdit's hparams/LoRA, a model's preset differs.

    Deviates: MLP output projections instead of query and value, so that it changes what the other editors change; no
    dropout; training stops when the loss is small.

    Attributes:
        config: The settings.
        corpus: Not used; accepted so that all editors are made alike.
    """

    config_class: ClassVar[type[LoRAConfig]] = LoRAConfig
    config: LoRAConfig
    corpus: Sequence[str] | None = field(default=None, repr=False)

    def _method(self, parts: ModelParts, tokenizer: PreTrainedTokenizerBase) -> Method:
        """Return a method that trains two factors for every block of the config."""
        config = self.config
        start = {name: value for layer in config.layers for name, value in _start(parts, layer, config).items()}
        scales = {layer: self._scale(parts, layer) for layer in config.layers}
        return Method(start, partial(_project, parts.row.orientation == "conv1d", scales))

    def _scale(self, parts: ModelParts, layer: int) -> float:
        """Return what the product of a layer's factors is multiplied by."""
        unit = float(in_float64(parts.weight(layer).detach()).square().mean().sqrt()) if self.config.relative else 1.0
        return self.config.alpha / self.config.rank * unit

    def _updates(self, parts: ModelParts, method: Method, values: Mapping[str, Tensor]) -> dict[str, LowRank | Tensor]:
        """Return parameter name -> change of rank `config.rank`."""
        return {
            parts.weight_name(layer): LowRank(
                values[f"left.{layer}"] * self._scale(parts, layer), values[f"right.{layer}"]
            )
            for layer in self.config.layers
        }


def _start(parts: ModelParts, layer: int, config: LoRAConfig) -> dict[str, Tensor]:
    """Return factors of a zero change, (rows, rank) and (rank, columns): the first that the input meets is random."""
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


def _project(
    conv1d: bool, scales: Mapping[int, float], layer: int, values: Mapping[str, Tensor], x: Tensor, output: Tensor
) -> Tensor:
    """Add x dW to the projection's output: each group's own change to its own tokens."""
    left, right = values[f"left.{layer}"], values[f"right.{layer}"]
    factors = (left, right) if conv1d else (right.mT, left.mT)
    return output + (x.to(left.dtype) @ factors[0] @ factors[1] * scales[layer]).to(output.dtype)
