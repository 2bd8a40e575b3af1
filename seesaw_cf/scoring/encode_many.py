"""Encoding many clozes at once: the ids of `encode_cloze` with two calls of the tokenizer in all, not five for each.

A byte-level tokenizer that cuts its text at spaces before anything else encodes every context and every target once:
then the ids of a whole text are those of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from transformers import PreTrainedTokenizerBase

from seesaw_cf.errors import PromptError
from seesaw_cf.scoring.boundary import cuts_at_spaces
from seesaw_cf.scoring.encode import (
    EncodedCloze,
    Limits,
    check_fits,
    encode_cloze,
    has_half_pair,
    joined,
    leading_specials,
)
from seesaw_cf.types import Cloze


class Encoded(NamedTuple):
    """Distinct encodings, each with all clozes that it stands for, and why the other clozes have none."""

    asked: dict[EncodedCloze, list[Cloze]]
    refused: dict[Cloze, PromptError]


def encode_many(tokenizer: PreTrainedTokenizerBase, clozes: Iterable[Cloze], limits: Limits | None = None) -> Encoded:
    """Encode distinct clozes.

    Args:
        tokenizer: Fast or slow; it is not changed.
        clozes: Duplicates cost nothing.
        limits: The model's; None for none.

    Returns:
        What can be scored, and why the rest cannot; the texts of the reasons are those of `encode_cloze`.
    """
    todo = list(dict.fromkeys(clozes))
    good = [_is_sound(cloze) for cloze in todo]
    sound_clozes = [cloze for cloze, sound in zip(todo, good) if sound]
    contexts = dict.fromkeys(cloze.context.rstrip() for cloze in sound_clozes)
    heads = dict(zip(contexts, _bodies(tokenizer, list(contexts)), strict=True))
    wholes = _wholes(tokenizer, sound_clozes, heads)
    prefix = leading_specials(tokenizer) if sound_clozes else ()
    encoded = Encoded({}, {})
    for cloze, sound in zip(todo, good):
        whole, head = (next(wholes), heads[cloze.context.rstrip()]) if sound else ([], [])
        try:
            if whole[: len(head)] != head or len(whole) == len(head):
                item = encode_cloze(tokenizer, cloze)  # raises, with the full explanation
            else:
                item = EncodedCloze((*prefix, *whole), len(prefix) + len(head))
            check_fits(tokenizer, cloze, item, limits or Limits())
        except PromptError as error:
            encoded.refused[cloze] = error
        else:
            encoded.asked.setdefault(item, []).append(cloze)
    return encoded


def _is_sound(cloze: Cloze) -> bool:
    texts = (cloze.context, cloze.target)
    return all(map(str.strip, texts)) and not any(map(has_half_pair, texts))


def _wholes(
    tokenizer: PreTrainedTokenizerBase, clozes: Sequence[Cloze], heads: Mapping[str, list[int]]
) -> Iterator[list[int]]:
    """Token ids of every cloze's text, put together from its parts where that is the same."""
    cuts = cuts_at_spaces(tokenizer)
    apart = [cuts and cloze.target[0].isalpha() and not cloze.context[-1].isspace() for cloze in clozes]
    targets = list(dict.fromkeys(cloze.target for cloze, parts in zip(clozes, apart) if parts))
    tails = dict(zip(targets, _bodies(tokenizer, [f" {target}" for target in targets]), strict=True))
    others = iter(_bodies(tokenizer, [joined(cloze) for cloze, parts in zip(clozes, apart) if not parts]))
    return (
        heads[cloze.context] + tails[cloze.target] if parts else next(others) for cloze, parts in zip(clozes, apart)
    )


def _bodies(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[list[int]]:
    """Token ids of every text, without special tokens; an empty list asks nothing (some tokenizers fail on it)."""
    if not texts:
        return []
    answer = tokenizer(list(texts), add_special_tokens=False, return_attention_mask=False)["input_ids"]
    return [list(ids) for ids in answer]
