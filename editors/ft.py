"""Constrained fine-tuning of one MLP projection: the baseline of the ROME and MEMIT papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor
from torch.func import functional_call
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.arguments import check_public
from seesaw_cf.editors.locate.checks import check_requests, make_delta
from seesaw_cf.editors.locate.config import check_settings
from seesaw_cf.editors.locate.fitted import parts_for
from seesaw_cf.editors.locate.positions import EditRow, encode_text, prepare
from seesaw_cf.editors.locate.presets import preset
from seesaw_cf.editors.locate.resume import ResumableRows, lay_out
from seesaw_cf.errors import EditError
from seesaw_cf.models.architectures import Architecture, ModelParts
from seesaw_cf.models.hooks import first_tensor, frozen
from seesaw_cf.models.weights import WeightDelta, base_facts
from seesaw_cf.types import EditRequest

__all__ = ["FT", "FTConfig"]


@dataclass(frozen=True, kw_only=True)
class FTConfig:
    """Settings of constrained fine-tuning.

    Attributes:
        layers: Blocks whose MLP output projection (weight and bias) is trained, from 0.
        learning_rate: Of Adam.
        steps: Most passes over the requests.
        weight_decay: Of Adam (an L2 term).
        norm_constraint: No entry moves further than this from its old value; None = no limit.
        batch_size: Requests per step.
        objective: "last_token" as published: every target token is read from the logits of the prompt's last token
            (a bag of tokens). "teacher_forced": each from the position before it.
        bos_in_target: Train the BOS token as if it were the target's first, as EasyEdit does on tokenizers that add one
            (only "last_token"); for comparisons with its numbers.
        stop_below: A batch whose loss is below makes no step; training ends when the mean loss is below.
        seed: Not used (nothing is random); here so that all configs have one.
        allow_identity: Accept target_new == target_true (the identity control).
        architecture: Row for a model type that the table lacks.
    """

    layers: tuple[int, ...]
    learning_rate: float = 5e-4
    steps: int = 25
    weight_decay: float = 0.0
    norm_constraint: float | None = 5e-4
    batch_size: int = 64
    objective: Literal["last_token", "teacher_forced"] = "last_token"
    bos_in_target: bool = False
    stop_below: float = 1e-2
    seed: int = 0
    allow_identity: bool = False
    architecture: Architecture | None = None

    def __post_init__(self) -> None:
        """Checks types, numbers and the objective."""
        check_settings(self)

    @classmethod
    def for_model(cls, model: PreTrainedModel) -> Self:
        """The published settings for a known model; a stated rule, with a warning, otherwise (see `preset`)."""
        return cls(**preset("ft", model))


@dataclass(frozen=True)
class FT:
    """Fine-tuning under an L-infinity constraint, on a copy of the trained weights.

    Source: Zhu et al. 2020, as run in the ROME and MEMIT papers (memit/baselines/ft/ft_main.py).

    Deviates: Only the named projections are trained, where the published program also takes any parameter whose name
    contains the text ("transformer.h.2" matches h.20). BOS is not part of the target (switch: bos_in_target). Padding
    is masked by length and not by the id of the unknown token.

    Attributes:
        config: The settings.
        corpus: Not used; accepted so that all editors are made alike.
    """

    config_class: ClassVar[type[FTConfig]] = FTConfig
    config: FTConfig
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
            Dense changes in float32 (float64 for float64 models).

        Raises:
            EditError: Contradictory requests, or a loss that is not finite.
            PromptError: A prompt that cannot be encoded as asked.
            UnsupportedModelError: A model or layer that cannot be edited.
        """
        check_requests(requests, "FT", self.config.allow_identity)
        parts = parts_for(model, self.config)
        rows = [prepare(model, tokenizer, request, ("{}",)).rows[0] for request in requests]
        if self.config.objective == "last_token":
            bos = encode_text(tokenizer, "") if self.config.bos_in_target else ()
            rows = [
                EditRow(row.ids[: len(row.ids) - len(row.targets) + 1], row.lookup, bos + row.targets) for row in rows
            ]
        with frozen(model):
            updates, losses = _train(parts, rows, self.config, requests)
        diagnostics = [{"steps": len(losses), "first_loss": losses[0], "final_loss": losses[-1]} for _ in requests]
        base = base_facts(model, WeightDelta(updates))
        return make_delta("ft", self.config, requests, updates, diagnostics, losses=losses, base=base)


def _train(
    parts: ModelParts, rows: Sequence[EditRow], config: FTConfig, requests: Sequence[EditRequest]
) -> tuple[dict[str, Tensor], list[float]]:
    """Adam on copies of the weights; returns the changes and the loss of every batch in order."""
    old = _trained(parts, config.layers)
    new = {name: value.clone().requires_grad_() for name, value in old.items()}
    optimiser = torch.optim.Adam(list(new.values()), lr=config.learning_rate, weight_decay=config.weight_decay)
    starts = range(0, len(rows), config.batch_size)
    chunks = [rows[start : start + config.batch_size] for start in starts]
    layouts = [lay_out(parts, chunk, min(config.layers), parts.n_layers - 1, keep_prefix=True) for chunk in chunks]
    losses: list[float] = []
    for _ in range(config.steps):
        total = 0.0
        for chunk, layout in zip(chunks, layouts):
            loss = _loss(parts, layout, chunk, new, config)
            losses.append(float(loss.detach()))
            if not abs(losses[-1]) < float("inf"):
                raise EditError(
                    f"FT: the loss is {losses[-1]} at step {len(losses)} of editing {requests[0].text!r} (and "
                    f"{len(requests) - 1} more), expected a finite number. The model is unchanged. Lower learning_rate."
                )
            total += losses[-1] * len(chunk)
            if losses[-1] >= config.stop_below:
                _step(optimiser, loss, new, old, config.norm_constraint)
        if total / len(rows) < config.stop_below:
            break
    return {name: (value - old[name]).detach() for name, value in new.items()}, losses


def _trained(parts: ModelParts, layers: Sequence[int]) -> dict[str, Tensor]:
    """Full name -> copy of each trained parameter, in float32 at least."""
    found = {}
    for layer in layers:
        prefix = parts.weight_name(layer).removesuffix("weight")
        for name, parameter in parts.mlp_out(layer).named_parameters():
            wide = torch.promote_types(parameter.dtype, torch.float32)
            found[prefix + name] = parameter.detach().to(wide, copy=True)
    return found


def _step(
    optimiser: torch.optim.Adam, loss: Tensor, new: dict[str, Tensor], old: dict[str, Tensor], limit: float | None
) -> None:
    """One Adam step, then back into the box around the old values."""
    for value, gradient in zip(new.values(), torch.autograd.grad(loss, list(new.values()))):
        value.grad = gradient
    optimiser.step()
    if limit is not None:
        with torch.no_grad():
            for name, value in new.items():
                value.clamp_(old[name] - limit, old[name] + limit)


def _loss(
    parts: ModelParts, layout: ResumableRows, rows: Sequence[EditRow], new: dict[str, Tensor], config: FTConfig
) -> Tensor:
    """Mean over rows of the mean over target tokens of -log p, in nats."""
    hidden = layout.hidden
    for number, (block, args, kwargs) in enumerate(layout.calls):
        prefix = f"{parts.row.blocks}.{min(config.layers) + number}."
        own = {name.removeprefix(prefix): value for name, value in new.items() if name.startswith(prefix)}
        if own:
            cast = {name: value.to(parts.stream_dtype) for name, value in own.items()}
            hidden = first_tensor(functional_call(block, cast, (hidden, *args), kwargs))
        else:
            hidden = first_tensor(block(hidden, *args, **kwargs))
    places, targets, weights = [], [], []
    for number, row in enumerate(rows):
        for k, token in enumerate(row.targets):
            position = len(row.ids) - 1 if config.objective == "last_token" else len(row.ids) - len(row.targets) + k
            places.append(layout.at(number, position))
            targets.append(token)
            weights.append(1.0 / len(row.targets) / len(rows))
    flat = hidden.reshape(-1, hidden.shape[-1])
    log_p = parts.logits(flat[torch.tensor(places, device=flat.device)]).log_softmax(-1)
    chosen = log_p.gather(1, torch.tensor(targets, device=log_p.device)[:, None])[:, 0]
    return -(chosen * torch.tensor(weights, dtype=log_p.dtype, device=log_p.device)).sum()


check_public(globals())
