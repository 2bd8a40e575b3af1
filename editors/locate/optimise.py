"""Finding new values for the subject's last token: v* of ROME and z of MEMIT, for many edits at once.

Each edit's shift is added at the subject's last token of its rows; Adam lowers the negative log-likelihood of the
target, plus a KL term that keeps what the model predicts after the bare subject, and a decay term. Edits do not touch
each other: losses are summed, so every gradient is that of the edit alone, and a finished edit leaves the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from seesaw_cf.base.errors import EditError
from seesaw_cf.editors.locate.config import LocateThenEditConfig
from seesaw_cf.editors.locate.norms import behind_norm
from seesaw_cf.editors.locate.positions import InputRow, PreparedEdit, at_subject
from seesaw_cf.editors.locate.resume import ResumableRows, lay_out
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.hooks import first_tensor, hooked
from seesaw_cf.models.tensors import batches, in_float64, log_probabilities

_Terms = tuple[float, float, float, float]  # total, negative log-likelihood, KL, weight decay

_HALF_SCALE = 1024.0
"""Loss scale for float16 models, whose gradients would underflow; divided out again before the step."""
_STEP = 0.25
"""Of the reach of a shift: Adam's first step is learning_rate in every entry, however small the reach."""
_GRADIENT_COST = 4
"""A token with gradients counts for this many of `batch_tokens`: its activations stay until the backward pass."""


@dataclass(frozen=True)
class Optimised:
    """New values of n edits.

    Attributes:
        initial: (n, d), what was at the subject's last token of the bare prompt.
        shift: (n, d), what the optimisation added.
        losses: For each edit, one (total, nll, kl, decay) per forward pass.
    """

    initial: Tensor
    shift: Tensor
    losses: tuple[tuple[_Terms, ...], ...]

    @property
    def target(self) -> Tensor:
        """(n, d), initial + shift."""
        return self.initial + self.shift

    def part(self, which: slice) -> Optimised:
        """Return some of the edits."""
        return Optimised(self.initial[which], self.shift[which], self.losses[which])

    def diagnostics(self) -> list[dict[str, float | int]]:
        """Return one JSON-able record per edit: steps, first and last losses, norms."""
        return [
            {
                "steps": len(loss),
                "first_loss": loss[0][0],
                "final_loss": loss[-1][0],
                "final_nll": loss[-1][1],
                "final_kl": loss[-1][2],
                "initial_norm": float(in_float64(initial).norm()),
                "shift_norm": float(in_float64(shift).norm()),
            }
            for loss, initial, shift in zip(self.losses, self.initial, self.shift)
        ]


def distance(initial: Tensor, shift: Tensor, now: Tensor) -> Tensor:
    """Return what is left to the new values: initial + shift - now.

    Exactly zero when no shift was made. `initial` and `now` come out of passes of different sizes and differ by
    rounding even on an unchanged model, and an edit that took no step must change nothing.
    """
    return shift + (initial - now) if bool(shift.any()) else torch.zeros_like(now)


class _Plan(NamedTuple):
    """The edits still being optimised, laid out, and where in the layout things are."""

    layout: ResumableRows
    edits: tuple[int, ...]
    lookup: Tensor
    lookup_edit: Tensor
    positions: Tensor
    target_at: Tensor
    target_id: Tensor
    target_edit: Tensor
    target_weight: Tensor
    anchor_at: Tensor


def optimise(
    parts: ModelParts,
    edits: Sequence[PreparedEdit],
    layer: int,
    config: LocateThenEditConfig,
    at: Literal["stream", "mlp"] = "stream",
    reach: Tensor | None = None,
) -> Optimised:
    """Optimise one shift per edit.

    loss = mean over rows of the mean over target tokens of -log p + kl_factor * KL(now || before)
           + weight_decay * ||shift|| / ||initial||^2, logged and compared with `stop_below` before each step.

    Source: ROME (Meng et al. 2022) eq. 4 and MEMIT (Meng et al. 2023) eq. 14, with the constants of their programs:
    KL at the subject's last token of "{} is a", norm (not its square) in the decay, projection after each step.

    Args:
        parts: The model, in eval mode.
        edits: n prepared edits.
        layer: The block; the shift is added to its output ("stream", MEMIT) or MLP output ("mlp", ROME).
        config: Steps, rates and weights.
        at: Where the shift is added. Where a norm stands between the two it is in front of the norm in either case, so
            that the new value is one that this block can give (see `seesaw_cf.editors.locate.norms`); `clamp` and
            `weight_decay` are then relative to the MLP's output.
        reach: (n,) the longest shift of each edit, where that is less than `clamp` allows, in steps of at most
            `_STEP` of it. A shift that is found within it fits better than a longer one that is shortened later. None =
            no other limit.

    Returns:
        Values in the order of `edits`, in float32 (float64 for float64 models).

    Raises:
        EditError: No edits, or a loss that is not finite.
    """
    if not edits:
        raise EditError("no edits were given, expected at least one.")
    bare = at_subject(parts, [edit.rows[0] for edit in edits], layer)
    inside = at == "mlp" or bool(parts.row.post_norm)
    initial = bare.values if inside else bare.stream
    sizes = [sum(len(row.ids) - row.lookup for row in edit.rows) + 1 for edit in edits]
    radius, unit = config.clamp * initial.norm(dim=1), torch.ones_like(initial[:, :1])
    if reach is not None:
        reach = reach.to(radius)
        radius = radius.minimum(reach)
        unit = (_STEP * reach[:, None] / (config.learning_rate * initial.shape[1] ** 0.5)).clamp(max=1.0)
    shift = torch.zeros_like(initial)
    losses: list[tuple[_Terms, ...]] = [()] * len(edits)
    together = max(1, config.batch_tokens // (_GRADIENT_COST * max(sizes)))
    for group in batches([1] * len(edits), together):
        chosen = [edits[i] for i in group]
        part, logs = _optimise_group(parts, chosen, initial[group], (radius[group], unit[group]), layer, config, inside)
        shift[group] = part
        for index, log in zip(group, logs):
            losses[index] = tuple(log)
    if inside and at == "stream":
        moved = behind_norm(parts, layer, initial + shift) - behind_norm(parts, layer, initial)
        return Optimised(bare.stream, moved, tuple(losses))
    return Optimised(initial, shift, tuple(losses))


def _optimise_group(
    parts: ModelParts,
    edits: Sequence[PreparedEdit],
    initial: Tensor,
    room: tuple[Tensor, Tensor],
    layer: int,
    config: LocateThenEditConfig,
    inside: bool,
) -> tuple[Tensor, list[list[_Terms]]]:
    """Optimise one batch of edits from zero shifts; `room`: (n,) their longest shifts and (n, 1) units of steps."""
    n, (radius, unit) = len(edits), room
    norms = initial.norm(dim=1)
    moves = torch.zeros_like(initial, requires_grad=True)
    final = torch.zeros_like(initial)
    optimiser = torch.optim.Adam([moves], lr=config.learning_rate)
    scale = _HALF_SCALE if parts.stream_dtype == torch.float16 else 1.0
    logs: list[list[_Terms]] = [[] for _ in range(n)]
    active = torch.ones(n, dtype=torch.bool)
    plan = _plan(parts, edits, range(n), layer, config, inside)
    before: Tensor | None = None
    for step in range(config.steps):
        shift = unit * moves
        nll, log_p = _forward(parts, plan, shift, layer, inside)
        before = log_p.detach() if before is None else before
        positions = torch.tensor(plan.edits, device=before.device)
        kl = torch.zeros_like(nll).index_add(0, positions, (log_p.exp() * (log_p - before[positions])).sum(1))
        decay = config.weight_decay * (shift.norm(dim=1) / norms**2).to(nll.device)
        total = nll + config.kl_factor * kl + decay
        _log(logs, active, edits, torch.stack([total, nll, kl * config.kl_factor, decay], 1))
        finished = active & ((total.detach().cpu() < config.stop_below) | (step == config.steps - 1))
        final[finished] = shift.detach()[finished]
        active &= ~finished
        if not active.any():
            break
        (moves.grad,) = torch.autograd.grad(scale * total[active].sum(), [moves])
        moves.grad /= scale
        optimiser.step()
        _project(moves, radius / unit[:, 0])
        if int(active.sum()) <= 0.75 * len(plan.edits):
            plan = _plan(parts, edits, active.nonzero()[:, 0].tolist(), layer, config, inside)
    return final, logs


def _project(shift: Tensor, radius: Tensor) -> None:
    """Put shifts that left their ball back onto its surface."""
    with torch.no_grad():
        norm = shift.norm(dim=1)
        outside = norm > radius
        shift[outside] *= (radius / norm)[outside, None]


def _log(logs: list[list[_Terms]], active: Tensor, edits: Sequence[PreparedEdit], terms: Tensor) -> None:
    for index, row in enumerate(terms.detach().tolist()):
        if not active[index]:
            continue
        logs[index].append(tuple(row))
        if not all(abs(value) < float("inf") for value in row):
            request = edits[index].request
            raise EditError(
                f"edit {request.text!r} -> {request.target_new.label!r}: the loss is {row[0]} at step "
                f"{len(logs[index])} (nll {row[1]}, kl {row[2]}, decay {row[3]}), expected a finite number. The model "
                "is unchanged. Lower learning_rate, or load the model in bfloat16 or float32 instead of float16."
            )


def _plan(
    parts: ModelParts,
    edits: Sequence[PreparedEdit],
    indices: Sequence[int],
    layer: int,
    config: LocateThenEditConfig,
    inside: bool,
) -> _Plan:
    """Lay out the rows of the edits in `indices` and note where shifts go in and answers come out."""
    rows: list[InputRow] = []
    owner: list[int] = []
    targets: list[tuple[int, int, int, float, int]] = []  # row, position, token, weight, edit
    anchors: list[tuple[int, int]] = []
    for index in indices:
        edit = edits[index]
        for row in (*edit.rows, edit.anchor):  # an anchor has no targets
            first = len(row.ids) - len(row.targets)
            for k, token in enumerate(row.targets):
                targets.append((len(rows), first + k, token, 1.0 / len(row.targets) / len(edit.rows), index))
            rows.append(row)
            owner.append(index)
        anchors.append((len(rows) - 1, edit.anchor.lookup))
    top = parts.n_layers - 1 if config.loss_layer is None else max(config.loss_layer, layer)
    start = layer if inside and parts.row.post_norm else layer + 1
    layout = lay_out(parts, rows, start, top)
    answers = [layout.at(row, position) for row, position, *_ in targets] + [layout.at(*anchor) for anchor in anchors]
    answer_places, places = torch.tensor(answers).unique(return_inverse=True)
    device, wide = parts.head_device, torch.promote_types(parts.stream_dtype, torch.float32)
    return _Plan(
        layout=layout,
        edits=tuple(indices),
        lookup=torch.tensor([layout.at(number, row.lookup) for number, row in enumerate(rows)]),
        lookup_edit=torch.tensor(owner),
        positions=answer_places,
        target_at=places[: len(targets)].to(device),
        target_id=torch.tensor([target[2] for target in targets], device=device),
        target_edit=torch.tensor([target[4] for target in targets], device=device),
        target_weight=torch.tensor([target[3] for target in targets], device=device, dtype=wide),
        anchor_at=places[len(targets) :].to(device),
    )


def _forward(parts: ModelParts, plan: _Plan, shift: Tensor, layer: int, inside: bool) -> tuple[Tensor, Tensor]:
    """Return the NLL of every edit, (n,), and next-token log-probabilities at the anchors, (kept, vocabulary)."""
    hidden = plan.layout.hidden
    if inside and parts.row.post_norm:

        def add(_: object, __: object, output: Any) -> Tensor:
            return _shifted(first_tensor(output), plan, shift)

        with hooked([parts.mlp_out(layer).register_forward_hook(add)]):
            flat = plan.layout.run(hidden)
    else:
        flat = plan.layout.run(_shifted(hidden, plan, shift))
    logits = parts.logits(flat[plan.positions.to(flat.device)])
    chosen, anchors = log_probabilities(logits, plan.target_at, plan.target_id, plan.anchor_at)
    weighted = chosen * plan.target_weight.to(chosen.dtype)
    return chosen.new_zeros(len(shift)).index_add(0, plan.target_edit, -weighted), anchors


def _shifted(hidden: Tensor, plan: _Plan, shift: Tensor) -> Tensor:
    """Return `hidden` with each edit's shift added at the subject's last token of its rows."""
    flat = hidden.reshape(-1, hidden.shape[-1]).to(shift.dtype)
    moved = flat.index_add(0, plan.lookup.to(flat.device), shift.to(flat.device)[plan.lookup_edit.to(flat.device)])
    return moved.to(hidden.dtype).reshape(hidden.shape)
