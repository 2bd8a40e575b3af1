"""What every reader of a judge's or an annotator's reply must know, and how requests are kept."""

from __future__ import annotations

import re

from seesaw_cf.generation.types import Ask, Completion
from seesaw_cf.longform.tables import CallRow

__all__ = ["call_row", "is_refusal"]

_REFUSAL = re.compile(r"\b(?:i(?:['’]m| am) sorry|i (?:can(?:no|['’])t|am (?:un|not )able)|as an ai)\b", re.IGNORECASE)


def is_refusal(reply: str) -> bool:
    """Whether a reply declines to answer, in the usual words of chat models."""
    return _REFUSAL.search(reply) is not None


def call_row(ask: Ask, reply: Completion, status: str, temperature: float) -> CallRow:
    """A request and its reply; the turns of a conversation as one text, each after its role.

    Args:
        ask, reply: What was asked and said.
        status: What reading the reply gave.
        temperature: Of the reply.
    """
    turns = [] if isinstance(ask.prompt, str) else [f"[{turn.role}]\n{turn.content}" for turn in ask.prompt]
    return {
        "prompt": ask.prompt if isinstance(ask.prompt, str) else "\n\n".join(turns),
        "temperature": temperature,
        "seed": ask.seed,
        "reply": reply.text,
        "status": status,
        "prompt_tokens": reply.prompt_tokens,
        "new_tokens": reply.new_tokens,
    }
