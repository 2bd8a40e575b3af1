"""What a step of training asks of the model, in parts: any process that has the model can answer each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.editors.mend.examples import TrainingEdit
from seesaw_cf.editors.mend.factors import batch_of, capture, divergence, outer_loss, text_batch
from seesaw_cf.editors.mend.network import Factors, Upper
from seesaw_cf.editors.mend.rounds import Tensors

FACTORS, OUTER, UNRELATED = range(3)
"""What is asked about some edits: their factors, the loss on what they must change, that on what they must not."""


@dataclass(frozen=True)
class Asked:
    """A model that is asked.

    Attributes:
        model: Frozen.
        tokenizer: Its tokenizer.
        examples: All examples; a part names some by their numbers.
        weights: Of the loss on what edits must change, and of that on what they must not.
        upper: How the model is run; names the edited weights.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    examples: Sequence[TrainingEdit]
    weights: tuple[float, float]
    upper: Upper

    def answer(self, task: Tensors) -> Tensors:
        """Return what `factor_tasks` or `loss_tasks` asks for.

        Returns:
            The factors of the edits, see `capture`; or "#loss" and, asked for, the slopes: its gradient with respect to
            the changes.
        """
        chosen, kind = [self.examples[number] for number in task["#examples"].tolist()], int(task["#kind"])
        if kind == FACTORS:
            edits = batch_of(self.tokenizer, [example.edit for example in chosen], self.model.device)
            return _tensors(capture(self.model, self.upper.names, edits, each_row=True, logits_of=self.upper))
        slopes = bool(task["#slopes"])
        changes = {
            name: tensor.to(self.model.device).requires_grad_(slopes)
            for name, tensor in task.items()
            if name.endswith(_SIDES)
        }
        with torch.set_grad_enabled(slopes):
            if kind == OUTER:
                outer = batch_of(self.tokenizer, [example.outer for example in chosen], self.model.device)
                term = outer_loss(_pairs(changes), self.model, outer, logits_of=self.upper)
            else:
                texts = text_batch(self.tokenizer, [example.unrelated for example in chosen], self.model)
                term = divergence(_pairs(changes), self.model, texts, logits_of=self.upper)
            loss = self.weights[kind - 1] * float(task["#share"]) * term
        found = torch.autograd.grad(loss, list(changes.values())) if slopes else ()
        return {"#loss": loss.detach(), **dict(zip(changes, found, strict=False))}


def factor_tasks(batch: Sequence[int], parts: int) -> list[Tensors]:
    """Ask for the factors of the edits of a batch, in twice as many parts: they fill the end of a round."""
    return [{"#examples": torch.tensor(part), "#kind": torch.tensor(FACTORS)} for part in _cut(batch, 2 * parts)]


def loss_tasks(batch: Sequence[int], parts: int, changes: Factors, *, of: int, slopes: bool) -> list[Tensors]:
    """Ask for both losses of each part.

    Args:
        batch: Numbers of examples.
        parts: Into how many it is cut at most.
        changes: A network's answer about the batch.
        of: Edits over which a loss is a mean.
        slopes: Ask for the gradients too.
    """
    tasks, first = [], 0
    for part in _cut(batch, parts):
        rows = slice(first, first + len(part))
        shown = {name: tensor[rows].detach() for name, tensor in _tensors(changes).items()}
        share = torch.tensor(len(part) / of, dtype=torch.float64)
        common = {"#examples": torch.tensor(part), "#share": share, "#slopes": torch.tensor(slopes)} | shown
        tasks += [common | {"#kind": torch.tensor(kind)} for kind in (OUTER, UNRELATED)]
        first = rows.stop
    return tasks


def _cut(batch: Sequence[int], parts: int) -> list[Sequence[int]]:
    size = -(-len(batch) // parts)
    return [batch[start : start + size] for start in range(0, len(batch), size)]


def total_loss(answers: Sequence[Tensors]) -> float:
    """Return the sum of the losses."""
    return sum(float(answer["#loss"]) for answer in answers)


def total_slopes(answers: Sequence[Tensors], device: torch.device) -> Factors:
    """Return the gradient of the sum of the losses with respect to all changes, in the order of `loss_tasks`."""
    one, two = (join(answers[first::2], device) for first in range(2))
    return {name: (one[name][0] + two[name][0], one[name][1] + two[name][1]) for name in one}


def join(answers: Sequence[Tensors], device: torch.device) -> Factors:
    """Return the factors, or the slopes, of all parts: name -> ((B, T, in), (B, T, out)), padded with zeros."""
    names = [name for name in answers[0] if name.endswith(_SIDES)]
    rows = {name: [row.to(device) for answer in answers for row in answer[name]] for name in names}
    return _pairs({name: pad_sequence(own, batch_first=True) for name, own in rows.items()})


_SIDES = (" u", " v")


def _tensors(pairs: Factors) -> Tensors:
    return {name + side: tensor for name, pair in pairs.items() for side, tensor in zip(_SIDES, pair, strict=True)}


def _pairs(tensors: Tensors) -> Factors:
    names = dict.fromkeys(name[:-2] for name in tensors)
    return {name: (tensors[f"{name} u"], tensors[f"{name} v"]) for name in names}
