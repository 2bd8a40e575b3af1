"""The chat forms: what is asked, recomputed by transformers' own template, forward pass and generation."""

import functools
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerBase

from seesaw_cf.base.types import FORMS, Cloze
from seesaw_cf.errors import PromptError, UnknownNameError, UnsupportedModelError
from seesaw_cf.generation import Ask, HFGenerator, Message, Sampling
from seesaw_cf.scoring import HFScorer, TrieScorer, encode_cloze
from seesaw_cf.scoring.chat import make_turns, template_facts
from tests.tokenizer_styles import byte_level, sentencepiece_like

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
INST = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% else %} {{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
)
STYLES = {"chatml": CHATML, "inst": INST}
TOKENIZERS: dict[str, Any] = {"gpt2": functools.partial(byte_level, bos=False), "llama2": sentencepiece_like}
TOKENIZERS["llama3"] = functools.partial(byte_level, bos=True)
PROMPTS = ("Ada Lovelace was born in", "The mother tongue of Marie Curie is", "Where was Toni Morrison born?")
ANSWERS = ("London", "Polish", "the United States of America", "3 cities")


def tokenizer_of(style: str, template: str | None = CHATML) -> PreTrainedTokenizerBase:
    tokenizer = TOKENIZERS[style]()
    tokenizer.chat_template = template
    return tokenizer


@functools.cache
def model(vocabulary: int = 500) -> Any:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    config = LlamaConfig(vocab_size=vocabulary, max_position_embeddings=512, initializer_range=0.3, **sizes)
    return LlamaForCausalLM(config).eval()


def spelled_turns(prompt: str, form: str) -> list[dict[str, str]]:
    """What is asked, written out once more."""
    if prompt.endswith("?"):
        user, begun = f"{prompt}\nAnswer with a few words only.", "The answer is"
    else:
        user, begun = f"Complete the sentence. Answer with the missing words only.\n{prompt}", prompt
    turns = [{"role": "user", "content": user}]
    return [*turns, {"role": "assistant", "content": begun}] if form == "prefill" else turns


def head_of(tokenizer: PreTrainedTokenizerBase, prompt: str, form: str, **options: Any) -> Any:
    flags: dict[str, Any] = {"continue_final_message": True} if form == "prefill" else {"add_generation_prompt": True}
    return tokenizer.apply_chat_template(spelled_turns(prompt, form), **flags, **options)


@pytest.mark.parametrize("style", TOKENIZERS)
@pytest.mark.parametrize("template", STYLES)
@pytest.mark.parametrize("form", FORMS[1:])
def test_scores_are_those_of_the_template_and_a_forward_pass(style: str, template: str, form: str) -> None:
    tokenizer = tokenizer_of(style, STYLES[template])
    clozes = [Cloze(prompt, answer, form) for prompt in PROMPTS for answer in ANSWERS]
    between = " " if form == "prefill" or template == "inst" else ""
    expected = []
    for cloze in clozes:
        head = head_of(tokenizer, cloze.context, form, tokenize=True, return_dict=False)
        text = head_of(tokenizer, cloze.context, form, tokenize=False) + between + cloze.target
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert ids[: len(head)] == head
        item = encode_cloze(tokenizer, cloze)
        assert (list(item.ids), item.start) == (ids, len(head))
        with torch.inference_mode():
            logprobs = model()(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        expected.append(sum(float(logprobs[at - 1, ids[at]]) for at in range(len(head), len(ids))))
    for scorer in (HFScorer(model(), tokenizer), TrieScorer(model(), tokenizer)):
        scores = scorer.score(clozes)
        assert [score.status for score in scores] == ["ok"] * len(clozes)
        assert [score.logprob for score in scores] == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("form", FORMS[1:])
def test_generation_goes_on_where_scores_begin(form: str) -> None:
    tokenizer = tokenizer_of("gpt2")
    for prompt in PROMPTS:
        turns = tuple(Message(**turn) for turn in make_turns(prompt, form))
        (written,) = HFGenerator(model(), tokenizer).generate([Ask(turns)], Sampling(6, temperature=0))
        head = head_of(tokenizer, prompt, form, tokenize=True, return_dict=False)
        options: dict[str, Any] = {"do_sample": False, "max_new_tokens": 6, "pad_token_id": 0, "eos_token_id": 0}
        ids = model().generate(torch.tensor([head]), attention_mask=torch.ones(1, len(head)), **options)[0]
        assert written.text == tokenizer.decode(ids[len(head) :], skip_special_tokens=True)
        assert written.prompt_tokens == encode_cloze(tokenizer, Cloze(prompt, "London", form)).start


def test_a_form_is_one_of_three_and_plain_by_default() -> None:
    tokenizer = tokenizer_of("llama3")
    plain, none = Cloze(PROMPTS[0], "London"), tokenizer_of("llama3", None)
    assert encode_cloze(tokenizer, plain) == encode_cloze(none, plain)
    with pytest.raises(UnknownNameError, match="form"):
        HFScorer(model(), tokenizer).score([Cloze(PROMPTS[0], "London", "chat")])


@pytest.mark.parametrize(
    ("template", "cloze", "reason"),
    [
        ("{{ raise_exception('roles must alternate') }}", Cloze(PROMPTS[0], "London", "question"), "roles must"),
        ("{{ messages[3].content }}", Cloze(PROMPTS[0], "London", "prefill"), "UndefinedError"),
        ("{{ messages[0].content + 1 }}", Cloze(PROMPTS[0], "London", "question"), "TypeError"),
        ("{{ bos_token }}" + INST, Cloze(PROMPTS[0], "London", "question"), "'<s>' twice"),
        (INST, Cloze("<s>Ada Lovelace was born in", "London", "question"), "special token '<s>'"),
        (INST, Cloze(PROMPTS[0], "London<|endoftext|>", "prefill"), "special token"),
        (INST, Cloze("London is the city that London has. Ada is from", "london", "question"), "holds its answer"),
        (INST, Cloze("New Fact: Ada is from Rome\nBorn in Rome, Ada is from", "Rome", "prefill"), "holds its answer"),
        (INST.replace("[INST]", "Answer London or Rome:"), Cloze(PROMPTS[0], "Rome", "question"), "holds its answer"),
    ],
)
def test_what_cannot_be_asked_in_chat_says_why(template: str, cloze: Cloze, reason: str) -> None:
    tokenizer = tokenizer_of("llama3", template)
    (score,) = HFScorer(model(), tokenizer).score([cloze])
    assert reason in score.status
    with pytest.raises(PromptError, match=r"Correct|Remove|Rephrase|plain form"):
        encode_cloze(tokenizer, cloze)


def test_an_editors_context_and_parts_of_words_are_no_leak() -> None:
    tokenizer = tokenizer_of("llama3", INST)
    told = Cloze("New Fact: Ada is from Rome\nPrompt: Ada is from", "Rome", "prefill")
    part = Cloze("Romero of Nigeria is from", "Niger", "question")
    scores = HFScorer(model(), tokenizer).score([told, part])
    assert [score.status for score in scores] == ["ok", "ok"]
    assert make_turns(told.context, "prefill")[1]["content"] == "Prompt: Ada is from"


def test_a_template_that_is_missing_or_says_nothing_is_an_error() -> None:
    with pytest.raises(UnsupportedModelError, match="no chat template"):
        template_facts(tokenizer_of("gpt2", None))
    asked = [Cloze(PROMPTS[0], "London", form) for form in ("plain", "question")]
    plain, chat = HFScorer(model(), tokenizer_of("gpt2", None)).score(asked)
    assert plain.status == "ok"
    assert "no chat template" in chat.status
    for template in ("{% for m in messages %}{{ m.role }}:{% endfor %}", "{{ messages[-1].content }}"):
        with pytest.raises(PromptError, match="chat template"):
            template_facts(tokenizer_of("gpt2", template))
    facts = [template_facts(tokenizer_of("gpt2", template)) for template in (CHATML, CHATML, INST)]
    assert facts[0] == facts[1]
    assert not {*facts[0].values()} & {*facts[2].values()}
