"""Batched scoring with any `AutoModelForCausalLM`.

Every distinct cloze is scored once, longest first, in right-padded batches of a bounded number of tokens; answers come
back in the order asked. Batch size, order, duplicates and padding change nothing beyond rounding (<= 1e-5 nats in
float32). No network code lives here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.errors import PromptError
from seesaw_cf.models.hooks import evaluating
from seesaw_cf.models.packing import batches, pad
from seesaw_cf.models.trial import embedding
from seesaw_cf.scoring.encode import EncodedCloze, Limits, check_clozes, check_fits, encode_cloze
from seesaw_cf.scoring.head import wide_head
from seesaw_cf.scoring.support import rope_limit
from seesaw_cf.types import Cloze, ClozeScore


class Scorer(Protocol):
    """Anything that can score clozes: one answer for each question, in the order asked."""

    def score(self, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        """Score `clozes`; same length, same order. What cannot be scored comes back with a reason in `status`."""


def context_length(model: PreTrainedModel) -> int | None:
    """The longest input the model's config allows in tokens, or None when it sets no limit."""
    config: Any = model.config.get_text_config(decoder=True)
    limit = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    return int(limit) if limit else None


def limits_of(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Limits:
    """Return how long a text and how large an id a model takes, and what its tokenizer makes of unknown words."""
    return Limits(context_length(model), len(embedding(model)), tokenizer.unk_token_id)


@dataclass(frozen=True)
class HFScorer:
    """Scores clozes with a transformers causal language model.

    Other threads that score or edit with the same model wait while it scores.

    Attributes:
        model: On any device, in any float dtype; logits and log-softmax are taken in float32 (float64
            for float64 models) and summed over the target's tokens in float64.
        tokenizer: The model's own tokenizer.
        max_tokens: Tokens per forward pass, padding included.
        strict: Raise on the first cloze that cannot be scored instead of reporting it in `ClozeScore.status`.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    max_tokens: int = 2048
    strict: bool = False

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
        answers: dict[Cloze, ClozeScore] = {}
        encoded: dict[EncodedCloze, list[Cloze]] = {}
        for cloze in dict.fromkeys(clozes):
            try:
                encoded.setdefault(self._encode(cloze), []).append(cloze)
            except PromptError as error:
                if self.strict:
                    raise
                answers[cloze] = ClozeScore(float("nan"), 0, False, str(error))
        order = sorted(encoded)
        with evaluating(self.model), torch.inference_mode(), wide_head(self.model):
            for group in batches([len(item.ids) for item in order], self.max_tokens, rope_limit(self.model)):
                batch = [order[index] for index in group]
                for item, score in zip(batch, self._forward(batch), strict=True):
                    answers.update(dict.fromkeys(encoded[item], score))
        return [answers[cloze] for cloze in clozes]

    def _encode(self, cloze: Cloze) -> EncodedCloze:
        item = encode_cloze(self.tokenizer, cloze)
        check_fits(self.tokenizer, cloze, item, limits_of(self.model, self.tokenizer))
        return item

    def _forward(self, batch: list[EncodedCloze]) -> list[ClozeScore]:
        """One forward pass over B encoded clozes, right-padded to the longest, T tokens."""
        ids, mask = pad([item.ids for item in batch], embedding(self.model).device)
        logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        # Only the positions that predict a target token are normalised: (positions, vocabulary).
        rows = [row for row, item in enumerate(batch) for _ in item.ids[item.start :]]
        places = [place - 1 for item in batch for place in range(item.start, len(item.ids))]
        targets = torch.tensor([token for item in batch for token in item.ids[item.start :]])
        wide = torch.promote_types(logits.dtype, torch.float32)
        needed = logits[torch.tensor(rows, device=logits.device), torch.tensor(places, device=logits.device)].to(wide)
        logprobs = needed.log_softmax(-1).gather(1, targets.to(needed.device)[:, None])[:, 0].double().cpu()
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
