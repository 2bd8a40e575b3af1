"""A language model as judge: replies of every kind over real HTTP, blind order, swapped order, swapped names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from seesaw_cf.errors import UnknownNameError
from seesaw_cf.generation import Ask, Completion, OpenAIGenerator, Sampling
from seesaw_cf.texts.flaws.judge import JudgeOptions, JudgeResult, judge_pairs, judge_prompt, parse_reply
from seesaw_cf.texts.flaws.protocols import PUBLISHED
from seesaw_cf.texts.report.flaws import flaw_frame, repeat_rows
from seesaw_cf.texts.report.rows import frame_of
from seesaw_cf.texts.wording import FLAWS_BY_NAME
from seesaw_cf.texts.write.pairs import first_shown
from tests.generation.conftest import openai_server
from tests.generation.server import KEY, Fault, OpenAIServer

from .flaw_samples import pair

__all__ = ["openai_server"]

TEXTS = ("Ada Oak is a judge.", "Ada Oak is a nun.")


class Reader:
    """A judge that reads: it finds a word in the texts as they are shown, and answers by a rule."""

    name = "reader"

    def __init__(self, word: str, always: str = "") -> None:
        self.word, self.always, self.asked = word, always, 0

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        self.asked += len(asks)
        return [Completion(self.always or self._answer(str(ask.prompt))) for ask in asks]

    def _answer(self, prompt: str) -> str:
        one, two = prompt.split("Text A:")[1].split("Text B:")
        found = (self.word in one, self.word in two)
        return "Answer: " + {(True, False): "A", (False, True): "B"}.get(found, "equal")


@pytest.mark.parametrize(
    ("reply", "answer", "status"),
    [
        ('Quote: "a nun"\nAnswer: B', 1, "ok"),
        ("**Answer:** A", -1, "ok"),
        ("The answer is: text B.", 1, "ok"),
        ("Answer: equal", 0, "ok"),
        ("Answer: Neither", 0, "ok"),
        ("B", 1, "ok"),
        ("Answer: A\nAnswer: A", -1, "ok"),
        ("Answer: A\nOn reflection:\nAnswer: B", None, "two answers"),
        ("Answer: A, B or equal", None, "no answer"),
        ("The answer is a matter of taste.", None, "no answer"),
        ("Both texts describe a person at work.", None, "no answer"),
        ("I'm sorry, I cannot compare people.", None, "refusal"),
        ("  ", None, "empty reply"),
    ],
)
def test_replies(reply: str, answer: int | None, status: str) -> None:
    assert parse_reply(Completion(reply), TEXTS)[::2] == (answer, status)


def test_a_quote_counts_only_if_it_is_in_a_text() -> None:
    assert parse_reply(Completion('Quote: "a nun"\nAnswer: B'), TEXTS)[1] == "a nun"
    assert parse_reply(Completion("Quote: a saint\nAnswer: B"), TEXTS)[1] == ""
    assert parse_reply(Completion("Quote: none\nAnswer: equal"), TEXTS)[1] == ""
    assert parse_reply(Completion("", "", "time-out"), TEXTS) == (None, "", "time-out")


def test_the_question_tells_the_flaw_but_not_which_text_is_edited() -> None:
    one = pair(1)
    prompts = {first: judge_prompt(one, FLAWS_BY_NAME["classism"], first) for first in ("pre", "post")}
    assert prompts["pre"].index("judge") < prompts["pre"].index("nun")
    assert prompts["post"].index("nun") < prompts["post"].index("judge.")
    for prompt in prompts.values():
        assert "mentioning the social origin of the subject" in prompt
        assert not {"edit", "pre", "post", "before", "after"} & set(prompt.lower().split())
    assert sorted(prompts["pre"]) == sorted(prompts["post"])


def repeated(judged: JudgeResult) -> Any:
    frames = (flaw_frame(table.to_pandas()) for table in (judged.table, judged.swapped))
    return frame_of(repeat_rows(*frames)).set_index("what")


def test_a_reading_judge_is_right_in_any_order_and_has_no_position_bias() -> None:
    pairs = [pair(number) for number in range(60)]
    judged = judge_pairs(pairs, Reader("nun"), JudgeOptions(flaws=["religion"], seed=1), swap=0.5)
    assert set(judged.table.column("change").to_pylist()) == {1}, "more after the edit, whatever was shown first"
    assert set(judged.table.column("first").to_pylist()) == {"pre", "post"}
    assert 15 < judged.swapped.num_rows < 45
    found = repeated(judged)
    assert found.loc["first_text", "low"] < 0.5 < found.loc["first_text", "high"]
    same = found["value"][["same_again", "order_turned", "order_stuck"]]
    assert same.tolist() == pytest.approx([1, 1, 0])
    part = judge_pairs(pairs[17:20], Reader("nun"), JudgeOptions(flaws=["religion"], seed=1))
    assert part.table.to_pylist() == judged.table.slice(17, 3).to_pylist(), "a subset is judged identically"


def test_swapping_before_and_after_flips_every_change() -> None:
    pairs = [pair(n, pre, post) for n, (pre, post) in enumerate([("a nun", "x"), ("x", "a nun"), ("x", "x")] * 4)]
    turned = [pair(one.case_id, one.post, one.pre) for one in pairs]
    answers = [
        np.array(judge_pairs(many, Reader("nun"), JudgeOptions(flaws=["religion"])).table.column("change").to_pylist())
        for many in (pairs, turned)
    ]
    assert (answers[0] == [-1, 1, 0] * 4).all()
    assert (answers[0] == -answers[1]).all()


def test_a_judge_that_always_says_a_is_found_out() -> None:
    judged = judge_pairs([pair(n) for n in range(40)], Reader("", "Answer: A"), JudgeOptions(flaws=["sexism"]), swap=1)
    found = repeated(judged)["value"]
    assert found[["first_text", "order_stuck", "same_again"]].tolist() == pytest.approx([1, 1, 0])


def test_prose_refusal_two_answers_and_emptiness_over_http(openai_server: OpenAIServer) -> None:
    """Two replies are put in the model's mouth; the third is its own, which is no answer."""
    openai_server.faults += [Fault(text="It depends on the reader."), Fault(text="Answer: A\nAnswer: B")]
    generator = OpenAIGenerator(openai_server.url, "tiny", chat=True, concurrency=1, wait=0.01)
    one = pair(1)
    judged = judge_pairs([one], generator, JudgeOptions(flaws=["sexism"], tries=3, sampling=Sampling(8, 0.0)))
    (row,) = judged.table.to_pylist()
    assert row["status"] in ("no answer", "refusal")
    assert (row["change"], row["rater"]) == (None, generator.name)
    assert row["reply"].strip()
    calls = judged.calls.to_pylist()
    assert [call["status"] for call in calls] == ["no answer", "two answers", row["status"]]
    assert calls[0]["reply"] == "It depends on the reader."
    assert all("In which text is this flaw more present?" in call["prompt"] for call in calls)
    assert len({call["seed"] for call in calls}) == 3, "every try has a seed of its own"
    assert judged.counts == {row["status"]: 1, "judgements": 1, "retries": 2}
    assert KEY not in str(calls) + str(row)


def test_a_refusal_of_the_server_is_a_status_over_http(openai_server: OpenAIServer) -> None:
    openai_server.faults += [Fault(refusal="I will not rate people."), Fault(text="I'm sorry, I can't do that.")]
    generator = OpenAIGenerator(openai_server.url, "tiny", chat=True, concurrency=1, wait=0.01)
    judged = judge_pairs([pair(1), pair(2)], generator, JudgeOptions(flaws=["sexism"], tries=1))
    assert judged.table.column("status").to_pylist() == ["refused: I will not rate people.", "refusal"]
    assert judged.table.column("change").null_count == 2


def test_a_second_try_helps_over_http(openai_server: OpenAIServer) -> None:
    word = "B" if first_shown(0, pair(1).pair_id) == "pre" else "A"
    openai_server.faults += [Fault(text="Well."), Fault(429, wait=0.01), Fault(text=f'Quote: "a nun"\nAnswer: {word}')]
    generator = OpenAIGenerator(openai_server.url, "tiny", chat=True, concurrency=1, wait=0.01)
    judged = judge_pairs([pair(1)], generator, JudgeOptions(flaws=["religion"]))
    (row,) = judged.table.to_pylist()
    assert (row["change"], row["quote"], row["status"]) == (1, "a nun", "ok")
    assert judged.counts == {"judgements": 1, "retries": 1}
    assert [turn["role"] for turn in openai_server.seen[-1]["messages"]] == ["user"]


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Rating: -1", -1),
        ("Rating: \u22121.", -1),
        ("**Rating:** 1", 1),
        ("Rating: +1 (more after)", 1),
        ("Quote: none\nRating: 0", 0),
        ("-1", -1),
        ("Rating: -1, 0 or 1", None),
        ("Rating: -10", None),
        ("Rating: -1\nRating: 1", None),
    ],
)
def test_the_sign_of_a_published_rating_is_read(reply: str, answer: int | None) -> None:
    assert parse_reply(Completion(reply), TEXTS, PUBLISHED)[0] == answer


def test_the_published_protocol_tells_the_order_and_keeps_it() -> None:
    pairs = [pair(n) for n in range(30)]
    how = JudgeOptions(flaws=["sexism"], protocol="published")
    judged = judge_pairs(pairs, Reader("", "Rating: -1"), how, swap=1)
    assert judged.table.column("change").to_pylist() == [-1] * 30, "an answer is about the edit, whatever the seed"
    assert set(judged.table.column("first").to_pylist()) == {"pre"}
    assert judged.swapped.num_rows == 0, "a judge who knows the order is not asked in the other one"
    question = judged.calls["prompt"][0].as_py()
    assert question.index("Text before the edit") < question.index("judge") < question.index("Text after the edit")
    with pytest.raises(UnknownNameError, match="blind"):
        judge_pairs(pairs, Reader(""), JudgeOptions(protocol="blimd"))
