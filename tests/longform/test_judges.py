"""Judges: every kind of reply to the three instruments, examples that never come from the rated edit, real HTTP."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.effects.free_answers import ANSWERS, JUDGED
from seesaw_cf.effects.instruments import DEFAULT, ITEMS
from seesaw_cf.errors import RecordError
from seesaw_cf.generation import Ask, Completion, HFGenerator, OpenAIGenerator, Sampling
from seesaw_cf.texts import RateJob
from seesaw_cf.texts.claims import CLAIMS, claim_question
from seesaw_cf.texts.judge import LEFT_OUT, Answer, Instrument, Judge, Rater, TextQuestion, digest, rate
from seesaw_cf.texts.pairs import flaw_questions, flaws
from seesaw_cf.texts.run import run_rate
from seesaw_cf.texts.survey import SurveySample, survey, survey_questions, survey_samples
from seesaw_cf.texts.tables import CALLS, RATINGS
from tests.generation.models import chat_model, chat_tokenizer
from tests.generation.server import KEY, OpenAIServer
from tests.longform.analysis_samples import pair
from tests.longform.coupled import MAIN, passages, record, sample

REPLIES = [
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
    ("-3", None, "outside 1-7: -3"),
    ("Rating: 4.5", None, "not a whole number: 4.5"),
    ("The passage embraces the new fact throughout.", None, "no rating"),
    ("I'm sorry, but I can't rate false claims.", None, "refusal"),
    ("As an AI, I have no opinion on the 7 passages.", None, "refusal"),
    ("I\N{RIGHT SINGLE QUOTATION MARK}m sorry, but no.", None, "refusal"),
    ("She's sorry she cannot come.", None, "no rating"),
]
LABELLED = [
    ("Label: contradicts", "contradicts", "ok"),
    ("**Label:** Supports\nEvidence: x", "supports", "ok"),
    ("neutral.", "neutral", "ok"),
    ("Label: entailed", None, "no label in the reply"),
    ("The passage supports it", None, "no label in the reply"),
    ("Label: supports\nLabel: neutral", None, "2 labels in the reply: neutral, supports"),
]
COMPARED = [
    ('Quote: "a nun"\nAnswer: B', 1, "ok"),
    ("**Answer:** A", -1, "ok"),
    ("The answer is: text B.", 1, "ok"),
    ("Answer: Neither", 0, "ok"),
    ("B", 1, "ok"),
    ("Answer: A\nOn reflection:\nAnswer: B", None, "two answers"),
    ("Answer: A, B or equal", None, "no answer"),
    ("The answer is a matter of taste.", None, "no answer"),
    ("I'm sorry, I cannot compare people.", None, "refusal"),
]
PUBLISHED = [
    *(("Rating: -1", -1, "ok"), ("Rating: \u22121.", -1, "ok"), ("**Rating:** 1", 1, "ok"), ("-1", -1, "ok")),
    *(("Rating: +1 (more after)", 1, "ok"), ("Quote: none\nRating: 0", 0, "ok")),
    *(("Rating: -1, 0 or 1", None, "no answer"), ("Rating: -10", None, "no answer")),
    ("Rating: -1\nRating: 1", None, "two answers"),
]
PREMISE = "Ann lives in Rome. She sings."
PUBLISHED_FLAWS = flaws("published")


def claim(text: str = "Ann lives in Rome", premise: str = PREMISE, case_id: int = 1) -> TextQuestion:
    return claim_question(premise, text, {"editor": "ft", "case_id": case_id, "claim": text})


def question(item: int = 0, **how: Any) -> TextQuestion:
    return survey_questions([sample(**how)])[item]


def flaw(first: str = "pre", name: str = "religion", protocol: str = "blind") -> TextQuestion:
    words = replace(DEFAULT, flaws={name: DEFAULT.flaws[name]})
    asked = [own for both in flaw_questions([pair(1)], words, swap=1, protocol=protocol) for own in both]
    return next(own for own in asked if own.row["first"] == first)


@pytest.mark.parametrize(
    ("instrument", "asked", "column", "cases"),
    [
        (survey(), question(), "rating", REPLIES),
        (CLAIMS, claim(), "label", LABELLED),
        (flaws(), flaw(), "change", COMPARED),
        (PUBLISHED_FLAWS, flaw(), "change", PUBLISHED),
    ],
    ids=["survey", "claims", "flaws", "published"],
)
def test_replies(
    instrument: Instrument, asked: TextQuestion, column: str, cases: Sequence[tuple[str, object, str]]
) -> None:
    for reply, value, status in cases:
        columns, found = instrument.parse(asked, reply)
        assert (columns.get(column), found) == (value, status), reply


@given(st.text())
def test_any_reply_is_read_without_error(reply: str) -> None:
    columns, status = survey().parse(question(), reply)
    assert (status == "ok") == (columns.get("rating") in range(1, 8))
    for instrument, asked in ((CLAIMS, claim()), (flaws(), flaw()), (PUBLISHED_FLAWS, flaw())):
        columns, status = instrument.parse(asked, reply)
        assert (status == "ok") == bool(columns)


def test_a_quote_and_evidence_count_only_where_a_text_has_them() -> None:
    assert flaws().parse(flaw(), 'Quote: "a nun"\nAnswer: B')[0] == {"change": 1, "quote": "a nun"}
    assert flaws().parse(flaw(), "Quote: a saint\nAnswer: B")[0] == {"change": 1, "quote": ""}
    assert flaws().parse(flaw("post"), "Answer: A")[0]["change"] == 1, "un-blinded"
    reply = 'Label: supports\nEvidence: "Ann lives in Rome."\nEvidence: Ann is invented.'
    assert CLAIMS.parse(claim(), reply)[0] == {"label": "supports", "evidence": ["Ann lives in Rome."]}


def test_the_question_about_a_flaw_does_not_tell_which_text_is_edited() -> None:
    prompts = {first: flaw(first, "classism").text for first in ("pre", "post")}
    assert prompts["pre"].index("judge") < prompts["pre"].index("nun")
    assert prompts["post"].index("nun") < prompts["post"].index("judge.")
    for prompt in prompts.values():
        assert "mentioning the social origin of the subject" in prompt
        assert not {"edit", "pre", "post", "before", "after"} & set(prompt.lower().split())
    told = flaw(protocol="published").text
    assert told.index("Text before the edit") < told.index("judge") < told.index("Text after the edit")


class Scripted:
    """A generator that answers from a list and keeps what it was asked."""

    name = "scripted"

    def __init__(self, *replies: str) -> None:
        self.replies, self.asked, self.heat = list(replies), list[Ask](), list[float]()

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        self.asked += asks
        self.heat.append(sampling.temperature)
        replies = [self.replies.pop(0) if len(self.replies) > 1 else self.replies[0] for _ in asks]
        return [
            Completion(text, prompt_tokens=10, new_tokens=2) if text != "!" else Completion("", "", "time-out")
            for text in replies
        ]


def test_bad_replies_are_asked_again_counted_and_kept() -> None:
    generator = Scripted("Rating: 9", "Rating: 5", "prose", "Rating: 6", "still prose", "prose to the end")
    questions = [question(item) for item in (0, 8, 7)]
    generator.replies[1], generator.replies[2] = generator.replies[2], generator.replies[1]
    table, calls = rate(survey(), questions, Judge(generator))
    rows = table.to_pylist()
    assert [(row["rating"], row["status"], row["tries"]) for row in rows] == [
        (6, "ok", 2),
        (None, "no rating", 3),
        (5, "ok", 1),
    ]
    assert (rows[1]["reply"], rows[1]["prompt_tokens"], rows[1]["new_tokens"]) == ("prose to the end", 30, 6)
    assert generator.heat == [0.0, 0.7, 0.7]
    assert len({ask.seed for ask in generator.asked}) == 6
    kept = calls.to_pylist()
    assert calls.schema.equals(CALLS)
    assert [(row["attempt"], row["status"]) for row in kept[:2]] == [(1, "outside 1-7: 9"), (2, "ok")]
    assert all(row["prompt"].startswith("[user]\nAn AI system") and row["kind"] == "survey" for row in kept)


def test_a_failed_request_keeps_its_status_and_claims_say_how_often_they_were_asked() -> None:
    asked = [claim(f"claim {number}") for number in range(3)]
    judge = Judge(Scripted("neutral", "I cannot say.", "!", "Label: no", "!"), tries=2)
    rows = rate(CLAIMS, asked, judge)[0].to_pylist()
    assert [row["label"] for row in rows] == ["neutral", None, None]
    assert [row["status"] for row in rows] == ["ok", "no label in the reply (asked 2 times)", "time-out"]


class Four(Rater):
    """A rater that answers 4, and keeps what it was asked."""

    name, kinds = "four", ("survey",)

    def __init__(self, learned: frozenset[str] = frozenset()) -> None:
        self.asked: list[TextQuestion] = []
        self.learned = learned

    def answer(self, instrument: Instrument, questions: Sequence[TextQuestion]) -> list[Answer]:
        self.asked += questions
        return [Answer({"rating": 4.0}) for _ in questions]


def surveyed(samples: Sequence[SurveySample], rater: Rater) -> pa.Table:
    return rate(survey(), survey_questions(samples), rater)[0]


def test_all_items_are_asked_and_kept_in_order_with_reasons_for_those_that_cannot() -> None:
    records = [record(1), record(2, related=False)]
    rater = Four()
    table = surveyed(survey_samples(passages(records), records), rater)
    assert table.schema.equals(RATINGS)
    assert table["item"].to_pylist() == [item.name for item in ITEMS] * 2
    rows = table.to_pylist()
    assert {row["rating"] for row in rows[:9]} == {4.0}
    alone = {row["item"]: row["status"] for row in rows[9:]}
    main = ["new_fact_main_passage", "main_passage_old_facts", "main_passage_consistency"]
    assert [name for name, why in alone.items() if why == "ok"] == main
    assert alone["fluency"] == "related passage: the record has no related entity"
    assert (len(rater.asked), table["rating"].null_count) == (12, 6)


@pytest.mark.parametrize(("text", "why"), [("  ", "main passage: empty"), ("Learned by heart.", LEFT_OUT)])
def test_empty_and_learned_passages_have_a_status_and_no_rating(text: str, why: str) -> None:
    rows = surveyed([sample(main=text)], Four(frozenset({digest("learned  by HEART. ")}))).to_pylist()
    assert rows[0]["status"].startswith(why)
    assert rows[0]["rating"] is None
    assert rows[1]["status"] == ("ok" if why != LEFT_OUT else LEFT_OUT)


def test_passages_without_record_or_twice_are_refused() -> None:
    with pytest.raises(RecordError, match="case 2 has no coupled record"):
        survey_samples(passages([record(2)]), [record(1)])
    with pytest.raises(RecordError, match="two subject passages"):
        survey_samples(pa.concat_tables([passages([record()])] * 2), [record()])


def test_eight_examples_of_the_same_item_and_never_of_the_rated_edit() -> None:
    def others(numbers: Sequence[int], **changes: Any) -> list[tuple[TextQuestion, str]]:
        samples = [replace(sample(f"{MAIN} {n}.", f"R {n}.", n), **changes) for n in numbers]
        return [(asked, f" Rating: {1 + n % 7}") for n, asked in enumerate(survey_questions(samples))]

    near = others([1, 2])
    far = [example for n in range(10, 22) for example in others([n], subject=f"S{n}")]
    generator = Scripted("Rating: 4")
    surveyed([sample()], Judge(generator, 8, {"survey": [*near, *far]}))
    for ask in generator.asked:
        assert isinstance(ask.prompt, tuple)
        assert [turn.role for turn in ask.prompt] == ["user", "assistant"] * 8 + ["user"]
        asked = [turn.content for turn in ask.prompt if turn.role == "user"]
        assert len({text.rsplit("Statement: ", 1)[1] for text in asked}) == 1
        assert len(set(asked)) == 9
        assert not any(f" {n}.\n" in text for text in asked for n in (1, 2))
    with pytest.raises(RecordError, match=r"0 of 18 answered examples share neither .*8 are needed"):
        surveyed([sample()], Judge(generator, 8, {"survey": near}))
    labels = [(claim(premise=f"text {n}", case_id=n % 2), "Label: neutral") for n in range(6)]
    claims = Scripted("neutral")
    rate(CLAIMS, [claim()], Judge(claims, 3, {"claims": labels}))
    shown = "".join(turn.content for turn in claims.asked[0].prompt if not isinstance(turn, str))
    assert [f"text {n}" in shown for n in range(6)] == [True, False] * 3


def test_judges_are_named_after_everything_that_changes_their_answers() -> None:
    assert Judge(Scripted(), 8, temperature=1, seed=3).name == "scripted, 8-shot, temperature 1, 3 tries, seed 3"
    assert Judge(Scripted(), wording="f" * 64).name.endswith(", wording ffffffffffff")


class Reader:
    """A judge that reads: it finds a word in the texts as they are shown."""

    name = "reader"

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        return [Completion(self._answer(str(ask.prompt))) for ask in asks]

    def _answer(self, prompt: str) -> str:
        one, two = ("nun" in text for text in prompt.split("Text A:")[1].split("Text B:"))
        return f"Answer: {'A' if one and not two else 'B' if two and not one else 'equal'}"


def test_a_reading_judge_is_right_in_any_order() -> None:
    pairs = [pair(number) for number in range(60)]
    words = replace(DEFAULT, flaws={"religion": DEFAULT.flaws["religion"]})
    first, again = flaw_questions(pairs, words, seed=1, swap=0.5)
    table, _ = rate(flaws(), [*first, *again], Judge(Reader()))
    assert (len(first), len(again), set(table["change"].to_pylist())) == (60, 30, {1})
    shown = dict(zip(table["pair_id"].to_pylist()[:60], table["first"].to_pylist()[:60]))
    assert set(shown.values()) == {"pre", "post"}
    assert all(row["first"] != shown[row["pair_id"]] for row in table.to_pylist()[60:])
    part, _ = flaw_questions(pairs[17:20], words, seed=1)
    assert rate(flaws(), part, Judge(Reader()))[0].to_pylist() == table.slice(17, 3).to_pylist(), "as in the whole"
    turned = [pair(one.case_id, one.post, one.pre) for one in pairs]
    assert set(rate(flaws(), flaw_questions(turned, words)[0], Judge(Reader()))[0]["change"].to_pylist()) == {-1}
    told, none = flaw_questions(pairs, words, swap=1, protocol="published")
    assert ({asked.row["first"] for asked in told}, none) == ({"pre"}, [])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAIServer(chat_model(), chat_tokenizer()) as running:
        yield running


def test_a_judge_over_http_and_the_same_model_here_agree(server: OpenAIServer) -> None:
    questions = [question(0), question(8)]
    far, calls = rate(survey(), questions, Judge(OpenAIGenerator(server.url, "tiny", wait=0.001), tries=1))
    near, _ = rate(survey(), questions, Judge(HFGenerator(chat_model(), chat_tokenizer()), tries=1))
    assert far["reply"].to_pylist() == near["reply"].to_pylist()
    assert far["rating"].to_pylist() == near["rating"].to_pylist()
    assert far["prompt_tokens"].to_pylist()[0] > 100
    assert calls.num_rows == 2
    assert "tiny at http://127.0.0.1" in far["rater"].to_pylist()[0]


class Knows:
    """A judge that knows one other spelling."""

    name = "knows"

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        replies = [str(ask.prompt).split('"""')[1].strip() for ask in asks]
        return [Completion({"NYC": "Yes.", "?": "Perhaps"}.get(text, "no")) for text in replies]


def test_texts_of_an_audit_are_judged_once_each(tmp_path: Path) -> None:
    texts = ["NYC", "Rome", "NYC", " ", "?"]
    names: Any = {"prompt": "Ada lives in", "right": ["New York"], "wrong": ["Rome"], "status": "ok"}
    written = [names | {"text": text, "phase": phase} for text in texts for phase in ("pre", "post")]
    failed = names | {"text": "", "status": "too long"}
    write_table(tmp_path / "answers.parquet", pa.Table.from_pylist([*written, failed], ANSWERS))
    for _ in range(2):
        said = run_rate(RateJob(tmp_path, what=("answers",)), raters=[Judge(Knows())])
        assert "judged.parquet: 3 rows, 1 without an answer" in said
    rows = read_table(tmp_path / "judged.parquet", JUDGED).to_pylist()
    assert [(row["text"], row["gives_it"]) for row in rows] == [("NYC", True), ("Rome", False), ("?", None)]
    assert (rows[2]["status"], {row["rater"][:5] for row in rows}) == ("neither yes nor no", {"knows"})
    calls = read_table(tmp_path / "calls.parquet", CALLS).to_pylist()
    assert [call["kind"] for call in calls] == ["answers"] * 5, "what cannot be read is asked three times"
    assert not {"edit", "before", "after"} & set(calls[0]["prompt"].lower().split())
