"""LoRA fine-tuning: the plain parameter-efficient baseline, trained on the edit requests alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.arguments import check_public
from seesaw_cf.editors.locate.checks import check_requests, make_delta
from seesaw_cf.editors.locate.config import check_settings
from seesaw_cf.editors.locate.fitted import parts_for
from seesaw_cf.editors.locate.positions import EditRow, prepare
from seesaw_cf.errors import EditError
from seesaw_cf.models.architectures import Architecture, ModelParts, model_parts
from seesaw_cf.models.hooks import frozen, hooked
from seesaw_cf.models.packing import pad
from seesaw_cf.models.weights import LowRank, WeightDelta, base_facts
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
        """Every block, with EasyEdit's rank, alpha and learning rate."""
        return cls(layers=tuple(range(model_parts(model).n_layers)))


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
        check_requests(requests, "lora", self.config.allow_identity)
        parts = parts_for(model, self.config)
        rows = [prepare(model, tokenizer, request, ("{}",)).rows[0] for request in requests]
        with frozen(model):
            updates, losses = _train(parts, rows, self.config)
        diagnostics = [{"steps": len(losses), "first_loss": losses[0], "final_loss": losses[-1]} for _ in requests]
        base = base_facts(model, WeightDelta(updates))
        return make_delta("lora", self.config, requests, updates, diagnostics, losses=losses, base=base)


def _train(parts: ModelParts, rows: Sequence[EditRow], config: LoRAConfig) -> tuple[dict[str, LowRank], list[float]]:
    """Adam on the factors; returns the changes and the mean loss of every pass."""
    factors = {parts.weight_name(layer): _start(parts, layer, config) for layer in config.layers}
    scale = config.alpha / config.rank
    trained = [factor for update in factors.values() for factor in (update.left, update.right)]
    optimiser = torch.optim.Adam(trained, lr=config.learning_rate, weight_decay=config.weight_decay)
    chunks = [rows[start : start + config.batch_size] for start in range(0, len(rows), config.batch_size)]
    losses: list[float] = []
    hooks = [_add(parts, layer, factors[parts.weight_name(layer)], scale) for layer in config.layers]
    with hooked(hooks):
        for _ in range(config.steps):
            total = 0.0
            for chunk in chunks:
                loss = _loss(parts, chunk)
                total += float(loss.detach()) * len(chunk)
                if float(loss.detach()) < config.stop_below:
                    continue
                for factor, gradient in zip(trained, torch.autograd.grad(loss, trained), strict=True):
                    factor.grad = gradient
                optimiser.step()
            losses.append(total / len(rows))
            if not math.isfinite(losses[-1]):
                raise EditError(
                    f"lora: the loss is {losses[-1]} in pass {len(losses)} over {len(rows)} request(s), expected a "
                    "finite number. The model is unchanged. Lower learning_rate."
                )
            if losses[-1] < config.stop_below:
                break
    return {
        name: LowRank((update.left * scale).detach(), update.right.detach()) for name, update in factors.items()
    }, losses


def _start(parts: ModelParts, layer: int, config: LoRAConfig) -> LowRank:
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
    return LowRank(left.contiguous().requires_grad_(), right.contiguous().requires_grad_())


def _add(parts: ModelParts, layer: int, update: LowRank, scale: float) -> RemovableHandle:
    """Registers a hook that adds x ΔW to the projection's output."""

    def hook(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        x = args[0].to(update.left.dtype)
        factors = (update.left, update.right) if parts.row.orientation == "conv1d" else (update.right.T, update.left.T)
        return output + (x @ factors[0] @ factors[1] * scale).to(output.dtype)

    return parts.mlp_out(layer).register_forward_hook(hook)


def _loss(parts: ModelParts, rows: Sequence[EditRow]) -> Tensor:
    """Mean over rows of the mean over target tokens of -log p, in nats."""
    ids, mask = pad([row.ids for row in rows], parts.model.device)
    logits = parts.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
    losses = []
    for number, row in enumerate(rows):
        asked = logits[number, len(row.ids) - len(row.targets) : len(row.ids)]
        wide = asked.to(torch.promote_types(asked.dtype, torch.float32))
        losses.append(nn.functional.cross_entropy(wide, torch.tensor(row.targets, device=wide.device)))
    return torch.stack(losses).mean()


check_public(globals())
