"""Batched scoring with any `AutoModelForCausalLM`.

Every distinct cloze is scored once, longest first, in right-padded batches of a bounded number of tokens; answers come
back in the order asked. Batch size, order, duplicates and padding change nothing beyond rounding (<= 1e-5 nats in
float32). No network code lives here.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.pytorch_utils import Conv1D

from seesaw_cf.base.errors import DeltaMismatchError
from seesaw_cf.base.types import Cloze, ClozeScore
from seesaw_cf.models.architectures import block_number, text_config, transformer_blocks
from seesaw_cf.models.hooks import evaluating
from seesaw_cf.models.tensors import batches, pad
from seesaw_cf.models.trial import embedding
from seesaw_cf.models.weights import LowRank, WeightDelta, applied
from seesaw_cf.scoring.encode import EncodedCloze, Limits, check_clozes, encode_many
from seesaw_cf.scoring.forward import wide_head
from seesaw_cf.scoring.support import shared_limit


@runtime_checkable
class Scorer(Protocol):
    """Anything that can score clozes: one answer for each question, in the order asked."""

    def score(self, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        """Score `clozes`; same length, same order. What cannot be scored comes back with a reason in `status`."""


def context_length(model: PreTrainedModel) -> int | None:
    """Return the longest input the model's config allows in tokens, or None when it sets no limit."""
    config = text_config(model)
    limit = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    return int(limit) if limit else None


_SLAB = 32_768
Text = TypeVar("Text", Cloze, EncodedCloze)


class TextScorer(ABC):
    """What scorers of transformers models share: texts are encoded, and each distinct one is scored once."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    strict: bool

    @property
    def texts_at_once(self) -> int:
        """Clozes that are encoded together, so that their token ids fit into any memory."""
        return _SLAB

    def score(self, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        """Score every cloze.

        Args:
            clozes: N pairs of context and target; duplicates cost nothing.

        Returns:
            N scores in the order asked. Log-probabilities in nats, summed over target tokens.

        Raises:
            PromptError: Only with `strict`: an empty part, merged tokens, or a text longer than the model's context.
        """
        check_clozes(clozes)
        return self._score(clozes, sorted(set(clozes)), self.encode)

    def score_encoded(self, items: Sequence[EncodedCloze]) -> list[ClozeScore]:
        """Score texts by their token ids, as another program encoded them.

        Args:
            items: N encoded clozes that fit into the model's context; duplicates cost nothing.

        Returns:
            N scores in the order asked, see `score`.
        """
        return self._score(items, sorted(set(items)), as_it_is)

    def encode(self, clozes: Sequence[Cloze]) -> tuple[dict[Cloze, EncodedCloze], dict[Cloze, ClozeScore]]:
        """Return the token ids of clozes, in order of the ids, and the scores of those that have none.

        Raises:
            PromptError: There are such, and the scorer is strict.
        """
        limits = Limits(context_length(self.model), len(embedding(self.model)), self.tokenizer.unk_token_id)
        asked, refused = encode_many(self.tokenizer, clozes, limits)
        if refused and self.strict:
            raise next(iter(refused.values()))
        none = {cloze: ClozeScore(float("nan"), 0, False, str(error)) for cloze, error in refused.items()}
        return {cloze: item for item in sorted(asked) for cloze in asked[item]}, none

    def _score(
        self,
        texts: Sequence[Text],
        distinct: Sequence[Text],
        encode: Callable[[Sequence[Text]], tuple[dict[Text, EncodedCloze], dict[Text, ClozeScore]]],
    ) -> list[ClozeScore]:
        answers: dict[Text, ClozeScore] = {}
        with evaluating(self.model):
            for start in range(0, len(distinct), self.texts_at_once):
                encoded, refused = encode(distinct[start : start + self.texts_at_once])
                items = list(dict.fromkeys(encoded.values()))
                scores = dict(zip(items, self.score_items(items), strict=True))
                answers |= refused | {text: scores[item] for text, item in encoded.items()}
        return [answers[text] for text in texts]

    @abstractmethod
    def score_items(self, items: Sequence[EncodedCloze]) -> list[ClozeScore]:
        """Score sorted, distinct items, in their order."""


def as_it_is(items: Sequence[EncodedCloze]) -> tuple[dict[EncodedCloze, EncodedCloze], dict[EncodedCloze, ClozeScore]]:
    """Return what `TextScorer.encode` returns for texts that are encoded already."""
    return {item: item for item in items}, {}


@dataclass(frozen=True)
class HFScorer(TextScorer):
    """Scorer of clozes with a transformers causal language model.

    Other threads that score or edit with the same model wait while it scores.

    Attributes:
        model: On any device, in any float dtype; logits and log-softmax are taken in float32 (float64
            for float64 models) and summed over the target's tokens in float64.
        tokenizer: The model's own tokenizer.
        max_tokens: Tokens per forward pass, padding included.
        strict: Raise on the first cloze, in sorted order, that cannot be scored instead of reporting it in
            `ClozeScore.status`.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    max_tokens: int = 2048
    strict: bool = False

    def score_items(self, items: Sequence[EncodedCloze]) -> list[ClozeScore]:
        """Score sorted, distinct items."""
        answers: dict[EncodedCloze, ClozeScore] = {}
        with torch.inference_mode(), wide_head(self.model):
            for group in batches([len(item.ids) for item in items], self.max_tokens, shared_limit(self.model)):
                batch = [items[index] for index in group]
                answers |= zip(batch, self._forward(batch), strict=True)
        return [answers[item] for item in items]

    def _forward(self, batch: list[EncodedCloze]) -> list[ClozeScore]:
        """Score B encoded clozes in one forward pass, right-padded to the longest, T tokens."""
        ids, mask = pad([item.ids for item in batch], embedding(self.model).device)
        logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        # Only the positions that predict a target token are normalised: (positions, vocabulary).
        rows = [row for row, item in enumerate(batch) for _ in item.ids[item.start :]]
        places = [place - 1 for item in batch for place in range(item.start, len(item.ids))]
        targets = torch.tensor([token for item in batch for token in item.ids[item.start :]])
        wide = torch.promote_types(logits.dtype, torch.float32)
        needed = logits[torch.tensor(rows, device=logits.device), torch.tensor(places, device=logits.device)].to(wide)
        logprobs = needed.log_softmax(-1).gather(1, targets.to(needed.device)[:, None])[:, 0].cpu().double()
        first = needed.argmax(-1).cpu()
        hits = (first == targets).tolist()
        scores, at = [], 0
        for item in batch:
            count = len(item.ids) - item.start
            total, own = float(logprobs[at : at + count].sum()), hits[at : at + count]
            status = "ok" if total == total and abs(total) != float("inf") else f"log-probability is {total}"
            scores.append(ClozeScore(total, count, all(own), status, sum(own), tuple(first[at : at + count].tolist())))
            at += count
        return scores


# Low-rank edits as separate terms: each token of a batch can belong to another edited model.


def obstacle(model: PreTrainedModel, delta: WeightDelta) -> str:
    """Return why a delta cannot be applied per token; "" when it can.

    Only products `left @ right` on the weight of a linear layer inside the list of transformer blocks can.
    """
    for name, update in delta.updates.items():
        owner, _, leaf = name.rpartition(".")
        if not isinstance(update, LowRank):
            return f"the change of {name!r} is a full matrix"
        if leaf != "weight" or not _is_linear(model, owner):
            return f"{name!r} is not the weight of a linear layer"
        if block_number(model, name) is None:
            return f"{name!r} is outside the transformer blocks"
    return ""


def _is_linear(model: PreTrainedModel, path: str) -> bool:
    try:
        module = model.get_submodule(path)
    except AttributeError:
        return False
    # the router of a mixture of experts can be a linear layer that returns more than its product
    plain = type(module).forward in (nn.Linear.forward, Conv1D.forward) or type(module).__name__ == "FalconLinear"
    return isinstance(module, (nn.Linear, Conv1D)) and plain and bool(module.weight.is_floating_point())


def first_block(model: PreTrainedModel, deltas: Sequence[WeightDelta]) -> tuple[nn.ModuleList, int] | None:
    """Return the model's blocks and the number of the lowest one that any delta changes; None when nothing is changed.

    Args:
        model: The model.
        deltas: Deltas without an `obstacle`.
    """
    blocks, names = transformer_blocks(model), {name for delta in deltas for name in delta.updates}
    numbers = [number for name in names if (number := block_number(model, name)) is not None]
    return (blocks, min(numbers)) if blocks is not None and numbers else None


@contextlib.contextmanager
def per_token_deltas(model: PreTrainedModel, deltas: Sequence[WeightDelta], owners: Tensor) -> Iterator[None]:
    """Compute every token inside the block with the weights of its edited model.

    Args:
        model: The unedited model; forward hooks are added for the length of the block.
        deltas: n low-rank deltas.
        owners: Which delta each token belongs to, -1 for none: one number per token of the flattened batch, or one per
            batch row (then it also holds while a generation grows).

    Raises:
        DeltaMismatchError: A delta cannot be applied per token, or its shape does not fit.
    """
    for delta in deltas:
        if reason := obstacle(model, delta):
            raise DeltaMismatchError(f"{reason}, so it cannot be applied per token. Use `applied` instead.")
    with contextlib.ExitStack() as hooks:
        for name in sorted({name for delta in deltas for name in delta.updates}):
            module = model.get_submodule(name.rpartition(".")[0])
            hooks.callback(module.register_forward_hook(_term(module, name, deltas, owners)).remove)
        yield


def edited(model: PreTrainedModel, delta: WeightDelta) -> AbstractContextManager[object]:
    """Apply one edit while the block runs: in the weights, or as an extra term where writing would lose much of it.

    Args:
        model: The unedited model; as before after the block.
        delta: Any delta. In low precision one with an `obstacle` is written all the same.
    """
    if model.dtype in (torch.bfloat16, torch.float16) and not obstacle(model, delta):
        return per_token_deltas(model, [delta], torch.zeros(1, dtype=torch.long))
    return applied(model, delta)


def _term(module: Any, name: str, deltas: Sequence[WeightDelta], owners: Tensor) -> Any:
    """Return the hook that adds `x A B` of each token's own edit to a linear layer's output."""
    weight: Tensor = module.weight
    wide = torch.promote_types(weight.dtype, torch.float32)
    ins, outs, owner = [], [], []
    for number, delta in enumerate(deltas):
        update = delta.updates.get(name)
        if not isinstance(update, LowRank):
            continue
        if update.shape != weight.shape:
            raise DeltaMismatchError(
                f"the delta for {name!r} has shape {tuple(update.shape)}, the parameter has {tuple(weight.shape)}. "
                "Apply it to the model it was made on."
            )
        swapped = isinstance(module, nn.Linear)  # stores (out, in): x (L R)^T = (x R^T) L^T
        ins.append(update.right.T if swapped else update.left)
        outs.append(update.left.T if swapped else update.right)
        owner += [number] * update.left.shape[1]
    enter = torch.cat([part.to(weight.device, wide) for part in ins], 1)
    leave = torch.cat([part.to(weight.device, wide) for part in outs], 0)
    mine = owners.to(weight.device)[:, None] == torch.tensor(owner, device=weight.device)[None]

    def hook(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        inputs = args[0].flatten(0, -2)
        own = mine.repeat_interleave(len(inputs) // len(mine), 0)
        term: Tensor = ((inputs.to(wide) @ enter) * own) @ leave
        return (output.to(wide) + term.view(output.shape)).to(output.dtype)

    return hook
