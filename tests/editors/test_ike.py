"""In-context editing: the published text, retrieval by request alone, honest counting of what is shown."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from seesaw_cf.editors.ike import IKE, IKEConfig, chat_messages, demonstrations, sentence_encoder, similarity, tf_idf
from seesaw_cf.errors import EditError, StorageError, UnknownNameError
from seesaw_cf.scoring import HFScorer
from seesaw_cf.types import Case, Cloze
from tests.fakes import REQUESTS, request, tiny_model, tiny_tokenizer

MODEL, TOKENIZER = tiny_model("llama", max_position_embeddings=4096), tiny_tokenizer()
CURIE = request("{} was born in", "Marie Curie", "London", "Kraków")


def _cases(n: int) -> list[Case]:
    towns = ["Oslo", "Lima", "Cairo", "Quito", "Hanoi"]
    return [
        Case(
            k,
            request("{} was born in", f"Person {k}", towns[k % 5], "Rome"),
            paraphrase_prompts=(f"The birthplace of Person {k} is",),
            neighborhood_prompts=(f"Neighbour {k} was born in",),
        )
        for k in range(n)
    ]


def test_demonstrations_are_the_three_published_kinds() -> None:
    copy, update, retain = demonstrations(_cases(1))
    assert copy.text == "New Fact: Person 0 was born in Oslo\nPrompt: Person 0 was born in Oslo\n\n"
    assert update.text == "New Fact: Person 0 was born in Oslo\nPrompt: The birthplace of Person 0 is Oslo\n\n"
    assert retain.text == "New Fact: Person 0 was born in Oslo\nPrompt: Neighbour 0 was born in Rome\n\n"
    assert [demo.kind for demo in demonstrations([replace(_cases(1)[0], paraphrase_prompts=())])] == ["copy", "retain"]


def test_zero_shot_text_is_exact_and_a_prompt_follows_it() -> None:
    delta = IKE().edit(MODEL, TOKENIZER, [CURIE])
    assert delta.context == "New Fact: Marie Curie was born in London\nPrompt: "
    assert delta.updates == {}
    assert not delta.is_zero()
    score = HFScorer(MODEL, TOKENIZER, strict=True).score([Cloze(delta.context + CURIE.text, "London")])
    assert math.isfinite(score[0].logprob)


def test_leme_style_is_one_question_and_answer_per_fact() -> None:
    editor = IKE(IKEConfig(style="leme"), pool=demonstrations(_cases(5)))
    assert editor.edit(MODEL, TOKENIZER, [CURIE]).context == "Q: Marie Curie was born in? A: London\n"
    assert editor.edit(MODEL, TOKENIZER, REQUESTS).context.count("Q: ") == 3


def _toy_encoder(texts: Sequence[str]) -> NDArray[np.float64]:
    """The number behind "Person" as an angle: a query about Person 7 is nearest to 7, then 6 and 8, ..."""
    found = []
    for text in texts:
        number = int(text.split("Person ")[1].split()[0])
        found.append([math.cos(number / 100), math.sin(number / 100)])
    return np.array(found)


def test_the_k_most_similar_come_first_as_published() -> None:
    pool = [demo for demo in demonstrations(_cases(20)) if demo.kind == "copy"]
    editor = IKE(IKEConfig(k=3), pool=tuple(pool), encoder=_toy_encoder).fit(MODEL, TOKENIZER)
    asked = request("{} was born in", "Person 7", "Lima", "Rome")
    context = editor.edit(MODEL, TOKENIZER, [asked]).context
    # Person 7's own example is never shown; 6 and 8 are equally near (cosine is even), pool order decides, then 5.
    lines = [line for line in context.splitlines() if line.startswith("New Fact")]
    names = [line.split(" was")[0].removeprefix("New Fact: ") for line in lines]
    assert set(names[:2]) == {"Person 6", "Person 8"}
    assert names[2] in ("Person 5", "Person 9")
    assert names[3] == "Person 7"
    last = replace(editor, config=IKEConfig(k=3, order="most_similar_last"))
    turned = last.edit(MODEL, TOKENIZER, [asked]).context
    parts = context.split("\n\n")
    assert turned.split("\n\n") == [*parts[:3][::-1], parts[3]]


def test_retrieval_uses_the_request_only_and_is_deterministic() -> None:
    pool = demonstrations(_cases(30))
    one = IKE(pool=pool).fit(MODEL, TOKENIZER).edit(MODEL, TOKENIZER, [CURIE])
    assert one.context == IKE(pool=pool).edit(tiny_model("gpt2", n_positions=4096), TOKENIZER, [CURIE]).context
    assert sum(one.meta["diagnostics"][0]["demonstrations"].values()) == 16


def test_examples_that_do_not_fit_are_left_out_and_counted() -> None:
    small = tiny_model("llama", max_position_embeddings=256)
    delta = IKE(pool=demonstrations(_cases(30))).edit(small, TOKENIZER, [CURIE])
    told = delta.meta["diagnostics"][0]
    assert told["left_out_for_length"] > 0
    assert sum(told["demonstrations"].values()) + told["left_out_for_length"] == 16
    assert len(TOKENIZER(delta.context)["input_ids"]) <= 256 - 64
    with pytest.raises(EditError, match="the model's context holds 64"):
        IKE().edit(tiny_model("llama"), TOKENIZER, REQUESTS)


def test_similarity_by_words_by_hand() -> None:
    # Texts "a b" and "a c": df(a) = 2, df(b) = df(c) = 1, N = 2, so idf(a) = ln(3/3) + 1 = 1 and
    # idf(b) = ln(3/2) + 1 = x. Query "b" has cosine x / sqrt(1 + x^2) with the first, 0 with the second.
    x = math.log(1.5) + 1
    encode = tf_idf(["a b", "A c"])
    found = similarity(encode(["B!", "zzz"]), encode(["a b", "A c"]))
    assert np.abs(found - np.array([[x / math.sqrt(1 + x * x), 0.0], [0.0, 0.0]])).max() < 1e-12


def test_a_real_encoder_is_loaded_by_path_and_gives_mean_pooled_vectors(tmp_path: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel

    with torch.random.fork_rng():
        config = BertConfig(
            vocab_size=len(TOKENIZER), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
        )
        bert: Any = BertModel(config).eval()
    bert.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    encode = sentence_encoder(str(tmp_path))
    together, alone = encode(["Ada", "Marie Curie was born in"]), encode(["Ada"])
    np.testing.assert_allclose(together[:1], alone, atol=1e-6)  # padding is not averaged in
    editor = IKE(IKEConfig(encoder=str(tmp_path)), pool=demonstrations(_cases(3)))
    with pytest.raises(EditError, match="Call fit"):
        editor.edit(MODEL, TOKENIZER, [CURIE])
    assert editor.fit(MODEL, TOKENIZER).edit(MODEL, TOKENIZER, [CURIE]).context.count("New Fact") == 10
    with pytest.raises(StorageError, match="cannot be loaded"):
        sentence_encoder(str(tmp_path / "nowhere"))


def test_chat_messages_carry_edit_and_prompt() -> None:
    system, user = chat_messages([CURIE], "Write about {edit} Marie Curie.")
    assert (system["role"], user["role"]) == ("system", "user")
    assert system["content"].startswith("As an AI system")
    assert user["content"].endswith("\nEdit: Marie Curie was born in London.\nPrompt: Write about {edit} Marie Curie.")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"order": "random"}, UnknownNameError, "most_similar_first"),
        ({"style": "lemme"}, UnknownNameError, "Did you mean 'leme'"),
        ({"k": -1}, EditError, "k is -1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        IKEConfig(**options)
