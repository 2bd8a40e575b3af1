"""Tokenizers that cut a text at its spaces: the ids of a text are then those of its parts."""

from __future__ import annotations

import json

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerBase

# Regular expressions (beside GPT-2's, ByteLevel's own) of GPT-4 and Llama 3, and of Qwen 2. As in GPT-2's, a space with
# a letter behind it always begins a new part, no part reaches over a space from its left, and none looks behind.
_CUTTERS = tuple(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    + digits
    + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    for digits in ("{1,3}", "")
)


def cuts_at_spaces(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Between a visible character and a space followed by a letter, this tokenizer always begins a new token.

    Then the ids of "context target" are those of "context" and those of " target", whatever the two are. True only of
    fast byte-level tokenizers whose regular expression is known, that treat the first word like any other, normalise
    by NFC at most, and whose added tokens keep away from such places.
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
    """An added token that can hold a single space beside something else, or swallow one."""
    blank = not token.content.strip() and len(token.content) > 1
    return token.lstrip or token.rstrip or token.single_word or (" " in token.content and not blank)
