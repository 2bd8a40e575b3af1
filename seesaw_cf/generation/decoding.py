"""Token by token: left-padded rows that share one key-value cache, each with its own edit, noise and end."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from seesaw_cf.base.errors import UnsupportedModelError
from seesaw_cf.generation.types import Sampling
from seesaw_cf.models.tensors import cache_name
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.scoring.hf_scorer import per_token_deltas

# Drawing the next token, with noise drawn for each completion separately.


def uniforms(seed: int, n: int) -> NDArray[np.float64]:
    """Return the n numbers in [0, 1) of one completion; the first ones do not depend on n.

    Args:
        seed: An integer; it is the key of a Philox counter-based generator, so that neighbouring seeds share nothing.
        n: How many, one for each new token.
    """
    return np.random.Generator(np.random.Philox(key=seed % 2**128)).random(n)


def choose(logits: Tensor, draws: Tensor, sampling: Sampling) -> Tensor:
    """Choose one token for every row.

    Temperature, then top-k, then top-p (the smallest set of likeliest tokens that reaches it), then the inverse of the
    distribution function at the row's own draw. A row's token depends on its own logits and its own draw only.

    Args:
        logits: (rows, vocabulary), finite or -inf.
        draws: (rows,) float64 in [0, 1); not looked at when the temperature is 0.
        sampling: How tokens are drawn.

    Returns:
        (rows,) token ids.
    """
    if sampling.temperature == 0:
        return logits.argmax(-1)
    scores = logits.double() / sampling.temperature
    top, ids = scores.topk(min(sampling.top_k or scores.shape[-1], scores.shape[-1]))
    mass = top.softmax(-1)
    before = mass.cumsum(-1) - mass
    mass = mass.masked_fill((before >= sampling.top_p) & (before > 0), 0)
    total = mass.cumsum(-1)
    place = (total <= draws.to(total.device)[:, None] * total[:, -1:]).sum(-1)
    place = place.clamp(max=(mass > 0).sum(-1) - 1)
    tokens: Tensor = ids.gather(-1, place[:, None])[:, 0]
    return tokens.to(torch.long)


@dataclass(slots=True)
class OpenCompletion:
    """One completion that is being written.

    Attributes:
        prompt: Token ids, at least one.
        seed: Seed of its noise.
        edit: Which delta it is written with, -1 for none.
        new: Token ids written so far, without the end of text.
        finish: "" while it grows, then "stop" or "length".
        status: "ok", or why it was given up.
    """

    prompt: tuple[int, ...]
    seed: int = 0
    edit: int = -1
    new: list[int] = field(default_factory=list)
    finish: str = ""
    status: str = "ok"

    @property
    def is_open(self) -> bool:
        """It is still growing."""
        return not self.finish and self.status == "ok"


class Decoding:
    """A batch of rows and its key-value cache.

    Padding is made here, on the left, so that the tokenizer's own settings do not matter. Positions are counted from
    the first real token of each row.
    """

    def __init__(self, model: PreTrainedModel, prompts: Sequence[Sequence[int]]) -> None:
        """Pad the prompts into one batch.

        Args:
            model: In eval mode.
            prompts: Token ids of each row.
        """
        self.model = model
        self.device = next(model.get_input_embeddings().parameters()).device
        width = max(map(len, prompts))
        pad = [width - len(prompt) for prompt in prompts]
        ids = [[0] * n + list(prompt) for n, prompt in zip(pad, prompts, strict=True)]
        self.ids = torch.tensor(ids, device=self.device)
        self.mask = torch.tensor([[0] * n + [1] * (width - n) for n in pad], device=self.device)
        self.cache: Any = None
        self.prompts = [list(prompt) for prompt in prompts]
        self.seen: Tensor | None = None  # (rows, vocabulary) tokens of each row, for a penalty
        parameters = inspect.signature(model.forward).parameters
        self.takes = {"position_ids", "logits_to_keep"} & set(parameters)
        self.cache_name = cache_name(model)

    def logits(self) -> Tensor:
        """Run the model on the tokens not yet read; (rows, vocabulary) logits of the next token, at least float32.

        Raises:
            UnsupportedModelError: The model keeps no key-value cache.
        """
        fed = self.ids.shape[1]
        positions = (self.mask.cumsum(-1) - 1).clamp(min=0)[:, -fed:]
        options = {"position_ids": positions, "logits_to_keep": 1}
        output = self.model(
            input_ids=self.ids,
            attention_mask=self.mask,
            use_cache=True,
            **{self.cache_name: self.cache},
            **{name: value for name, value in options.items() if name in self.takes},
        )
        self.cache = output.get(self.cache_name)
        if self.cache is None:
            raise UnsupportedModelError(
                f"{type(self.model).__name__} keeps no key-value cache, as recurrent models, and texts are written "
                "with one. Give a model with attention."
            )
        logits: Tensor = output.logits[:, -1]
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def penalised(self, logits: Tensor, penalty: float) -> Tensor:
        """Return logits, smaller for tokens that a row already has; the prompt's tokens count, padding does not."""
        if penalty == 1:
            return logits
        if self.seen is None:
            self.seen = torch.zeros_like(logits, dtype=torch.bool)
            for row, prompt in enumerate(self.prompts):
                self.seen[row, prompt] = True
        return torch.where(self.seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)

    def append(self, tokens: Tensor) -> None:
        """Add one token to every row; (rows,) ids."""
        self.ids = tokens.to(self.device)[:, None]
        if self.seen is not None:
            self.seen.scatter_(1, self.ids, True)
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(tokens), 1)], 1)

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all other rows."""
        index = torch.tensor(rows, device=self.device)
        self.ids, self.mask = self.ids[index], self.mask[index]
        self.seen = self.seen[index] if self.seen is not None else None
        self.cache.batch_select_indices(index)


def decode(
    model: PreTrainedModel,
    rows: Sequence[OpenCompletion],
    sampling: Sampling,
    ends: frozenset[int],
    stopped: Callable[[OpenCompletion], bool],
    deltas: Sequence[WeightDelta] = (),
) -> None:
    """Write every row to its end; fill in `new`, `finish` and `status`.

    Rows that have ended stay in the batch until half of it has ended, then they are dropped.

    Args:
        model: In eval mode; hooks are added for the length of the call.
        rows: Open rows.
        sampling: How tokens are drawn.
        ends: Ids that end a text.
        stopped: Whether a stop text has been written in a row.
        deltas: Low-rank deltas that `OpenCompletion.edit` names.
    """
    noise = torch.tensor([uniforms(row.seed, sampling.max_new_tokens).tolist() for row in rows], dtype=torch.float64)
    batch, held = Decoding(model, [row.prompt for row in rows]), list(range(len(rows)))
    with torch.inference_mode():
        while alive := [place for place, index in enumerate(held) if rows[index].is_open]:
            if len(alive) < len(held):
                batch.keep(alive)
                held = [held[place] for place in alive]
            with own_edits(model, deltas, [rows[index].edit for index in held], batch.device):
                _grow(batch, [rows[index] for index in held], noise[held], sampling, ends, stopped)


def _grow(
    batch: Decoding,
    rows: Sequence[OpenCompletion],
    noise: Tensor,
    sampling: Sampling,
    ends: frozenset[int],
    stopped: Callable[[OpenCompletion], bool],
) -> None:
    """Add tokens until at least half of the rows have ended."""
    step = len(rows[0].new)
    while 2 * sum(row.is_open for row in rows) > len(rows):
        logits = batch.logits()
        sound = logits.amax(-1).isfinite()
        logits = batch.penalised(logits, sampling.repetition_penalty)
        tokens = choose(logits.masked_fill(~sound[:, None], 0), noise[:, step], sampling)
        for row, token, fine in zip(rows, tokens.tolist(), sound.tolist(), strict=True):
            if not row.is_open:
                continue
            if not fine:
                row.status = f"logits are not finite after {step} new tokens"
            elif token in ends:
                row.finish = "stop"
            else:
                row.new.append(token)
                full = "length" if len(row.new) == sampling.max_new_tokens else ""
                row.finish = "stop" if stopped(row) else full
        batch.append(tokens)
        step += 1


@contextlib.contextmanager
def own_edits(
    model: PreTrainedModel, deltas: Sequence[WeightDelta], edits: Sequence[int], device: torch.device
) -> Iterator[None]:
    """Compute each row of a batch with its own edit while the block runs; -1 is none."""
    used = sorted({edit for edit in edits if edit >= 0})
    owners = torch.tensor([used.index(edit) if edit >= 0 else -1 for edit in edits], device=device)
    with per_token_deltas(model, [deltas[edit] for edit in used], owners):
        yield
