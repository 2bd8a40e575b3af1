"""FT and LoRA: fine-tuning of MLP output projections, whole and by low-rank changes, on the requests alone."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor

from seesaw_cf.base.fields import AboveZero, Positive
from seesaw_cf.editors.locate import EditsGroups
from seesaw_cf.editors.locate.checks import check_requests, make_delta
from seesaw_cf.editors.locate.fitted import parts_for
from seesaw_cf.editors.locate.positions import InputRow, encode_text, prepare
from seesaw_cf.editors.training import Method, TuningConfig, train
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.editor import Model, Requests, Tokenizer
from seesaw_cf.models.hooks import frozen
from seesaw_cf.models.tensors import in_float64
from seesaw_cf.models.weights import LowRank, WeightDelta

_COPIES = 5
"""Of each trained parameter: its value, its gradient, two moments of Adam and the value kept at the end."""


@dataclass(frozen=True)
class FineTuning(EditsGroups):
    """An editor that trains MLP output projections; a subclass defines what is trained and what change that makes.

    Attributes:
        config: The settings.
        corpus: Not used; accepted so that all editors are made alike.
    """

    config: TuningConfig
    corpus: Sequence[str] | None = field(default=None, repr=False)

    @abstractmethod
    def _method(self, parts: ModelParts, tokenizer: Tokenizer) -> Method:
        """Return what is trained on a model."""

    @abstractmethod
    def _updates(self, parts: ModelParts, method: Method, values: Mapping[str, Tensor]) -> dict[str, LowRank | Tensor]:
        """Return parameter name -> change, from one group's trained parameters."""

    def fit(self, model: Model, tokenizer: Tokenizer) -> Self:
        """Return self: there is nothing to prepare."""
        return self

    def _edit_groups(self, model: Model, tokenizer: Tokenizer, groups: Sequence[Requests]) -> list[WeightDelta]:
        """Train as many groups at once as memory allows, and return one delta for each."""
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
                    facts = {"steps": len(log), "first_loss": log[0], "final_loss": log[-1]}
                    updates, all_facts = self._updates(parts, method, own), [facts] * len(requests)
                    deltas.append(make_delta(model, config, requests, updates, all_facts, losses=list(log)))
        return deltas


def _groups_at_once(parts: ModelParts, parameters: Mapping[str, Tensor]) -> int:
    """Return how many groups to train at once: as many as take half the memory of the model, at least one."""
    model, own = (sum(tensor.nbytes for tensor in of) for of in (parts.model.parameters(), parameters.values()))
    return max(1, model // (2 * _COPIES * own))


@dataclass(frozen=True, kw_only=True)
class FTConfig(TuningConfig):
    """Settings of constrained fine-tuning of weights and biases; see `TuningConfig` for the shared ones.

    Attributes:
        norm_constraint: No entry moves further than this from its old value; None = no limit.
        objective: "last_token" as published: every target token is read from the logits of the prompt's last token
            (a bag of tokens). "teacher_forced": each from the position before it.
        bos_in_target: Train the BOS token as if it were the target's first, as EasyEdit does on tokenizers that add one
            (only "last_token"); for comparisons with its numbers.
    """

    editor: ClassVar[str] = "ft"
    learning_rate: AboveZero = 5e-4
    norm_constraint: AboveZero | None = 5e-4
    objective: Literal["last_token", "teacher_forced"] = "last_token"
    bos_in_target: bool = False


@dataclass(frozen=True)
class FT(FineTuning):
    """Fine-tuning under an L-infinity constraint, on a copy of the trained weights.

    Source: Zhu et al. 2020, as run in the ROME and MEMIT papers (memit/baselines/ft/ft_main.py).

    Deviates: Only the named projections are trained, where the published program also takes any parameter with a name
    containing the text ("transformer.h.2" matches h.20). BOS is not part of the target (switch: bos_in_target). Padding
    is masked by length and not by the id of the unknown token.

    Attributes:
        config: The settings.
        corpus: Not used; accepted so that all editors are made alike.
    """

    config_class: ClassVar[type[FTConfig]] = FTConfig
    config: FTConfig

    def _method(self, parts: ModelParts, tokenizer: Tokenizer) -> Method:
        """Return a method that trains copies of weights (and biases), kept within `norm_constraint` of the old ones."""
        config = self.config
        start = _trained(parts, config.layers)
        units = {name: float(value.square().mean().sqrt()) for name, value in start.items() if config.relative}
        cut = _last_token(tokenizer, config.bos_in_target) if config.objective == "last_token" else None
        settle = partial(_into_box, start, units, config.norm_constraint)
        return Method(start, partial(_with_weights, parts), settle, cut, units)

    def _updates(self, parts: ModelParts, method: Method, values: Mapping[str, Tensor]) -> dict[str, LowRank | Tensor]:
        """Return parameter name -> dense change, new minus old."""
        return {name: new - method.start[name] for name, new in values.items()}


def _last_token(tokenizer: Tokenizer, bos_in_target: bool) -> Callable[[InputRow], InputRow]:
    """Cut a row behind the prompt, where every target token is read."""
    bos = encode_text(tokenizer, "") if bos_in_target else ()
    return lambda row: InputRow(row.ids[: len(row.ids) - len(row.targets) + 1], row.lookup, bos + row.targets)


def _trained(parts: ModelParts, layers: Sequence[int]) -> dict[str, Tensor]:
    """Return full name -> copy of each trained parameter, in float32 at least."""
    weights = {}
    for layer in layers:
        prefix = parts.weight_name(layer).removesuffix("weight")
        for name, parameter in parts.mlp_out(layer).named_parameters():
            wide = torch.promote_types(parameter.dtype, torch.float32)
            weights[prefix + name] = parameter.detach().to(wide, copy=True)
    return weights


def _with_weights(parts: ModelParts, layer: int, values: Mapping[str, Tensor], x: Tensor, output: Tensor) -> Tensor:
    """Return what each group's own weights give for its own tokens, (groups, tokens, d)."""
    name = parts.weight_name(layer)
    weight = values[name].to(x.dtype)
    new = x @ (weight if parts.row.orientation == "conv1d" else weight.mT)
    bias = values.get(name.removesuffix("weight") + "bias")
    return new if bias is None else new + bias.to(x.dtype)[:, None]


def _into_box(
    old: Mapping[str, Tensor], units: Mapping[str, float], limit: float | None, values: Mapping[str, Tensor]
) -> None:
    """Put every entry back to within `limit` units of its old value."""
    if limit is not None:
        with torch.no_grad():
            for name, value in values.items():
                reach = limit * units.get(name, 1.0)
                value.clamp_(old[name] - reach, old[name] + reach)


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

    def _method(self, parts: ModelParts, tokenizer: Tokenizer) -> Method:
        """Return a method that trains two factors for every block of the config."""
        config = self.config
        start = {name: value for layer in config.layers for name, value in _start(parts, layer, config).items()}
        scales = {layer: self._scale(parts, layer) for layer in config.layers}
        return Method(start, partial(_with_factors, parts.row.orientation == "conv1d", scales))

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


def _with_factors(
    conv1d: bool, scales: Mapping[int, float], layer: int, values: Mapping[str, Tensor], x: Tensor, output: Tensor
) -> Tensor:
    """Add x dW to the projection's output: each group's own change to its own tokens."""
    left, right = values[f"left.{layer}"], values[f"right.{layer}"]
    factors = (left, right) if conv1d else (right.mT, left.mT)
    return output + (x.to(left.dtype) @ factors[0] @ factors[1] * scales[layer]).to(output.dtype)
