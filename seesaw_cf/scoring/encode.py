"""From a cloze to token ids with a verified boundary between context and target."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerBase

from seesaw_cf.base.checks import items, one_of, shown
from seesaw_cf.base.errors import PromptError, RecordError, UnsupportedModelError
from seesaw_cf.base.types import FORMS, Cloze
from seesaw_cf.scoring.chat import chat_head, check_chat


def check_clozes(clozes: object) -> None:
    """Refuse anything but a list of clozes, such as plain texts.

    Raises:
        RecordError: It is not a list, or an item is not a `Cloze` with two texts.
    """
    for cloze in items("clozes", clozes, "a list of Cloze"):
        if not isinstance(cloze, Cloze) or not isinstance(cloze.context, str) or not isinstance(cloze.target, str):
            raise RecordError(f'clozes holds {shown(cloze)}, expected Cloze("Ada was born in", "London") and the like.')
        one_of("form of a cloze", cloze.form, FORMS)


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
    """Refuse a text that a model cannot be asked, or an answer that its tokenizer has no word for.

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
    """Join context and target to the text that is scored, by one space unless either has white space there.

    Raises:
        PromptError: The context or the target has no visible character, or holds half a surrogate pair.
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
    """Return whether the text holds half a surrogate pair, which no tokenizer takes."""
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)


def _body(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def encode_cloze(tokenizer: PreTrainedTokenizerBase, cloze: Cloze) -> EncodedCloze:
    """Encode the whole string and find where the target begins.

    White space at the boundary belongs to the target, as in "... is French" -> "... is" + " French". The ids of the
    context alone must be a prefix of the ids of the whole; otherwise tokens merge across the boundary and no
    probability of the target given the context exists. A BOS token is put first when the tokenizer adds one by
    default; without one the sequence starts with the context's first token. In a chat form the template writes all
    special tokens, and none is added; the boundary is where it lets the assistant go on.

    Args:
        tokenizer: Any transformers tokenizer; it is not changed.
        cloze: Context and target.

    Returns:
        The ids and the index of the first target token.

    Raises:
        PromptError: Empty parts, a target without tokens, or tokens that merge across the boundary (both token lists
            are shown).
    """
    asked, refused = encode_many(tokenizer, [cloze])
    for error in refused.values():
        raise error
    return next(iter(asked))


def leading_specials(tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """Return the special tokens this tokenizer puts before a text (BOS), found by asking it with and without them."""
    with_specials, body = list(tokenizer("a")["input_ids"]), _body(tokenizer, "a")
    starts = range(len(with_specials) - len(body) + 1)
    lead = next((start for start in starts if with_specials[start : start + len(body)] == body), 0)
    return tuple(with_specials[:lead])


# Tokenizers that cut a text at its spaces: the ids of a text are then those of its parts.

# Regular expressions (beside GPT-2's, ByteLevel's own) of GPT-4 and Llama 3, and of Qwen 2. As in GPT-2's, a space with
# a letter behind it always begins a new part, no part reaches over a space from its left, and none looks behind.
_CUTTERS = tuple(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    + digits
    + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    for digits in ("{1,3}", "")
)


def cuts_at_spaces(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether this tokenizer always begins a new token at a space between a visible character and a letter.

    Then the ids of "context target" are those of "context" and those of " target", for any two. True only of
    fast byte-level tokenizers with a known regular expression, that treat the first word like any other, normalise
    by NFC at most, and with added tokens that keep away from such places.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or backend.pre_tokenizer is None:
        return False
    if any(_reaches_over(token) for token in backend.get_added_tokens_decoder().values()):
        return False
    # Only serialised do the steps show what they do; without the vocabulary that takes microseconds.
    bare = Tokenizer(BPE())
    bare.normalizer, bare.pre_tokenizer = backend.normalizer, backend.pre_tokenizer
    rules = json.loads(bare.to_str())
    if rules["normalizer"] is not None and rules["normalizer"]["type"] != "NFC":
        return False
    steps = rules["pre_tokenizer"]
    *before, last = steps["pretokenizers"] if steps["type"] == "Sequence" else [steps]
    if last["type"] != "ByteLevel" or last["add_prefix_space"]:
        return False
    if not before:
        return bool(last["use_regex"])
    first = before[0]
    isolated = first["type"] == "Split" and first["behavior"] == "Isolated" and not first["invert"]
    return len(before) == 1 and isolated and first["pattern"].get("Regex") in _CUTTERS


def _reaches_over(token: AddedToken) -> bool:
    """Return whether an added token can hold a single space next to something else, or swallow one."""
    blank = not token.content.strip() and len(token.content) > 1
    return token.lstrip or token.rstrip or token.single_word or (" " in token.content and not blank)


# Encoding many clozes at once, with two calls of the tokenizer in all.


class Encoded(NamedTuple):
    """Distinct encodings, each with all clozes that it stands for, and why the other clozes have none."""

    asked: dict[EncodedCloze, list[Cloze]]
    refused: dict[Cloze, PromptError | UnsupportedModelError]


def encode_many(tokenizer: PreTrainedTokenizerBase, clozes: Iterable[Cloze], limits: Limits | None = None) -> Encoded:
    """Encode distinct clozes.

    Args:
        tokenizer: Fast or slow; it is not changed.
        clozes: Duplicates cost nothing.
        limits: The model's; None for none.

    Returns:
        What can be scored, and why the rest cannot.
    """
    encoded = Encoded({}, {})
    texts: dict[Cloze, tuple[str, str]] = {}  # the text before the answer, and the whole
    begin = cache(partial(chat_head, tokenizer))
    for cloze in dict.fromkeys(clozes):
        try:
            texts[cloze] = cloze.context.rstrip(), joined(cloze)
            if cloze.form != "plain":
                before, gap = begin(cloze.context, cloze.form)
                check_chat(tokenizer, cloze, before)
                texts[cloze] = before, before + gap + cloze.target.lstrip()
        except (PromptError, UnsupportedModelError) as error:  # of a tokenizer without a template every chat form
            encoded.refused[cloze] = error
            texts.pop(cloze, None)
    contexts = dict.fromkeys(before for before, _ in texts.values())
    heads = dict(zip(contexts, _bodies(tokenizer, list(contexts)), strict=True))
    specials = leading_specials(tokenizer) if texts else ()
    wholes = _wholes(tokenizer, list(texts.values()), heads)
    for (cloze, (before, _)), whole in zip(texts.items(), wholes, strict=True):
        head, prefix = heads[before], specials if cloze.form == "plain" else ()
        item = EncodedCloze((*prefix, *whole), len(prefix) + len(head))
        try:
            if cloze.form != "plain" and whole[:2] == 2 * [tokenizer.bos_token_id]:
                raise PromptError(
                    f"cloze {cloze}: the chat template writes {tokenizer.bos_token!r} twice, expected one beginning of "
                    "the text. Correct tokenizer.chat_template."
                )
            _check_boundary(tokenizer, cloze, whole, head)
            check_fits(tokenizer, cloze, item, limits or Limits())
        except PromptError as error:
            encoded.refused[cloze] = error
        else:
            encoded.asked.setdefault(item, []).append(cloze)
    return encoded


def _check_boundary(tokenizer: PreTrainedTokenizerBase, cloze: Cloze, whole: list[int], head: list[int]) -> None:
    if whole[: len(head)] != head:
        raise PromptError(
            f"cloze {cloze}: tokens merge across the boundary between context and target. "
            f"Context alone: {tokenizer.convert_ids_to_tokens(head)}; whole: {tokenizer.convert_ids_to_tokens(whole)}. "
            "Rephrase the prompt so that it ends at a word boundary."
        )
    if len(whole) == len(head):
        raise PromptError(f"cloze {cloze}: the target has no tokens under this tokenizer. Use another target.")


def _wholes(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[tuple[str, str]], heads: Mapping[str, list[int]]
) -> Iterator[list[int]]:
    """Return the token ids of every whole text, put together from its parts where that gives the same ids."""
    cuts, ends = cuts_at_spaces(tokenizer), [whole[len(before) :] for before, whole in texts]
    apart = [
        cuts and end[0] == " " and end[1:2].isalpha() and not before[-1].isspace()
        for (before, _), end in zip(texts, ends)
    ]
    distinct = list(dict.fromkeys(end for end, parts in zip(ends, apart) if parts))
    tails = dict(zip(distinct, _bodies(tokenizer, distinct), strict=True))
    others = iter(_bodies(tokenizer, [whole for (_, whole), parts in zip(texts, apart) if not parts]))
    return (
        heads[before] + tails[end] if parts else next(others) for (before, _), end, parts in zip(texts, ends, apart)
    )


def _bodies(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[list[int]]:
    """Return the token ids of every text, without special tokens; for no texts ask nothing (some tokenizers fail)."""
    if not texts:
        return []
    answer = tokenizer(list(texts), add_special_tokens=False, return_attention_mask=False)["input_ids"]
    return [list(ids) for ids in answer]
