"""Language models as raters: every kind of reply, real HTTP, examples that never come from the rated edit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.effects.survey_items import ITEMS
from seesaw_cf.errors import RecordError, ServiceError
from seesaw_cf.generation import Ask, Completion, HFGenerator, OpenAIGenerator, Sampling
from seesaw_cf.texts.annotate.learned import LEFT_OUT
from seesaw_cf.texts.rate.judge import Exemplar, LLMJudge, parse_rating
from seesaw_cf.texts.rate.survey import SurveyQuestion, SurveySample, survey
from tests.generation.models import chat_model, chat_tokenizer
from tests.generation.server import KEY, Fault, OpenAIServer
from tests.longform.coupled import MAIN, sample


@pytest.mark.parametrize(
    ("reply", "rating", "status"),
    [
        ("Rating: 5", 5, "ok"),
        (" rating : **6**.", 6, "ok"),
        ("7", 7, "ok"),
        ("(4/7)", 4, "ok"),
        ("The passage says London in 1887.\nRating: 7 (Strongly agree)", 7, "ok"),
        ("My rating is 3 because of the 12 errors", 3, "ok"),
        ("Rating: 2\nRating: 2", 2, "ok"),
        ("Rating: 3 or 4", None, "two ratings"),
        ("Rating: 1-7", None, "two ratings"),
        ("Rating: 3\n\nRating: 5", None, "two ratings"),
        ("Rating: 9", None, "outside 1-7: 9"),
        ("Rating: 0", None, "outside 1-7: 0"),
        ("-3", None, "outside 1-7: -3"),
        ("Rating: 4.5", None, "not a whole number: 4.5"),
        ("The passage embraces the new fact throughout.", None, "no rating"),
        ("I'm sorry, but I can't rate false claims.", None, "refusal"),
        ("As an AI, I have no opinion on the 7 passages.", None, "refusal"),
        ("   ", None, "empty reply"),
    ],
)
def test_replies(reply: str, rating: float | None, status: str) -> None:
    assert parse_rating(Completion(reply)) == (rating, status)


def test_a_failed_request_keeps_its_own_status() -> None:
    assert parse_rating(Completion("", "", "refused by the server: 400")) == (None, "refused by the server: 400")


@given(st.text())
def test_any_reply_is_read_without_error_and_on_the_scale(reply: str) -> None:
    rating, status = parse_rating(Completion(reply))
    assert (status == "ok") == (rating in range(1, 8))


class Scripted:
    """A generator that answers from a list and keeps what it was asked."""

    name = "scripted"

    def __init__(self, *replies: str) -> None:
        self.replies, self.asked, self.heat = list(replies), list[Ask](), list[float]()

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        self.asked += asks
        self.heat.append(sampling.temperature)
        return [Completion(self.replies.pop(0), prompt_tokens=10, new_tokens=2) for _ in asks]


def test_bad_replies_are_asked_again_counted_and_kept() -> None:
    generator = Scripted("Rating: 9", "Rating: 5", "prose", "Rating: 6", "still prose", "prose to the end")
    questions = ("new_fact_main_passage", "fluency", "topicality")
    table, calls = survey([sample()], LLMJudge(generator), questions)
    rows = {row["item"]: row for row in table.to_pylist()}
    assert rows["new_fact_main_passage"]["rating"] == 6
    assert [rows[name]["tries"] for name in questions] == [2, 3, 1]
    assert (rows["fluency"]["rating"], rows["fluency"]["status"]) == (None, "no rating")
    assert rows["fluency"]["reply"] == "prose to the end"
    assert (rows["fluency"]["prompt_tokens"], rows["fluency"]["new_tokens"]) == (30, 6)
    assert generator.heat == [0.0, 0.7, 0.7]
    assert len({ask.seed for ask in generator.asked}) == 6
    kept = calls.to_pylist()
    assert [(row["attempt"], row["status"]) for row in kept if row["item"] == "new_fact_main_passage"] == [
        (1, "outside 1-7: 9"),
        (2, "ok"),
    ]
    assert all(row["prompt"].startswith("[user]\nAn AI system") and row["seed"] for row in kept)
    assert {row["temperature"] for row in kept} == {0.0, 0.7}


def pool(cases: range) -> tuple[Exemplar, ...]:
    return tuple(
        Exemplar(SurveyQuestion(item, sample(f"{MAIN} {case}.", f"R {case}.", case)), 1 + case % 7)
        for case in cases
        for item in ITEMS
    )


def test_eight_examples_of_the_same_item_and_never_of_the_rated_edit() -> None:
    generator = Scripted(*["Rating: 4"] * 9)
    # `sample` always has the same edit statement, so all examples are given another subject.
    far = pool(range(10, 22))
    others = tuple(Exemplar(SurveyQuestion(e.question.item, _other_edit(e.question)), e.rating) for e in far)
    judge = LLMJudge(generator, shots=8, pool=(*pool(range(1, 3)), *others))
    survey([sample()], judge)
    for ask in generator.asked:
        assert isinstance(ask.prompt, tuple)
        assert [turn.role for turn in ask.prompt] == ["user", "assistant"] * 8 + ["user"]
        statements = {turn.content.rsplit("Statement: ", 1)[1] for turn in ask.prompt if turn.role == "user"}
        assert len(statements) == 1
        shown = "".join(turn.content for turn in ask.prompt[:-1])
        assert not any(text in shown for text in (f"{MAIN} 1.", f"{MAIN} 2.", "R 1.", "R 2."))
        assert len(set(ask.prompt[:-1:2])) == 8
    with pytest.raises(RecordError, match=r"0 rated examples.*8 are needed"):
        survey([sample()], LLMJudge(generator, shots=8, pool=pool(range(1, 20))))
    seen = SurveyQuestion(others[0].question.item, sample(f"{MAIN} 10."))
    with pytest.raises(RecordError, match="share neither edit nor passage"):
        LLMJudge(generator, shots=12, pool=others).rate([seen])
    table, _ = survey([seen.sample], LLMJudge(generator, shots=8, pool=others), ("fluency",))
    assert table.column("status").to_pylist() == [LEFT_OUT], "a text among the examples is not rated"


def _other_edit(question: SurveyQuestion) -> SurveySample:
    return replace(question.sample, subject=f"S{question.sample.case_id}")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAIServer(chat_model(), chat_tokenizer()) as running:
        yield running


def test_a_judge_over_http_and_the_same_model_here_agree(server: OpenAIServer) -> None:
    api = OpenAIGenerator(server.url, "tiny", wait=0.001)
    sampling = Sampling(max_new_tokens=16, temperature=0, top_k=0, top_p=1)
    names = ("new_fact_main_passage", "fluency")
    far, calls = survey([sample()], LLMJudge(api, sampling=sampling), names)
    near, _ = survey([sample()], LLMJudge(HFGenerator(chat_model(), chat_tokenizer()), sampling=sampling), names)
    assert far["rating"].to_pylist() == near["rating"].to_pylist()
    assert all(1 <= rating <= 7 for rating in far["rating"].to_pylist())
    assert far["prompt_tokens"].to_pylist()[0] > 100
    assert calls.num_rows == 2
    assert "tiny at http://127.0.0.1" in far["rater"].to_pylist()[0]


@pytest.mark.slow
def test_faults_of_the_server_are_statuses_and_the_rest_is_rated(server: OpenAIServer) -> None:
    refusal = "I'm sorry, I cannot rate this."
    server.faults += [Fault(text=refusal), Fault(text="Rating: 3 and Rating: 5"), Fault(text=refusal)] + [
        Fault(503)
    ] * 2
    api = OpenAIGenerator(server.url, "tiny", wait=0.001, tries=2, concurrency=1)
    sampling = Sampling(max_new_tokens=16, temperature=0, top_k=0, top_p=1)
    names = ("new_fact_main_passage", "new_fact_related_passage", "fluency")
    table, calls = survey([sample()], LLMJudge(api, sampling=sampling, tries=2), names)
    first = {row["item"]: row["status"] for row in calls.to_pylist() if row["attempt"] == 1}
    assert first == dict(zip(names, ["refusal", "two ratings", "refusal"], strict=True))
    again = table["status"].to_pylist()
    assert again[0].startswith("no answer after 2 tries: 503")
    assert again[1:] == ["ok", "ok"]


def test_a_wrong_key_ends_the_survey_with_one_clear_error(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-987654321")
    with pytest.raises(ServiceError, match=r"401.*OPENAI_API_KEY") as caught:
        survey([sample()], LLMJudge(OpenAIGenerator(server.url, "tiny")), ("fluency",))
    assert "987654321" not in str(caught.value)
