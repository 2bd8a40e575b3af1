"""Fine-tuning of MLP output projections: one change for a group of requests, or a separate change for each of many.

Groups that are trained at once share every pass through the blocks that are not trained; each has parameters of its
own, and Adam works entry by entry, so that each group is trained as it would be alone, up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.fields import Positive
from seesaw_cf.editors.locate.config import MethodConfig
from seesaw_cf.editors.locate.positions import InputRow
from seesaw_cf.editors.locate.resume import ResumableRows, lay_out
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.hooks import hooked
from seesaw_cf.models.tensors import log_probabilities

Groups = Sequence[Sequence[InputRow]]
"""The rows of each group; there is one group, or every group has as many rows as fit into one batch."""
Project = Callable[[int, Mapping[str, Tensor], Tensor, Tensor], Tensor]
"""(block, parameters (groups, ...), input (groups, tokens, d_ff), output (groups, tokens, d)) -> the new output."""


@dataclass(frozen=True, kw_only=True)
class TuningConfig(MethodConfig):
    """Settings that FT and LoRA share.

    Attributes:
        relative: Sizes are in units of the root mean square of each weight, so that they mean the same on models with
            weights of other sizes: FT's `learning_rate` and `norm_constraint`, LoRA's `alpha`.
        batch_size: Requests per step.
        stop_below: A batch with a loss below this makes no step; training ends when the mean loss of a pass is below
            (nats per target token).
    """

    relative: bool = False
    batch_size: Positive = 64
    stop_below: float = 1e-2


@dataclass(frozen=True)
class Method:
    """What is trained, and how it enters the model.

    Attributes:
        start: Name -> first value of a parameter, the same for every group.
        project: What the parameters make of a projection's input and output.
        settle: Called after every step with the parameters (groups, ...), to put them back where they may be.
        cut: For reading all target tokens of a row from its last position: what to make of each request's row.
        units: Name -> what the learning rate of a parameter is multiplied by; 1 where there is none.
    """

    start: Mapping[str, Tensor]
    project: Project
    settle: Callable[[Mapping[str, Tensor]], object] = dict
    cut: Callable[[InputRow], InputRow] | None = None
    units: Mapping[str, float] = field(default_factory=dict)


def train(
    parts: ModelParts, groups: Groups, method: Method, config: TuningConfig
) -> tuple[dict[str, Tensor], list[list[float]]]:
    """Lower, with Adam, the mean over a group's rows of the mean over target tokens of -log p, in nats.

    Each target token is read from the position before it, or, for a method that cuts rows, from the last position.

    Args:
        parts: The model, in eval mode; unchanged.
        groups: See `Groups`.
        method: What is trained.
        config: Steps and rates.

    Returns:
        Name -> (groups, ...), the trained parameters; and for each group the loss of each batch of each pass.

    Raises:
        EditError: A loss that is not finite.
    """
    values = {name: torch.stack([value] * len(groups)).requires_grad_() for name, value in method.start.items()}
    rates = [(value, config.learning_rate * method.units.get(name, 1.0)) for name, value in values.items()]
    optimiser = torch.optim.Adam([{"params": [v], "lr": r} for v, r in rates], weight_decay=config.weight_decay)
    losses: list[list[float]] = [[] for _ in groups]
    active = list(range(len(groups)))
    batches = _batches(parts, groups, active, config, bag=method.cut is not None)
    for number in range(1, config.steps + 1):
        passed = dict.fromkeys(active, 0.0)
        for batch in batches:
            loss = _loss(parts, batch, values, method.project, config)
            for group, value, size in zip(batch.groups, loss.tolist(), batch.sizes, strict=True):
                if group in passed:
                    losses[group].append(value)
                    passed[group] += value * size / len(groups[group])
            moving = [g for g, high in zip(batch.groups, (loss >= config.stop_below).tolist(), strict=True) if high]
            if moving:
                _step(optimiser, loss.sum(), values, moving)
                method.settle(values)
        for group, value in passed.items():
            if not math.isfinite(value):
                raise EditError(
                    f"{config.editor}: the loss is {value} in pass {number} over {len(groups[group])} request(s), "
                    "expected a finite number. The model is unchanged. Lower learning_rate."
                )
        active = [group for group in active if passed[group] >= config.stop_below]
        if not active:
            break
        if len(active) <= 0.75 * len(batches[0].groups):
            batches = _batches(parts, groups, active, config, bag=method.cut is not None)
    return {name: value.detach() for name, value in values.items()}, losses


def _step(optimiser: torch.optim.Adam, loss: Tensor, values: Mapping[str, Tensor], moving: Sequence[int]) -> None:
    """Take one step of Adam for the groups in `moving`; the rest stay where they are."""
    for value, gradient in zip(values.values(), torch.autograd.grad(loss, list(values.values())), strict=True):
        value.grad = gradient
    resting = [group for group in range(len(next(iter(values.values())))) if group not in moving]
    resting_values = {name: value.detach()[resting] for name, value in values.items()}
    optimiser.step()
    with torch.no_grad():
        for name, value in values.items():
            value[resting] = resting_values[name]


@dataclass(frozen=True)
class _Batch:
    """Rows of several groups, laid out.

    Attributes:
        groups: Their numbers.
        sizes: Rows of each group.
        layout: The rows; of all tokens of all groups.
        places: (groups, most tokens), where the tokens of each group are in the layout; short ones repeat their first.
        real: (groups, most tokens), False for repeats.
        predictors, targets, owners, weights: (targets,) place, token, group (by its place in `groups`) and weight.
    """

    groups: tuple[int, ...]
    sizes: tuple[int, ...]
    layout: ResumableRows
    places: Tensor
    real: Tensor
    predictors: Tensor
    targets: Tensor
    owners: Tensor
    weights: Tensor


def _batches(parts: ModelParts, groups: Groups, active: Sequence[int], config: TuningConfig, bag: bool) -> list[_Batch]:
    size, most = config.batch_size, max(len(groups[group]) for group in active)
    return [
        _batch(parts, {group: groups[group][first : first + size] for group in active}, min(config.layers), bag)
        for first in range(0, most, size)
    ]


def _batch(parts: ModelParts, groups: Mapping[int, Sequence[InputRow]], first: int, bag: bool) -> _Batch:
    rows = [(number, row, len(own)) for number, own in enumerate(groups.values()) for row in own]
    layout = lay_out(parts, [row for _, row, _ in rows], first, parts.n_layers - 1, keep_prefix=True)
    tokens: list[list[int]] = [[] for _ in groups]
    entries: list[tuple[int, int, int, float]] = []
    for index, (number, row, size) in enumerate(rows):
        tokens[number] += [layout.at(index, token) for token in range(len(row.ids))]
        n = len(row.targets)
        for k, target in enumerate(row.targets):
            place = layout.at(index, len(row.ids) - 1 if bag else len(row.ids) - n + k)
            entries.append((place, target, number, 1.0 / n / size))
    longest = max(map(len, tokens))
    filled = torch.tensor([own + own[:1] * (longest - len(own)) for own in tokens])
    real = torch.tensor([[True] * len(own) + [False] * (longest - len(own)) for own in tokens])
    asks, targets, owners, weights = zip(*entries, strict=True)
    sizes = tuple(len(own) for own in groups.values())
    numbers = torch.tensor(asks), torch.tensor(targets), torch.tensor(owners)
    return _Batch(tuple(groups), sizes, layout, filled, real, *numbers, torch.tensor(weights, dtype=torch.float64))


def _loss(
    parts: ModelParts, batch: _Batch, values: Mapping[str, Tensor], project: Project, config: TuningConfig
) -> Tensor:
    """Return the loss of each group of a batch with its own parameters, (groups of the batch,)."""
    chosen = list(batch.groups)
    own = values if len(chosen) == len(next(iter(values.values()))) else {n: v[chosen] for n, v in values.items()}
    with hooked([_exchange(parts, layer, batch, own, project) for layer in config.layers]):
        flat = batch.layout.run(batch.layout.hidden)
    logits = parts.logits(flat[batch.predictors.to(flat.device)])
    places = torch.arange(len(logits), device=logits.device)
    log_p, _ = log_probabilities(logits, places, batch.targets.to(places.device), places[:0])
    losses = -log_p * batch.weights.to(log_p)
    return losses.new_zeros(len(chosen)).index_add(0, batch.owners.to(places.device), losses)


def _exchange(
    parts: ModelParts, layer: int, batch: _Batch, values: Mapping[str, Tensor], project: Project
) -> RemovableHandle:
    """Register a hook that puts what each group's parameters give in place of a projection's output."""

    def hook(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        places, real = batch.places.to(output.device), batch.real.to(output.device)
        x, old = (tensor.reshape(-1, tensor.shape[-1])[places] for tensor in (args[0], output))
        new = project(layer, values, x, old).to(output.dtype)
        flat = output.reshape(-1, output.shape[-1])
        return flat.index_copy(0, places[real], new[real]).reshape(output.shape)

    return parts.mlp_out(layer).register_forward_hook(hook)
