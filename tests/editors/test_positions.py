"""The token at the looked-up index is the subject's last one, in every tokenizer style."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from seesaw_cf.editors.locate.positions import encode_text, last_token_before, prepare
from seesaw_cf.errors import PromptError
from tests.fakes import request, tiny_model, tiny_tokenizer
from tests.tokenizer_styles import STYLES, byte_level

SUBJECTS = ("Marie Curie", "C. V. Raman", "Zora Neale Hurston", "São Paulo", "東京", "Düsseldorf")
PROMPTS = ("{} was born in", "The mother tongue of {} was", "{}'s gender is", "I think so. The city of {} lies in")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_token_found_ends_the_subject(style: str, side: str, prompt: str) -> None:
    tokenizer = STYLES[style]()
    tokenizer.padding_side = side
    for subject in SUBJECTS:
        text = prompt.format(subject)
        index = last_token_before(tokenizer, text, text.index(subject) + len(subject))
        ids = encode_text(tokenizer, text)
        upto = str(tokenizer.decode(list(ids[: index + 1]), skip_special_tokens=True))
        before = tokenizer.decode(list(ids[:index]), skip_special_tokens=True)
        assert upto.rstrip().endswith(subject[-1])
        assert subject in upto
        assert subject not in before


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet="aé東 .'", min_size=1, max_size=12).filter(lambda text: text.strip() == text and text))
def test_bytes_of_one_character_count_for_the_last(subject: str) -> None:
    tokenizer = tiny_tokenizer()
    text = f"{subject} was born in"
    index = last_token_before(tokenizer, text, len(subject))
    assert str(tokenizer.decode(list(encode_text(tokenizer, text)[: index + 1]))).startswith(subject)


def test_a_request_knows_its_own_subject() -> None:
    """The "{}" says which of two equal names is meant."""
    asked = request("Marie Curie met {} in", "Marie Curie")
    edit = prepare(tiny_model("llama"), tiny_tokenizer(), asked, ("{}", "So. {}"))
    ids = encode_text(tiny_tokenizer(), asked.text)
    assert edit.rows[0].ids[: len(ids)] == ids
    assert tiny_tokenizer().decode(list(ids[: edit.rows[0].lookup + 1])) == "Marie Curie met Marie Curie"


@pytest.mark.parametrize("bos", [False, True])
def test_targets_of_many_tokens(bos: bool) -> None:
    tokenizer = tiny_tokenizer(bos)
    asked = request(new="the United States of America")
    row = prepare(tiny_model("llama"), tokenizer, asked, ("{}",)).rows[0]
    assert len(row.targets) > 2
    assert tokenizer.decode(list(row.targets)) == " the United States of America"
    assert tokenizer.bos_token_id not in row.targets
    assert row.ids[-(len(row.targets) - 1) :] == row.targets[:-1]
    assert (row.ids[0] == tokenizer.bos_token_id) == bos


def test_a_beginning_that_no_special_token_names_is_counted() -> None:
    named = byte_level(bos=True)
    unnamed = PreTrainedTokenizerFast(tokenizer_object=named.backend_tokenizer, eos_token="<|endoftext|>")
    assert unnamed("a")["input_ids"] == named("a")["input_ids"]
    edits = [prepare(tiny_model("llama"), tokenizer, request(), ("{}", "So. {}")) for tokenizer in (named, unnamed)]
    assert (edits[0].rows, edits[0].anchor) == (edits[1].rows, edits[1].anchor)


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
def test_too_long_a_prompt_is_an_error(kind: str) -> None:
    with pytest.raises(PromptError, match=r"tokens with its context templates, the model takes 64"):
        prepare(tiny_model(kind), tiny_tokenizer(), request(subject="Marie " * 60 + "Curie"), ("{}",))


class _Slow:
    """The slow interface of a tokenizer: no offsets."""

    is_fast = False

    def __init__(self, fast: PreTrainedTokenizerBase) -> None:
        self.fast = fast

    def __getattr__(self, name: str) -> object:
        return getattr(self.fast, name)

    def __call__(self, text: str, **kwargs: object) -> object:
        assert "return_offsets_mapping" not in kwargs
        return self.fast(text, **kwargs)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_slow_tokenizers_find_the_same(prompt: str) -> None:
    fast = tiny_tokenizer()
    for subject in SUBJECTS:
        text = prompt.format(subject)
        end = text.index(subject) + len(subject)
        assert last_token_before(_Slow(fast), text, end) == last_token_before(fast, text, end)  # type: ignore[arg-type]


def test_slow_tokenizers_refuse_merges_across_the_end() -> None:
    with pytest.raises(PromptError, match="merge across the end of the subject"):
        last_token_before(_Slow(tiny_tokenizer()), "London was", len("Lond"))  # type: ignore[arg-type]
