"""Gradients as factors, and low-rank changes without writing a weight: both by hooks on the edited projections."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seesaw_cf.base.types import Cloze
from seesaw_cf.editors.locate.positions import encode_text
from seesaw_cf.models.editor import Model, Tokenizer
from seesaw_cf.models.hooks import hooked
from seesaw_cf.models.tensors import pad
from seesaw_cf.scoring.encode import encode_cloze
from seesaw_cf.scoring.hf_scorer import context_length

_Hook = Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Batch:
    """B texts, right-padded to T tokens.

    Attributes:
        ids: (B, T) token ids, the targets' last tokens included.
        mask: (B, T), 1 where there is a token.
        labels: (B, T), the id where it belongs to the target, else -100.
    """

    ids: Tensor
    mask: Tensor
    labels: Tensor


def batch_of(tokenizer: Tokenizer, clozes: Sequence[Cloze], device: torch.device | str = "cpu") -> Batch:
    """Encode clozes into one batch.

    Raises:
        PromptError: A cloze that cannot be encoded.
    """
    encoded = [encode_cloze(tokenizer, cloze) for cloze in clozes]
    ids, mask = pad([item.ids for item in encoded], torch.device(device))
    labels = torch.full_like(ids, -100)
    for row, item in enumerate(encoded):
        labels[row, item.start : len(item.ids)] = ids[row, item.start : len(item.ids)]
    return Batch(ids, mask, labels)


def text_batch(tokenizer: Tokenizer, texts: Sequence[str], model: Model) -> Batch:
    """Encode texts into a batch without targets, cut at the model's context."""
    limit = context_length(model)
    ids, mask = pad([encode_text(tokenizer, text)[:limit] for text in texts], model.device)
    return Batch(ids, mask, torch.full_like(ids, -100))


def log_p_at(model: Model, batch: Batch, places: Tensor) -> Tensor:
    """Return next-token log-probabilities at some places; the head, most of a small model's work, sees no other.

    Args:
        model: Read only.
        batch: What to run.
        places: (B, T), True at n places.

    Returns:
        (n, vocabulary) in nats, row by row of the batch.
    """

    def only_places(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (args[0][places.to(args[0].device)][None], *args[1:])

    with hooked([model.get_output_embeddings().register_forward_pre_hook(only_places)]):
        logits: Tensor = model(input_ids=batch.ids, attention_mask=batch.mask, use_cache=False).logits[0]
    return logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)


def target_nll(model: Model, batch: Batch, *, each_row: bool = False) -> Tensor:
    """Return the loss on the targets: -log p per token, in nats.

    Args:
        model: Read only.
        batch: B texts with their targets.
        each_row: Sum over rows of the mean over their tokens (B separate edits) instead of the mean over all tokens
            (one edit of B requests, as published).
    """
    mask = batch.labels[:, 1:] != -100
    log_p = log_p_at(model, batch, nn.functional.pad(mask, (0, 1)))
    losses = -log_p.gather(1, batch.labels[:, 1:][mask].to(log_p.device)[:, None])[:, 0]
    return _mean(losses, mask, each_row)


def _mean(values: Tensor, places: Tensor, each_row: bool) -> Tensor:
    """Return the mean of values at some places (B, T), or the sum over rows of the mean over their values."""
    if not each_row:
        return values.mean()
    sizes = places.sum(1)
    return (values / sizes.repeat_interleave(sizes).to(values.device)).sum()


def capture(
    model: Model, names: Sequence[str], batch: Batch, *, each_row: bool = False
) -> dict[str, tuple[Tensor, Tensor]]:
    """Return inputs of the named projections, and the gradient of the target's NLL with respect to their outputs.

    No parameter needs a gradient: a zero that does is added to each output.

    Args:
        model: In eval mode.
        names: Full names of weights.
        batch: What to edit in.
        each_row: See `target_nll`.

    Returns:
        Name -> ((B, T, in), (B, T, out)), detached.
    """
    inputs: dict[str, Tensor] = {}
    probes: dict[str, Tensor] = {}

    def hook_for(name: str) -> _Hook:
        def hook(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
            inputs[name] = args[0].detach()
            probes[name] = torch.zeros_like(output, requires_grad=True)
            return output + probes[name]

        return hook

    hooks = [_projection(model, name).register_forward_hook(hook_for(name)) for name in names]
    with torch.enable_grad(), hooked(hooks):
        loss = target_nll(model, batch, each_row=each_row)
        gradients = torch.autograd.grad(loss, [probes[name] for name in names])
    rows = (*batch.ids.shape, -1)  # OPT flattens what goes into its MLP to (B * T, in)
    return {
        name: (inputs[name].reshape(rows), gradient.detach().reshape(rows))
        for name, gradient in zip(names, gradients, strict=True)
    }


@contextlib.contextmanager
def added(model: nn.Module, changes: Mapping[str, tuple[Tensor, Tensor]]) -> Iterator[None]:
    """Add low-rank changes to the named projections inside the block; gradients flow into the factors.

    Args:
        model: Not written.
        changes: Name -> (inputs (E, n, in), outputs (E, n, out)): the weight changes by the sum over n of outer
            products. E is 1 (the same change for every row) or the number of rows (each row its own).
    """

    def hook_for(u: Tensor, v: Tensor) -> _Hook:
        def hook(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
            x = args[0].to(u.dtype).reshape(len(u), -1, args[0].shape[-1])
            here = x @ u.to(x.device).transpose(1, 2) @ v.to(x.device)
            return output + here.to(output.dtype).reshape(output.shape)

        return hook

    with hooked([_projection(model, name).register_forward_hook(hook_for(u, v)) for name, (u, v) in changes.items()]):
        yield


def outer_loss(
    changes: Mapping[str, tuple[Tensor, Tensor]], model: Model, outer: Batch, *, each_row: bool = True
) -> Tensor:
    """Return the loss on what an edited model must say: -log p per token, in nats.

    Args:
        changes: A network's answer; see `added`.
        model: Not written.
        outer: What the edited model must say.
        each_row: Rows are separate edits (mean over rows of means over tokens), or one edit (mean over all tokens).
    """
    with added(model, changes):
        nll = target_nll(model, outer, each_row=each_row)
    return nll / len(outer.ids) if each_row else nll


def divergence(
    changes: Mapping[str, tuple[Tensor, Tensor]], model: Model, unrelated: Batch, *, each_row: bool = True
) -> Tensor:
    """Return KL(base || edited) on texts that must not change, in nats per token; see `outer_loss`."""
    places = unrelated.mask.bool()
    with torch.no_grad():
        before = log_p_at(model, unrelated, places)
    with added(model, changes):
        after = log_p_at(model, unrelated, places)
    by_token = (before.exp() * (before - after)).sum(-1)
    return _mean(by_token, places, each_row) / (len(places) if each_row else 1)


def _projection(model: nn.Module, name: str) -> nn.Module:
    return model.get_submodule(name.removesuffix(".weight"))
