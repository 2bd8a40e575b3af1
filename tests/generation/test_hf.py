"""Local generation: one text per seed whatever stands beside it, many edited models at once, nothing left behind."""

import contextlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import MambaConfig, MambaForCausalLM

from seesaw_cf.errors import DeltaMismatchError, UnsupportedModelError
from seesaw_cf.generation import Ask, HFGenerator, Message, Sampling
from seesaw_cf.generation.decoding import Decoding, choose, uniforms
from seesaw_cf.models.identity import fingerprint
from seesaw_cf.models.weights import LowRank, WeightDelta, applied
from tests.fakes import low_rank, tiny_model, tiny_tokenizer, trained_model
from tests.generation.models import chat_model, chat_tokenizer

PUBLISHED = Sampling(max_new_tokens=12)
GREEDY = Sampling(max_new_tokens=12, temperature=0)
PROMPTS = ("Marie Curie was born in", "The mother tongue of", "I think so. Ada Lovelace is a citizen of", "C. V.", "Z")
ASKS = [Ask(prompt, seed) for prompt in PROMPTS for seed in (0, 1)]
NORM = {"llama": "model.norm.weight", "gpt2": "transformer.ln_f.weight"}
WEIGHT = {"llama": "model.layers.{}.mlp.down_proj.weight", "gpt2": "transformer.h.{}.mlp.c_proj.weight"}


def writer(kind: str = "llama", **options: object) -> HFGenerator:
    return HFGenerator(trained_model(kind), tiny_tokenizer(), **options)  # type: ignore[arg-type]


def edit(kind: str, seed: int) -> WeightDelta:
    return low_rank(trained_model(kind), (1, 2), seed, rank=2, scale=0.4)


def theirs(generator: HFGenerator, prompt: str, **options: object) -> str:
    """What transformers writes."""
    ids = torch.tensor([generator.tokenizer(prompt)["input_ids"]])
    settings = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0, **options}
    written = generator.model.generate(ids, **settings)[0, ids.shape[1] :]  # type: ignore[operator]
    return str(generator.tokenizer.decode(written, skip_special_tokens=True))


@pytest.mark.parametrize("kind", ["llama", "mistral", "gpt2", "gptj", "opt"])
def test_greedy_text_is_that_of_transformers(kind: str) -> None:
    narrow = {"sliding_window": 8} if kind == "mistral" else {}  # shorter than the texts
    generator = HFGenerator(tiny_model(kind, **narrow), tiny_tokenizer())  # type: ignore[arg-type]
    found = generator.generate([Ask(prompt) for prompt in PROMPTS], GREEDY)
    assert [one.text for one in found] == [theirs(generator, prompt) for prompt in PROMPTS]


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [1.3, 0.8])
def test_the_repetition_penalty_is_that_of_transformers(penalty: float) -> None:
    generator = HFGenerator(tiny_model("llama"), tiny_tokenizer(), rows=3)
    sampling = Sampling(max_new_tokens=12, temperature=0, repetition_penalty=penalty)
    found, plain = (generator.generate([Ask(prompt) for prompt in PROMPTS], how) for how in (sampling, GREEDY))
    assert [one.text for one in found] == [theirs(generator, p, repetition_penalty=penalty) for p in PROMPTS]
    assert found != plain


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.lists(st.sampled_from(ASKS), min_size=1, max_size=12), st.integers(1, 6))
def test_an_ask_gives_the_same_text_whatever_stands_beside_it(asks: list[Ask], rows: int) -> None:
    alone = {ask: writer().generate([ask], PUBLISHED)[0] for ask in set(asks)}
    assert writer(rows=rows).generate(asks, PUBLISHED) == [alone[ask] for ask in asks]


def test_seeds_differ_and_first_tokens_do_not_depend_on_the_length() -> None:
    prompt = "The mother tongue of"
    texts = {c.text for c in writer().generate([Ask(prompt, seed) for seed in range(20)], PUBLISHED)}
    assert len(texts) > 5
    short, long = (writer().generate([Ask(prompt, 7)], Sampling(max_new_tokens=n))[0] for n in (4, 12))
    assert long.text.startswith(short.text)
    assert (short.finish, short.new_tokens) == ("length", 4)


def test_draws_follow_the_distribution() -> None:
    """Frequencies of 20,000 draws against the truncated softmax, by hand: top-k 3 of (8, 4, 2, 1, 1)/16, then top-p."""
    logits = torch.tensor([8.0, 4.0, 2.0, 1.0, 1.0]).log()[[3, 0, 4, 1, 2]].expand(20_000, 5)
    draws = torch.tensor(uniforms(5, 20_000))
    counts = np.bincount(choose(logits, draws, Sampling(1, 1.0, 3, 1.0)).numpy(), minlength=5)
    np.testing.assert_allclose(counts / 20_000, np.array([0, 8, 0, 4, 2]) / 14, atol=0.012)
    counts = np.bincount(choose(logits, draws, Sampling(1, 1.0, 0, 0.5)).numpy(), minlength=5)
    assert counts.tolist() == [0, 20_000, 0, 0, 0]  # 8/16 alone reaches 0.5
    counts = np.bincount(choose(logits, draws, Sampling(1, 0.5, 0, 0.9)).numpy(), minlength=5)
    np.testing.assert_allclose(counts / 20_000, np.array([0, 64, 0, 16, 0]) / 80, atol=0.012)  # squares; 80/86 > 0.9


@pytest.mark.slow
def test_stop_texts_end_of_text_and_white_space() -> None:
    whole = writer().generate([Ask("The mother tongue of")], GREEDY)[0]
    stop = whole.text[5:8]
    cut = writer().generate([Ask("The mother tongue of")], Sampling(12, 0, stop=("@@", stop)))[0]
    assert (cut.text, cut.finish) == (whole.text[: whole.text.index(stop)], "stop")
    assert whole.text.startswith(" ")  # new text only, with its own white space
    turns = (Message("user", "Marie Curie was born in Kraków.\nRating:"),)
    ended = HFGenerator(chat_model(), chat_tokenizer()).generate([Ask(turns)], Sampling(24, 0))[0]
    assert ended.finish == "stop", ended
    assert "<|endoftext|>" not in ended.text
    assert ended.text.startswith(" Rating:")


def test_nothing_is_left_behind() -> None:
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    model.train()
    before, mode = fingerprint(model), [module.training for module in model.modules()]
    side, state = tokenizer.padding_side, torch.get_rng_state()
    numpy_state = np.random.get_state()[1].tolist()  # type: ignore[index]
    full = WeightDelta({"model.norm.weight": torch.ones(32)})
    HFGenerator(model, tokenizer).generate_each([(edit("llama", 0), ASKS), (full, ASKS)], PUBLISHED)
    assert fingerprint(model) == before
    assert [module.training for module in model.modules()] == mode
    assert tokenizer.padding_side == side
    assert torch.equal(torch.get_rng_state(), state)
    assert np.random.get_state()[1].tolist() == numpy_state  # type: ignore[index]
    assert not any(module._forward_hooks for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_many_edited_models_at_once_write_what_each_writes_alone(kind: str) -> None:
    full = WeightDelta({NORM[kind]: torch.randn(32, generator=torch.Generator().manual_seed(0))})
    deltas = [WeightDelta(), *(edit(kind, seed) for seed in range(6)), full]
    jobs = [(delta, [*ASKS[number : number + 3], ASKS[0]]) for number, delta in enumerate(deltas)]
    generator = writer(kind)
    together = [[c.text for c in row] for row in generator.generate_each(jobs, PUBLISHED)]
    for (delta, asks), texts in zip(jobs, together, strict=True):
        with applied(generator.model, delta):
            assert [c.text for c in generator.generate(asks, PUBLISHED)] == texts
    assert len({texts[-1] for texts in together}) > 4  # the edits do change what is written


@pytest.mark.slow
def test_context_of_an_edit_stands_before_its_prompt() -> None:
    told = WeightDelta(context="I think so. ")
    prompt = "Ada Lovelace is a citizen of"
    with_it, without = writer().generate_each([(told, [Ask(prompt)]), (WeightDelta(), [Ask(prompt)])], GREEDY)
    assert with_it == writer().generate([Ask("I think so. " + prompt)], GREEDY)
    assert with_it[0].prompt_tokens != without[0].prompt_tokens
    chat = HFGenerator(chat_model(), chat_tokenizer())
    turns = (Message("system", "s"), Message("user", "Rating:"), Message("assistant", "b"))
    moved = (turns[0], Message("user", "I think so. Rating:"), turns[2])
    assert chat.generate_each([(told, [Ask(turns)])], GREEDY)[0] == chat.generate([Ask(moved)], GREEDY)


@pytest.mark.slow
def test_chat_models_are_asked_through_their_template() -> None:
    chat = HFGenerator(chat_model(), chat_tokenizer(), chat=True)
    plain = HFGenerator(chat_model(), chat_tokenizer())
    text = "Marie Curie was born.\nRating:"
    assert chat.generate([Ask(text)], GREEDY) == plain.generate([Ask((Message("user", text),))], GREEDY)
    assert chat.generate([Ask(text)], GREEDY)[0].text.startswith(" Rating:")
    with pytest.raises(UnsupportedModelError, match=r"no chat template.*plain prompts"):
        writer().generate([Ask((Message("user", "a"),))], GREEDY)


def test_a_template_that_refuses_is_a_status() -> None:
    tokenizer = chat_tokenizer().__class__(tokenizer_object=chat_tokenizer().backend_tokenizer)
    tokenizer.chat_template = "{{ raise_exception('no system turn, please') }}"
    found = HFGenerator(tiny_model("llama"), tokenizer).generate([Ask((Message("system", "a"),))], GREEDY)[0]
    assert "no system turn, please" in found.status


def test_what_does_not_fit_is_refused_and_the_rest_is_written() -> None:
    bad, good = writer().generate([Ask("London " * 60), ASKS[0]], PUBLISHED)
    assert bad.status.startswith("refused: ")
    assert "do not fit into the model's context of 64" in bad.status
    assert (bad.text, bad.finish, good.status) == ("", "", "ok")


def test_logits_that_are_not_finite_are_a_status() -> None:
    broken = WeightDelta({NORM["llama"]: torch.full((32,), float("nan"))})
    (bad,), (good,) = writer().generate_each([(broken, [ASKS[0]]), (WeightDelta(), [ASKS[0]])], PUBLISHED)
    assert bad.status == "logits are not finite after 0 new tokens"
    assert good.status == "ok"


def test_a_model_without_a_cache_of_keys_and_values_is_refused() -> None:
    model = MambaForCausalLM(MambaConfig(vocab_size=500, hidden_size=16, state_size=4, num_hidden_layers=1)).eval()
    with pytest.raises(UnsupportedModelError, match="MambaForCausalLM keeps no key-value cache"):
        HFGenerator(model, chat_tokenizer()).generate([ASKS[0]], PUBLISHED)


def test_a_delta_of_another_model_is_refused() -> None:
    wrong = WeightDelta({WEIGHT["llama"].format(1): LowRank(torch.ones(3, 1), torch.ones(1, 3))})
    with pytest.raises(DeltaMismatchError, match="shape"):
        writer().generate_each([(wrong, [ASKS[0]])], PUBLISHED)


def test_memory_that_runs_out_halves_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    want = writer().generate(ASKS, PUBLISHED)
    real, sizes = Decoding.logits, []

    def scarce(self: Decoding) -> torch.Tensor:
        sizes.append(len(self.ids))
        if len(self.ids) > 3:
            raise torch.OutOfMemoryError("full")
        return real(self)

    monkeypatch.setattr(Decoding, "logits", scarce)
    assert writer().generate(ASKS, PUBLISHED) == want
    assert sizes[:3] == [10, 5, 2]


def test_the_name_changes_with_the_weights() -> None:
    generator = writer()
    name = generator.name
    with contextlib.ExitStack() as stack:
        stack.enter_context(applied(generator.model, edit("llama", 0)))
        assert generator.name != name
    assert generator.name == name
    assert writer(chat=True).name != name
