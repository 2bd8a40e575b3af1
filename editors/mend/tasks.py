"""What a step of training asks of the model, as tasks that any process with the model can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.editors.mend.examples import TrainingEdit
from seesaw_cf.editors.mend.factors import batch_of, capture, divergence, outer_loss, text_batch
from seesaw_cf.editors.mend.network import Factors, Upper
from seesaw_cf.editors.mend.shared import Tensors
from seesaw_cf.models.hooks import frozen
from seesaw_cf.models.tf32 import exact_products

FACTORS, OUTER, UNRELATED = range(3)
"""What is asked about some edits: their factors, the loss on what they must change, that on what they must not."""


@dataclass(frozen=True)
class ModelTasks:
    """The tasks of one training.

    Attributes:
        model: Left as it is.
        tokenizer: Its tokenizer.
        examples: All examples; a task names some by their numbers.
        weights: OUTER and UNRELATED -> what the loss is multiplied by.
        upper: How the model is run; names the edited weights.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    examples: Sequence[TrainingEdit]
    weights: Mapping[int, float]
    upper: Upper

    def do(self, task: Tensors) -> Tensors:
        """Do one of `factor_tasks` or `loss_tasks`.

        Returns:
            The factors of the edits, see `capture`; or "#loss" and, if asked for, its gradient with respect to the
            changes.
        """
        examples, kind = [self.examples[number] for number in task["#examples"].tolist()], int(task["#kind"])
        with exact_products(self.model), frozen(self.model), torch.enable_grad():
            return self._factors(examples) if kind == FACTORS else self._loss(examples, kind, task)

    def _factors(self, examples: Sequence[TrainingEdit]) -> Tensors:
        edits = batch_of(self.tokenizer, [example.edit for example in examples], self.model.device)
        return _tensors(capture(self.model, self.upper.names, edits, each_row=True, logits_of=self.upper))

    def _loss(self, examples: Sequence[TrainingEdit], kind: int, task: Tensors) -> Tensors:
        device, gradient = self.model.device, bool(task["#gradient"])
        changes = {
            name: tensor.to(device).detach().requires_grad_(gradient)
            for name, tensor in task.items()
            if name.endswith(_SIDES)
        }
        with torch.set_grad_enabled(gradient):
            if kind == OUTER:
                outer = batch_of(self.tokenizer, [example.outer for example in examples], device)
                loss = outer_loss(_pairs(changes), self.model, outer, logits_of=self.upper)
            else:
                texts = text_batch(self.tokenizer, [example.unrelated for example in examples], self.model)
                loss = divergence(_pairs(changes), self.model, texts, logits_of=self.upper)
            loss = self.weights[kind] * float(task["#share"]) * loss
        if not gradient:
            return {"#loss": loss}
        gradients = torch.autograd.grad(loss, list(changes.values()))
        return {"#loss": loss.detach(), **dict(zip(changes, gradients, strict=True))}


def factor_tasks(batch: Sequence[int], parts: int) -> list[Tensors]:
    """Ask for the factors of the edits of a batch, in twice as many parts: they fill the end of a step."""
    return [{"#examples": torch.tensor(part), "#kind": torch.tensor(FACTORS)} for part in _cut(batch, 2 * parts)]


def loss_tasks(batch: Sequence[int], parts: int, changes: Factors, *, of: int, gradient: bool) -> list[Tensors]:
    """Ask for both losses of each part of a batch.

    Args:
        batch: Numbers of examples.
        parts: Into how many it is cut at most.
        changes: A network's answer about the batch.
        of: Edits over which a loss is a mean.
        gradient: Ask for the gradients too.
    """
    tasks, first = [], 0
    for part in _cut(batch, parts):
        rows = slice(first, first + len(part))
        own = {name: tensor[rows].detach().clone() for name, tensor in _tensors(changes).items()}
        share = torch.tensor(len(part) / of, dtype=torch.float64)
        common = {"#examples": torch.tensor(part), "#share": share, "#gradient": torch.tensor(gradient)} | own
        tasks += [common | {"#kind": torch.tensor(kind)} for kind in (OUTER, UNRELATED)]
        first = rows.stop
    return tasks


def _cut(batch: Sequence[int], parts: int) -> list[Sequence[int]]:
    size = -(-len(batch) // parts)
    return [batch[start : start + size] for start in range(0, len(batch), size)]


def total_loss(results: Sequence[Tensors]) -> float:
    """Return the sum of the losses."""
    return sum(float(result["#loss"]) for result in results)


def total_gradient(results: Sequence[Tensors], device: torch.device) -> Factors:
    """Return the gradient of the sum of the losses with respect to all changes, from results of `loss_tasks`."""
    outer, unrelated = (join(results[first::2], device) for first in range(2))
    return {name: (outer[name][0] + unrelated[name][0], outer[name][1] + unrelated[name][1]) for name in outer}


def join(results: Sequence[Tensors], device: torch.device) -> Factors:
    """Return the factors, or the gradients, of all parts: name -> ((B, T, in), (B, T, out)), padded with zeros."""
    names = [name for name in results[0] if name.endswith(_SIDES)]
    rows = {name: [row.to(device) for result in results for row in result[name]] for name in names}
    return _pairs({name: pad_sequence(own, batch_first=True) for name, own in rows.items()})


_SIDES = (" u", " v")


def _tensors(pairs: Factors) -> Tensors:
    return {name + side: tensor for name, pair in pairs.items() for side, tensor in zip(_SIDES, pair, strict=True)}


def _pairs(tensors: Tensors) -> Factors:
    names = dict.fromkeys(name[:-2] for name in tensors)
    return {name: (tensors[f"{name} u"], tensors[f"{name} v"]) for name in names}
