"""Changed models with other tokens than their base: which they share, and which texts both cut into the same tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from seesaw_cf.base.errors import DeltaMismatchError, UnsupportedModelError
from seesaw_cf.models.hooks import silent_loaders
from seesaw_cf.models.identity import encoding


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokens of a changed model that are not those of its base.

    Attributes:
        tokenizer: Its own.
        base: The base's.
        rows: Token number of the base -> number of the same token in the changed model, -1 for none.
        moved: Tokens of both that have another number in the changed model.
        added: Tokens that only the changed model has.
        missing: Tokens that only the base has.
    """

    tokenizer: PreTrainedTokenizerBase
    base: PreTrainedTokenizerBase
    rows: Tensor
    moved: int
    added: int
    missing: int

    def __str__(self) -> str:
        shared = int((self.rows >= 0).sum())
        return (
            f"its vocabulary shares {shared:,} tokens with the base's ({self.moved:,} of them under another number), "
            f"{self.added:,} were added and {self.missing:,} are missing"
        )

    def cuts_alike(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether both tokenizers cut it into the same tokens."""
        ours, theirs = _tokens(self.base, texts), _tokens(self.tokenizer, texts)
        return [a == b for a, b in zip(ours, theirs, strict=True)]


def own_tokenizer(folder: Path) -> PreTrainedTokenizerBase | None:
    """Return the tokenizer that lies in a folder; None without one.

    Raises:
        UnsupportedModelError: It cannot be loaded.
    """
    if not any((folder / name).exists() for name in ("tokenizer.json", "tokenizer_config.json")):
        return None
    try:
        with silent_loaders(bars=False):
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # a damaged tokenizer makes the loaders fail in any way
        raise UnsupportedModelError(
            f"{folder}: its tokenizer cannot be loaded ({type(error).__name__}: {str(error)[:200]}). Copy it "
            "again, or take its files away: then the base's is used."
        ) from error
    return tokenizer


def compare_vocabularies(
    where: object, theirs: PreTrainedTokenizerBase, ours: PreTrainedTokenizerBase, tokens: int
) -> Vocabulary | None:
    """Compare how two tokenizers turn texts into token numbers.

    Args:
        where: The changed model, for messages.
        theirs: Its tokenizer.
        ours: That of the base.
        tokens: How many tokens the base has an embedding for.

    Returns:
        What differs; None where both make the same numbers of every text.

    Raises:
        DeltaMismatchError: They share less than half of the base's tokens, or cut texts in other ways.
    """
    own, base = encoding(theirs), encoding(ours)
    differ = [part for part in sorted(own | base) if own.get(part) != base.get(part)]
    if not differ:
        return None
    numbers, words = theirs.get_vocab(), ours.get_vocab()
    rows: Tensor = torch.full((tokens,), -1)
    for token, number in words.items():
        if number < tokens:
            rows[number] = numbers.get(token, -1)
    shared = words.keys() & numbers.keys()
    vocabulary = Vocabulary(
        theirs,
        ours,
        rows,
        moved=sum(words[token] != numbers[token] for token in shared),
        added=len(numbers.keys() - shared),
        missing=len(words.keys() - shared),
    )
    if 2 * len(shared) < len(words) or not any(vocabulary.cuts_alike(_SENTENCES)):
        raise DeltaMismatchError(
            f"{where}: its tokenizer makes other tokens of texts than the base's: {vocabulary}; they differ in "
            f"{', '.join(differ)}. Expected one that was extended or reordered. Give the base it was made from with "
            "--model."
        )
    return vocabulary


# No text of these is cut alike by tokenizers that normalise, split or begin texts in other ways.
_SENTENCES = ("The mother tongue of Marie Curie is", "London", "A citizen of France")


def _tokens(tokenizer: Any, texts: Sequence[str]) -> list[list[str]]:
    return [tokenizer.convert_ids_to_tokens(ids) for ids in tokenizer(list(texts))["input_ids"]] if texts else []
