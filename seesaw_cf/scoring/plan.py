"""How to score several edited models: together, or one after the other with the weights written and restored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import nn

from seesaw_cf.scoring.encode import EncodedCloze
from seesaw_cf.scoring.rows import unique_nodes

_FLOOR = {"cpu": 48, "cuda": 256}
"""Tokens below which a forward pass costs no less: reading the weights then takes longer than the arithmetic."""


@dataclass(frozen=True, slots=True)
class ScoringPlan:
    """What scoring a block of edits costs either way.

    Attributes:
        how: The cheaper way: "together" or "restore".
        reason: Why "restore" is the only way; "" when both were possible.
        edits: Edited models.
        rows: Texts asked, summed over edits.
        tokens: Trie tokens, each edit on its own.
        shared_tokens: Trie tokens of all edits together.
        first, layers: The first edited block and the number of blocks.
        together, restore: FLOPs of the transformer blocks each way, passes that are too small to be efficient counted
            at what they cost.
        bytes: Held between the shared and the edited blocks, at most.
    """

    how: Literal["together", "restore"]
    reason: str
    edits: int
    rows: int
    tokens: int
    shared_tokens: int
    first: int
    layers: int
    together: float
    restore: float
    bytes: int

    def __str__(self) -> str:
        if self.reason:
            return (
                f"{self.edits} edits, {self.rows} texts, {self.tokens} tokens: one after the other, weights restored, "
                f"{self.restore:.3g} FLOP ({self.reason})"
            )
        return (
            f"{self.edits} edits, {self.rows} texts, {self.tokens} tokens ({self.shared_tokens} shared), first edited "
            f"block {self.first} of {self.layers}: together {self.together:.3g} FLOP and {self.bytes / 2**20:.1f} MiB "
            f"held, one after the other {self.restore:.3g} FLOP -> {self.how}"
        )


def only_restore(texts: Sequence[Sequence[EncodedCloze]], blocks: nn.ModuleList | None, reason: str) -> ScoringPlan:
    """The plan of edits that cannot be scored together.

    Args:
        texts: For each edit its distinct texts.
        blocks: The model's blocks, None where they are not known.
        reason: Why.
    """
    own = sum(map(unique_nodes, texts))
    size = 0 if blocks is None else sum(parameter.numel() for parameter in blocks.parameters())
    layers = 0 if blocks is None else len(blocks)
    return ScoringPlan(
        "restore", reason, len(texts), sum(map(len, texts)), own, own, 0, layers, 0.0, 2.0 * size * own, 0
    )


def make_plan(
    texts: Sequence[Sequence[EncodedCloze]], blocks: nn.ModuleList, first: int, device: str, tokens_per_pass: int
) -> ScoringPlan:
    """Weigh both ways for edits that can be applied per token.

    Args:
        texts: For each edit its distinct texts.
        blocks: The model's blocks.
        first: The lowest edited block.
        device: Device type, for the cost of small passes.
        tokens_per_pass: Most tokens of one forward pass.
    """
    size = sum(parameter.numel() for parameter in blocks[0].parameters())
    width = next(parameter for parameter in blocks[0].parameters()).shape[0]
    floor = _FLOOR.get(device, 256)
    own = [unique_nodes(items) for items in texts]
    shared = unique_nodes(set().union(*texts))
    upper = len(blocks) - first
    restore = sum(max(tokens, floor) for tokens in own) * len(blocks)
    together = max(shared, floor) * first + max(sum(own), floor) * upper
    return ScoringPlan(
        "together" if together <= restore else "restore",
        "",
        len(texts),
        sum(map(len, texts)),
        sum(own),
        shared,
        first,
        len(blocks),
        2.0 * size * together,
        2.0 * size * restore,
        4 * width * min(shared, tokens_per_pass),
    )
