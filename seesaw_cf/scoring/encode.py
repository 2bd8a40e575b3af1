"""From a cloze to token ids with a verified boundary between context and target."""

from __future__ import annotations

from typing import NamedTuple

from transformers import PreTrainedTokenizerBase

from seesaw_cf.checks import items, shown
from seesaw_cf.errors import PromptError, RecordError
from seesaw_cf.types import Cloze


def check_clozes(clozes: object) -> None:
    """Refuse what is no list of clozes, such as plain texts.

    Raises:
        RecordError: It is no list, or an item is no `Cloze` with two texts.
    """
    for cloze in items("clozes", clozes, "a list of Cloze"):
        if not isinstance(cloze, Cloze) or not isinstance(cloze.context, str) or not isinstance(cloze.target, str):
            raise RecordError(f'clozes holds {shown(cloze)}, expected Cloze("Ada was born in", "London") and the like.')


class EncodedCloze(NamedTuple):
    """Token ids of a whole cloze; the target's tokens are `ids[start:]`, and `start >= 1`."""

    ids: tuple[int, ...]
    start: int


class Limits(NamedTuple):
    """What a model can be asked: tokens of a text, ids with an embedding, the id of unknown words; None for none."""

    tokens: int | None = None
    ids: int | None = None
    unknown: int | None = None


def check_fits(tokenizer: PreTrainedTokenizerBase, cloze: Cloze, item: EncodedCloze, limits: Limits) -> None:
    """Refuse a text that a model cannot be asked, or whose answer its tokenizer has no word for.

    Raises:
        PromptError: Too long, a context without tokens, tokens beyond the vocabulary, or an unknown answer.
    """
    ids = item.ids
    if limits.tokens is not None and len(ids) > limits.tokens:
        raise PromptError(
            f"cloze {cloze}: {len(ids)} tokens, but the model's context holds {limits.tokens}. "
            "Nothing is truncated silently; shorten the prompt or use a model with a longer context."
        )
    if item.start == 0:
        raise PromptError(f"cloze {cloze}: the context has no tokens under this tokenizer. Use a longer context.")
    if limits.ids is not None and max(ids) >= limits.ids:
        token = tokenizer.convert_ids_to_tokens(max(ids))
        raise PromptError(
            f"cloze {cloze}: the token {token!r} has id {max(ids)}, but the model has embeddings for {limits.ids} ids. "
            "Rephrase the text, or load the tokenizer that belongs to the model."
        )
    if limits.unknown in ids[item.start :]:
        raise PromptError(
            f"cloze {cloze}: the tokenizer does not know the answer (it becomes {tokenizer.unk_token!r}), so its "
            "probability would be that of any unknown word. Use another answer, or a model that can write it."
        )


def joined(cloze: Cloze) -> str:
    """The text that is scored: one space between context and target unless either already has white space there.

    Raises:
        PromptError: The context or the target has no visible character.
    """
    for part, text in (("context", cloze.context), ("target", cloze.target)):
        if not text.strip():
            raise PromptError(f"cloze {cloze}: the {part} is {text!r}, expected text. Fill it in or drop the row.")
        if has_half_pair(text):
            raise PromptError(
                f"cloze {shown(cloze)}: the {part} holds half a surrogate pair, which is no text. Repair the row."
            )
    glued = cloze.context[-1].isspace() or cloze.target[0].isspace()
    return cloze.context + ("" if glued else " ") + cloze.target


def has_half_pair(text: str) -> bool:
    """Half a surrogate pair stands in it, which no tokenizer takes."""
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def _body(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def encode_cloze(tokenizer: PreTrainedTokenizerBase, cloze: Cloze) -> EncodedCloze:
    """Encode the whole string and find where the target begins.

    White space at the boundary belongs to the target, as in "... is French" -> "... is" + " French". The ids of the
    context alone must be a prefix of the ids of the whole; otherwise tokens merge across the boundary and no
    probability of the target given the context exists. A BOS token is put first when the tokenizer adds one by
    default; without one the sequence starts with the context's first token.

    Args:
        tokenizer: Any transformers tokenizer; it is not changed.
        cloze: Context and target.

    Returns:
        The ids and the index of the first target token.

    Raises:
        PromptError: Empty parts, a target without tokens, or tokens that merge across the boundary (both token lists
            are shown).
    """
    text = joined(cloze)
    context = cloze.context.rstrip()
    whole = _body(tokenizer, text)
    head = _body(tokenizer, context)
    if whole[: len(head)] != head:
        raise PromptError(
            f"cloze {cloze}: tokens merge across the boundary between context and target. "
            f"Context alone: {tokenizer.convert_ids_to_tokens(head)}; whole: {tokenizer.convert_ids_to_tokens(whole)}. "
            "Rephrase the prompt so that it ends at a word boundary."
        )
    if len(whole) == len(head):
        raise PromptError(f"cloze {cloze}: the target has no tokens under this tokenizer. Use another target.")
    prefix = leading_specials(tokenizer)
    return EncodedCloze((*prefix, *whole), len(prefix) + len(head))


def leading_specials(tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """The special tokens this tokenizer puts before a text (BOS), found by asking it with and without them."""
    with_specials, body = list(tokenizer("a")["input_ids"]), _body(tokenizer, "a")
    starts = range(len(with_specials) - len(body) + 1)
    lead = next((start for start in starts if with_specials[start : start + len(body)] == body), 0)
    return tuple(with_specials[:lead])
