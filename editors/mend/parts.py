"""Parts of a batch of training edits: what is asked of the model about each, by itself, in any process that has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.editors.mend.examples import TrainingEdit
from seesaw_cf.editors.mend.factors import batch_of, capture, outer_losses, text_batch
from seesaw_cf.editors.mend.network import Factors, Upper
from seesaw_cf.editors.mend.rounds import Tensors


@dataclass(frozen=True)
class Asked:
    """A model that is asked about parts.

    Attributes:
        model: Frozen.
        tokenizer: Its tokenizer.
        examples: All examples; a part names some by their numbers.
        weights: Of the edit's loss and of the divergence on unrelated text.
        upper: How the model is run; names the edited weights.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    examples: Sequence[TrainingEdit]
    weights: tuple[float, float]
    upper: Upper

    def answer(self, task: Tensors) -> Tensors:
        """Return what `factor_task` or `loss_task` asks for.

        Returns:
            The factors of the edits, see `capture`; or "#loss" and, asked for, the slopes: its gradient with respect to
            the changes.
        """
        chosen, device = [self.examples[number] for number in task["#examples"].tolist()], self.model.device
        if "#share" not in task:
            edits = batch_of(self.tokenizer, [example.edit for example in chosen], device)
            return _tensors(capture(self.model, self.upper.names, edits, each_row=True, logits_of=self.upper))
        outer = batch_of(self.tokenizer, [example.outer for example in chosen], device)
        unrelated = text_batch(self.tokenizer, [example.unrelated for example in chosen], self.model)
        slopes = bool(task["#slopes"])
        changes = {name: tensor.to(device).requires_grad_(slopes) for name, tensor in task.items() if name[0] != "#"}
        with torch.set_grad_enabled(slopes):
            edit, locality = outer_losses(_pairs(changes), self.model, outer, unrelated, logits_of=self.upper)
            loss = task["#share"].item() * (self.weights[0] * edit + self.weights[1] * locality)
        found = torch.autograd.grad(loss, list(changes.values())) if slopes else ()
        return {"#loss": loss.detach(), **dict(zip(changes, found, strict=False))}


def factor_task(part: Sequence[int]) -> Tensors:
    """Ask for the factors of the edits of a part."""
    return {"#examples": torch.tensor(part)}


def loss_tasks(
    parts: Sequence[Sequence[int]], factors: Sequence[Tensors], changes: Factors, *, of: int, slopes: bool
) -> list[Tensors]:
    """Ask for the loss of each part.

    Args:
        parts: The parts of a batch.
        factors: What was answered about them.
        changes: A network's answer for all of them.
        of: Edits over which the loss is a mean.
        slopes: Ask for the gradient too.
    """
    tasks, first = [], 0
    for part, own in zip(parts, factors, strict=True):
        rows = slice(first, first + len(part))
        shown = {name: tensor[rows, : own[name].shape[1]] for name, tensor in _tensors(changes).items()}
        numbers = {"#share": torch.tensor(len(part) / of, dtype=torch.float64), "#slopes": torch.tensor(slopes)}
        tasks.append({**factor_task(part), **numbers, **{n: t.detach().contiguous() for n, t in shown.items()}})
        first = rows.stop
    return tasks


def join(answers: Sequence[Tensors], device: torch.device) -> Factors:
    """Return the factors, or the slopes, of all parts: name -> ((B, T, in), (B, T, out)), padded with zeros."""
    names = [name for name in answers[0] if name[0] != "#"]
    rows = {name: [row.to(device) for answer in answers for row in answer[name]] for name in names}
    return _pairs({name: pad_sequence(own, batch_first=True) for name, own in rows.items()})


def _tensors(pairs: Factors) -> Tensors:
    return {f"{name} {side}": tensor for name, pair in pairs.items() for side, tensor in zip("uv", pair, strict=True)}


def _pairs(tensors: Tensors) -> Factors:
    names = dict.fromkeys(name.rpartition(" ")[0] for name in tensors)
    return {name: (tensors[f"{name} u"], tensors[f"{name} v"]) for name in names}
