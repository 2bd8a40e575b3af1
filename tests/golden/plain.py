"""The editing methods once more, written straight from the papers' formulas, for models small enough not to be clever.

One text at a time through the whole model, no batching, no packing, no cached activations; inverses of whole matrices
in numpy; Adam by hand. Nothing of `seesaw_cf.editors` is used.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.types import EditRequest

Array = np.ndarray[Any, np.dtype[np.float64]]

PROJECTION = {"gpt2": "transformer.h.{}.mlp.c_proj", "gptj": "transformer.h.{}.mlp.fc_out"}
"""Model type -> MLP output projection."""


@dataclass(frozen=True)
class Text:
    """One text: tokens fed, the subject's last token, and (position, token) of everything to predict."""

    ids: tuple[int, ...]
    last: int
    wanted: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Plain:
    """A model of `PROJECTION` in float64 and its tokenizer, which puts no special tokens in front."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    templates: tuple[str, ...]

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text)["input_ids"])

    def name(self, layer: int) -> str:
        return f"{PROJECTION[self.model.config.model_type].format(layer)}.weight"

    def stored(self, layer: int, change: Array) -> Array:
        """A change (inputs, outputs) as the weight is stored: Conv1D as it is, Linear transposed."""
        return change if self.model.config.model_type == "gpt2" else change.T

    def texts(self, request: EditRequest, target: bool = False) -> list[Text]:
        """The request under every template, with the target's tokens or without."""
        found = []
        for template in self.templates:
            prompt = template.format(request.prompt.format(request.subject))
            head = prompt[: prompt.index(request.subject) + len(request.subject)]
            before, whole = self.ids(prompt), self.ids(f"{prompt} {request.target_new.label}")
            assert whole[: len(before)] == before
            wanted = tuple((place - 1, whole[place]) for place in range(len(before), len(whole)))
            ids = tuple(whole[:-1] if target else before)
            found.append(Text(ids, len(self.ids(head)) - 1, wanted if target else ()))
        return found

    def logits(self, ids: Sequence[int]) -> Tensor:
        found: Tensor = self.model(torch.tensor([list(ids)])).logits[0]
        return found

    def seen(self, text: Text, layer: int) -> tuple[Array, Array, Array]:
        """Input and output of a layer's projection and output of its block, at the subject's last token."""
        projection = self.model.get_submodule(self.name(layer).removesuffix(".weight"))
        block = self.model.get_submodule(f"transformer.h.{layer}")
        kept: list[Tensor] = []
        hooks = [
            projection.register_forward_hook(lambda _, args, output: kept.extend([args[0], output])),
            block.register_forward_hook(lambda *given: kept.append(_first(given[2]))),
        ]
        with torch.no_grad(), _removed(hooks):
            self.logits(text.ids)
        key, value, stream = (tensor[0, text.last].numpy() for tensor in kept)
        return key, value, stream

    def moment(self, texts: Sequence[str], layer: int) -> Array:
        """C: the mean of k k^T over all tokens of all texts."""
        keys: list[Tensor] = []
        projection = self.model.get_submodule(self.name(layer).removesuffix(".weight"))
        hook = projection.register_forward_pre_hook(lambda _, args: keys.append(args[0][0]))
        with torch.no_grad(), _removed([hook]):
            for text in texts:
                self.logits(self.ids(text))
        every = torch.cat(keys).numpy()
        found: Array = every.T @ every / len(every)
        return found

    def key(self, request: EditRequest, layer: int, bare_share: float) -> Array:
        """The bare prompt's key with its share, the other templates sharing the rest."""
        keys = [self.seen(text, layer)[0] for text in self.texts(request)]
        found: Array = bare_share * keys[0] + (1 - bare_share) * np.mean(keys[1:], axis=0)
        return found

    def shift(self, request: EditRequest, layer: int, config: Any, at: str) -> tuple[Array, Array]:
        """Initial value; shift by Adam on nll + kl_factor KL(now || before) + decay ||shift|| / ||initial||^2."""
        rows = self.texts(request, target=True)
        head = config.kl_prompt.format(request.subject)
        anchor = Text(
            tuple(self.ids(head)), len(self.ids(head[: head.index(request.subject) + len(request.subject)])) - 1
        )
        _, value, stream = self.seen(rows[0], layer)
        initial = torch.tensor(value if at == "mlp" else stream)
        before: Tensor | None = None

        def loss(shift: Tensor) -> Tensor:
            nonlocal before
            nll = torch.stack([self._nll(row, layer, shift, at) for row in rows]).mean()
            now = self._moved(anchor, layer, shift, at).log_softmax(-1)[anchor.last]
            before = now.detach() if before is None else before
            kl = (now.exp() * (now - before)).sum()
            return nll + config.kl_factor * kl + config.weight_decay * shift.norm() / initial.norm() ** 2

        def inside(shift: Tensor) -> Tensor:
            radius = config.clamp * initial.norm()
            return shift * (radius / shift.norm()) if shift.norm() > radius else shift

        zero = torch.zeros_like(initial)
        return initial.numpy(), adam([zero], lambda parts: loss(parts[0]), config, lambda parts: [inside(parts[0])])[0]

    def _nll(self, row: Text, layer: int, shift: Tensor, at: str) -> Tensor:
        log_p = self._moved(row, layer, shift, at).log_softmax(-1)
        return -torch.stack([log_p[place, token] for place, token in row.wanted]).mean()

    def _moved(self, text: Text, layer: int, shift: Tensor, at: str) -> Tensor:
        """Logits with `shift` added at the subject's last token."""
        path = self.name(layer).removesuffix(".weight") if at == "mlp" else f"transformer.h.{layer}"

        def add(_: Any, __: Any, output: Any) -> Any:
            hidden = _first(output)
            moved = torch.cat(
                [hidden[:, : text.last], hidden[:, text.last :] + _only_first(hidden, text.last, shift)], 1
            )
            return moved if isinstance(output, Tensor) else (moved, *output[1:])

        with _removed([self.model.get_submodule(path).register_forward_hook(add)]):
            return self.logits(text.ids)

    @contextlib.contextmanager
    def changed(self, changes: Mapping[str, Array]) -> Iterator[None]:
        """The model with changes, for the length of a block."""
        old = {name: self.model.get_parameter(name).detach().clone() for name in changes}
        with torch.no_grad():
            for name, change in changes.items():
                self.model.get_parameter(name).add_(torch.tensor(np.ascontiguousarray(change)))
        try:
            yield
        finally:
            with torch.no_grad():
                for name, value in old.items():
                    self.model.get_parameter(name).copy_(value)


def adam(
    start: Sequence[Tensor],
    loss: Callable[[Sequence[Tensor]], Tensor],
    config: Any,
    inside: Callable[[list[Tensor]], list[Tensor]],
    steps_at_end: bool = False,
    decay: float = 0.0,
) -> list[Array]:
    """Adam (Kingma and Ba 2015, algorithm 1) with the L2 term in the gradient, put back `inside` after each step.

    Stops before a step when the loss is below `stop_below`; the last pass makes a step only if `steps_at_end`.
    """
    values = [value.clone() for value in start]
    first, second = ([torch.zeros_like(value) for value in start] for _ in range(2))
    for step in range(config.steps):
        leaves = [value.clone().requires_grad_() for value in values]
        now = loss(leaves)
        if float(now.detach()) < config.stop_below or (step == config.steps - 1 and not steps_at_end):
            break
        done = step + 1
        for index, gradient in enumerate(torch.autograd.grad(now, leaves)):
            gradient = gradient + decay * values[index]
            first[index] = 0.9 * first[index] + 0.1 * gradient
            second[index] = 0.999 * second[index] + 0.001 * gradient**2
            mean, square = first[index] / (1 - 0.9**done), second[index] / (1 - 0.999**done)
            values[index] = values[index] - config.learning_rate * mean / (square.sqrt() + 1e-8)
        values = inside(values)
    return [value.detach().numpy() for value in values]


def _only_first(hidden: Tensor, last: int, shift: Tensor) -> Tensor:
    """`shift` at the first of the tokens from `last` on, zero at the others."""
    rest = hidden.shape[1] - last
    return torch.cat([shift[None], torch.zeros(rest - 1, len(shift), dtype=shift.dtype)])[None]


def _first(output: Any) -> Tensor:
    found: Tensor = output if isinstance(output, Tensor) else output[0]
    return found


@contextlib.contextmanager
def _removed(hooks: Sequence[Any]) -> Iterator[None]:
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
