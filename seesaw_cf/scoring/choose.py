"""Which scorer a run uses."""

from __future__ import annotations

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import UnsupportedModelError, unknown_name
from seesaw_cf.base.types import SCORERS, JsonObject
from seesaw_cf.scoring.hf_scorer import HFScorer, Scorer
from seesaw_cf.scoring.trie_scorer import TrieScorer


def make_scorer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    how: str = "auto",
    max_tokens: int | None = None,
    memory: int | None = None,
) -> tuple[Scorer, JsonObject]:
    """Make a scorer and describe it for the run's manifest.

    Args:
        model: In eval mode.
        tokenizer: The model's tokenizer.
        how: "auto": tries where the model takes them, else one sequence per cloze. "trie": tries or an error.
            "plain": one sequence per cloze. "single": one sequence per forward pass, so that a score depends on its
            cloze and on nothing else that is asked, in any dtype; many times slower.
        max_tokens: Tokens in one forward pass; None = what suits the device. "single" has no use for it.
        memory: Bytes that scoring with tries may take on top of the model.

    Raises:
        UnknownNameError: Another `how`.
        UnsupportedModelError: "trie", but this model cannot be fed tries; tells why.
    """
    if how not in SCORERS:
        raise unknown_name("scorer", how, SCORERS)
    device = model.device.type
    if how in ("plain", "single"):
        tokens = 1 if how == "single" else max_tokens or 2048
        return HFScorer(model, tokenizer, tokens), {"scorer": "HFScorer", "max_tokens": tokens, "device": device}
    scorer = TrieScorer(model, tokenizer, max_tokens, memory=memory)
    if how == "trie" and scorer.support.layout == "plain":
        raise UnsupportedModelError(
            f"{type(model).__name__} cannot be scored with tries: {scorer.support.reason}. "
            "Use the scorer auto or plain."
        )
    return scorer, {**scorer.describe(), "device": device}
