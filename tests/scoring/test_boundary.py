"""Texts put together from encoded parts have the ids of the whole, for every tokenizer that is believed to allow it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from seesaw_cf.scoring import encode_cloze
from seesaw_cf.scoring.encode import EncodedCloze, cuts_at_spaces, encode_many, leading_specials
from seesaw_cf.types import Cloze
from tests.tokenizer_styles import STYLES, TEXTS, byte_level

LETTERS = st.text(alphabet="aeiLné's 1-.,\n\u00a0", min_size=1, max_size=12)


def _split(pattern: str | None, normalizer: Any = None) -> PreTrainedTokenizerBase:
    """A byte-level BPE with the regular expression of a known family, trained on a few texts."""
    made = Tokenizer(models.BPE())
    byte = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    steps = [] if pattern is None else [pre_tokenizers.Split(Regex(pattern), "isolated")]
    made.pre_tokenizer = pre_tokenizers.Sequence([*steps, byte])
    made.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator([*TEXTS, "a'll an 11 1990 -- ...", "é éa né"], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made)


# As in the tokenizer.json of meta-llama/Meta-Llama-3-8B and of Qwen/Qwen2-7B.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
FAMILIES = {"gpt2": _split(None), "llama3": _split(LLAMA3), "qwen2": _split(QWEN2, normalizers.NFC())}


def by_hand(tokenizer: PreTrainedTokenizerBase, cloze: Cloze) -> EncodedCloze | None:
    """The ids of the whole string, and where its context ends; None where tokens reach over that place."""
    glue = "" if cloze.context[-1].isspace() or cloze.target[0].isspace() else " "
    texts = (cloze.context.rstrip(), cloze.context + glue + cloze.target)
    head, whole = (tuple(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts)
    lead = leading_specials(tokenizer)
    fits = cloze.context.strip() and cloze.target.strip() and whole[: len(head)] == head and len(whole) > len(head)
    return EncodedCloze((*lead, *whole), len(lead) + len(head)) if fits else None


@pytest.mark.parametrize("family", FAMILIES)
@given(LETTERS, LETTERS)
@settings(deadline=None, max_examples=150)
def test_the_parts_give_the_ids_of_the_whole(family: str, context: str, target: str) -> None:
    tokenizer, cloze = FAMILIES[family], Cloze(context, target)
    assert cuts_at_spaces(tokenizer)
    asked, refused = encode_many(tokenizer, [cloze])
    assert [*asked, *refused.values()] == [by_hand(tokenizer, cloze) or refused[cloze]]


@pytest.mark.parametrize("style", STYLES)
def test_every_style_encodes_the_whole(style: str) -> None:
    tokenizer = STYLES[style]()
    clozes = [Cloze(text, target) for text in TEXTS for target in ("London", "1990", "x y", "é")]
    asked, refused = encode_many(tokenizer, clozes)
    found = {c: item for item, same in asked.items() for c in same} | dict.fromkeys(refused)
    assert found == {c: by_hand(tokenizer, c) for c in clozes}
    assert all(encode_cloze(tokenizer, c) == item for c, item in found.items() if item)


def test_tokenizers_that_might_merge_over_a_space_are_not_trusted() -> None:
    assert cuts_at_spaces(byte_level(bos=True))
    assert not cuts_at_spaces(_split(r"\S+"))
    assert not cuts_at_spaces(_split(None, normalizers.NFKC()))
    for token in (
        AddedToken("in Lon"),
        AddedToken("<m>", lstrip=True),
        AddedToken(" "),
        AddedToken("x", single_word=True),
    ):
        tokenizer = _split(None)
        tokenizer.backend_tokenizer.add_tokens([token])
        assert not cuts_at_spaces(tokenizer)
    tokenizer = _split(None)
    tokenizer.backend_tokenizer.add_tokens([AddedToken("    "), AddedToken("<e>")])
    assert cuts_at_spaces(tokenizer)
