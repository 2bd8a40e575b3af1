"""Scores of a served model are those of the model here, in both wire formats; what cannot be scored is explained."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seesaw_cf.errors import DeltaMismatchError, ServiceError, UnsupportedModelError
from seesaw_cf.generation import ServedScorer
from seesaw_cf.generation.served import FORMS, ServedNames
from seesaw_cf.generation.server import served_place
from seesaw_cf.models.load import load_model
from seesaw_cf.scoring import HFScorer
from seesaw_cf.scoring.noise import measure_noise
from seesaw_cf.types import Cloze
from tests.generation.models import chat_model, chat_tokenizer
from tests.generation.scoring_server import ScoringServer
from tests.generation.server import KEY, Fault, OpenAIServer
from tests.scoring.models import make
from tests.scoring.test_unscored import by_words

NATS = 1e-4
CLOZES = [
    Cloze("Ada Lovelace was born in", "London"),
    Cloze("The mother tongue of Marie Curie is", "Polish"),
    Cloze("Toni Morrison is a citizen of", "the United States of America"),
    Cloze("Zora Neale Hurston's gender is", "female"),
    Cloze("Kraków", "é"),
    Cloze(" ", "nobody"),
]


@pytest.fixture(scope="module")
def tiny() -> Iterator[ScoringServer]:
    """A server of seesaw-tiny."""
    model, tokenizer = load_model("seesaw-tiny", device="cpu", progress=False)
    with ScoringServer(model, tokenizer, key="") as server:
        yield server


def scorer(server: ScoringServer, path: str = "/completions", **options: object) -> ServedScorer:
    base = server.url if path == "/completions" else server.url.removesuffix("/v1")
    how = {"wait": 0.001, "timeout": 20.0, "tries": 3, "path": path, **options}
    return ServedScorer(base, "tiny", "", tokenizer=server.tokenizer, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("numbers", [False, True], ids=["words", "numbers"])
@pytest.mark.parametrize("path", list(FORMS))
def test_a_served_model_scores_as_it_does_here(tiny: ScoringServer, path: str, numbers: bool) -> None:
    tiny.numbers = numbers
    try:
        served = scorer(tiny, path).score(CLOZES)
    finally:
        tiny.numbers = False
    for ours, theirs in zip(HFScorer(tiny.model, tiny.tokenizer).score(CLOZES), served, strict=True):
        assert (ours.status, ours.n_tokens, ours.greedy) == (theirs.status, theirs.n_tokens, theirs.greedy)
        assert ours.logprob == pytest.approx(theirs.logprob, abs=NATS, nan_ok=True)
        assert ours.n_greedy == theirs.n_greedy
        assert theirs.first in (ours.first, None)
    assert sum(score.status == "ok" for score in served) >= 4


TEXTS = st.text("abc Ada ińé,.'", min_size=1, max_size=12)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.builds(Cloze, TEXTS, TEXTS), min_size=1, max_size=4))
def test_any_text_has_the_score_that_it_has_here(tiny: ScoringServer, clozes: list[Cloze]) -> None:
    ours, theirs = HFScorer(tiny.model, tiny.tokenizer).score(clozes), scorer(tiny).score(clozes)
    assert [score.status for score in ours] == [score.status for score in theirs]
    assert [score.logprob for score in ours] == pytest.approx([s.logprob for s in theirs], abs=NATS, nan_ok=True)


@pytest.mark.slow
def test_questions_under_way_are_bounded(tiny: ScoringServer) -> None:
    clozes = [Cloze("Ada Lovelace was born in", f"{number}") for number in range(20)]
    tiny.most_under_way = 0
    many = scorer(tiny, concurrency=3).score(clozes)
    assert 1 <= tiny.most_under_way <= 3
    assert [score.logprob for score in scorer(tiny, concurrency=1).score(clozes)] == [s.logprob for s in many]


@pytest.mark.slow
def test_noise_is_that_of_the_server(tiny: ScoringServer) -> None:
    assert measure_noise(scorer(tiny), CLOZES, quick=True).max == 0
    tiny.noise = 0.05
    try:
        noise = measure_noise(scorer(tiny), CLOZES, quick=True)
    finally:
        tiny.noise = 0.0
    assert 0.01 < noise.max <= 0.1 * max(score.n_tokens for score in scorer(tiny).score(CLOZES))
    assert {"again", "one at a time", "in reverse order", "in two halves"} <= set(noise.shapes)


@pytest.mark.parametrize("fault", [Fault(500), Fault(429, wait=0.01), Fault(body="{")], ids=["500", "429", "broken"])
def test_passing_faults_are_tried_again(tiny: ScoringServer, fault: Fault) -> None:
    tiny.faults += [fault, fault]
    asks = scorer(tiny)
    assert asks.score(CLOZES[:1])[0].status == "ok"
    assert asks.counts["retries"] == 2


def test_lasting_faults_end_the_run(tiny: ScoringServer) -> None:
    tiny.faults += [Fault(503)] * 3
    with pytest.raises(ServiceError, match=r"no answer after 3 tries: 503.*run the same command again"):
        scorer(tiny, concurrency=1).score(CLOZES[:1])


def test_a_refused_question_has_a_status(tiny: ScoringServer) -> None:
    tiny.faults += [Fault(400)]
    refused, good = scorer(tiny, concurrency=1).score(CLOZES[:2])
    assert refused.status == "refused by the server: 400: told to fail"
    assert good.status == "ok"


@pytest.mark.parametrize("path", list(FORMS))
def test_an_answer_that_the_tokenizer_does_not_know_is_not_scored(path: str) -> None:
    with ScoringServer(make("llama"), by_words(), key="") as server:
        known, unknown = scorer(server, path).score([Cloze("Ada was born in", city) for city in ("London", "Oslo")])
    assert known.status == "ok"
    assert "the tokenizer does not know the answer (it becomes '[UNK]')" in unknown.status


def test_another_tokenizer_is_refused(tiny: ScoringServer) -> None:
    other = ServedScorer(tiny.url, "tiny", "", tokenizer=chat_tokenizer(), strict=True)
    with pytest.raises(DeltaMismatchError, match=r"it cut 'Ada .* expected \d+: .*--model"):
        other.score(CLOZES[:1])


@pytest.mark.parametrize("path", list(FORMS))
def test_truncation_is_refused(tiny: ScoringServer, path: str) -> None:
    tiny.longest = 4
    try:
        with pytest.raises(DeltaMismatchError, match=r"into 4 tokens .* It truncates prompts\. Start it with a longer"):
            scorer(tiny, path, strict=True).score(CLOZES[2:3])
        assert "truncates" in scorer(tiny, path).score(CLOZES[2:3])[0].status
    finally:
        tiny.longest = None


def test_a_server_without_log_probabilities_is_refused(openai_server: OpenAIServer) -> None:
    asks = ServedScorer(openai_server.url, "tiny", tokenizer=chat_tokenizer(), strict=True)
    with pytest.raises(UnsupportedModelError, match=r"no log-probabilities of the prompt's tokens.*vLLM, SGLang"):
        asks.score(CLOZES[:1])


def test_the_key_stays_here(openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScoringServer(chat_model(), chat_tokenizer()) as server:
        asks = ServedScorer(server.url, "tiny", "MY_KEY", tokenizer=chat_tokenizer())
        monkeypatch.setenv("MY_KEY", KEY)
        assert asks.score(CLOZES[:1])[0].status == "ok"
        assert ServedNames(server.url, "", "MY_KEY").list() == ("tiny",)
        monkeypatch.setenv("MY_KEY", "sk-wrong-99")
        with pytest.raises(ServiceError, match=r"401: .*\[key\]") as caught:
            ServedScorer(server.url, "tiny", "MY_KEY", tokenizer=chat_tokenizer()).score(CLOZES[:1])
        assert "sk-wrong-99" not in str(caught.value) + repr(asks)


def test_addresses() -> None:
    place = served_place("http://host:8000/v1/#my-lora", "--model")
    assert (place.base_url, place.path, place.model) == ("http://host:8000/v1", "/completions", "my-lora")
    native = served_place("http://host:30000/generate", "--model")
    assert (native.base_url, native.path, str(native)) == ("http://host:30000", "/generate", "host:30000")
    for secret in ("http://me:secret@host/v1", "http://host/v1?key=secret"):
        with pytest.raises(ValueError, match=r"--changed: the address of host/v1 has a user.*--key-env") as caught:
            served_place(secret, "--changed")
        assert "secret" not in str(caught.value)
