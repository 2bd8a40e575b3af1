"""Questions about texts, who answers them, and a language model as judge. Every call is kept."""

from __future__ import annotations

import hashlib
import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import seed_of
from seesaw_cf.base.types import TableRow
from seesaw_cf.generation.types import Ask, Completion, Generator, Message, Sampling
from seesaw_cf.texts.tables import CALLS

WORD = re.compile(r"\w+")
LEFT_OUT = "left out: the instrument learned from this passage"
_TOKENS = ("prompt_tokens", "new_tokens")
_RETRY_TEMPERATURE = 0.7  # lowest one of a question that is asked again: at 0 a local model repeats itself
_REFUSAL = re.compile(r"\b(?:i(?:['’]m| am) sorry|i (?:can(?:no|['’])t|am (?:un|not )able)|as an ai)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextQuestion:
    """A question about one or two texts.

    Attributes:
        key: What tells it from all others of its kind.
        row: Columns that name it in the table of answers: which text of which edit, and what is asked.
        pair: The two texts that an encoder reads.
        task: What a judge reads first, before answered examples; "" where `text` says all.
        text: What a judge is asked.
        texts: The passages that it shows.
        edits: What tells the edit it is about.
        skip: Why it cannot be asked; "" when it can.
    """

    key: tuple[object, ...]
    row: TableRow
    pair: tuple[str, str]
    task: str
    text: str
    texts: tuple[str, ...]
    edits: frozenset[object] = frozenset()
    skip: str = ""

    def may_show(self, example: TextQuestion) -> bool:
        """Return whether an answered question may be shown before this one: the same task, another edit and texts."""
        same = not self.edits.isdisjoint(example.edits) or not set(self.texts).isdisjoint(example.texts)
        return example.task == self.task and not same


@dataclass(frozen=True, slots=True)
class Answer:
    """A rater's answer to one question.

    Attributes:
        columns: What it puts into the row of the question; {} unless `status` is "ok".
        status: "ok", or the reason for no answer.
        reply: The words of a rater that writes.
        calls: Every request behind it, in order.
    """

    columns: TableRow = field(default_factory=dict)
    status: str = "ok"
    reply: str = ""
    calls: tuple[dict[str, Any], ...] = ()


Parsed = tuple[TableRow, str]
"""The columns in a reply and "ok", or {} and the reason for none."""


def usual_seed(seed: int, question: TextQuestion, attempt: int) -> int:
    """Return 48 bits of a hash of what tells the question from others."""
    return seed_of(seed, *question.key, attempt)


@dataclass(frozen=True)
class Instrument:
    """A kind of question.

    Attributes:
        name: Of the kind.
        schema: Of the table of answers.
        parse: Reads a judge's reply to a question.
        blank: Columns of a row without an answer.
        max_new_tokens: Longest reply of a judge.
        seed: (seed, question, attempt) -> seed of a reply; attempt -1: of the examples that are drawn.
        says_tries: Statuses of replies that cannot be read say how often the question was asked.
    """

    name: str
    schema: pa.Schema
    parse: Callable[[TextQuestion, str], Parsed]
    blank: Mapping[str, object] = field(default_factory=dict)
    max_new_tokens: int = 160
    seed: Callable[[int, TextQuestion, int], int] = usual_seed
    says_tries: bool = False

    def row(self, question: TextQuestion, rater: str, answer: Answer) -> TableRow:
        """Return the row of an answer; columns that the schema does not have are left out of the table."""
        unread = answer.status != "ok" and (answer.reply or answer.status == "empty reply")
        tokens = {name: [call[name] for call in answer.calls if call[name] is not None] for name in _TOKENS}
        return question.row | dict(self.blank) | answer.columns | {
            "rater": rater,
            "annotator": rater,
            "reply": answer.reply,
            "status": answer.status + (f" (asked {len(answer.calls)} times)" if self.says_tries and unread else ""),
            "tries": len(answer.calls),
            **{name: sum(counts) if counts else None for name, counts in tokens.items()},
        }  # fmt: skip


class Rater(ABC):
    """What answers questions: a judge, a classifier, a trained encoder.

    Attributes:
        name: Names the rater and everything that changes its answers.
        kinds: Instruments that it can answer.
        source: Folder or Hub id of a model that was trained for it; "" for others.
        learned: Digests of the passages that it has learned from: they are never evaluated with it.
    """

    name: str
    kinds: tuple[str, ...]
    source: str = ""
    learned: frozenset[str] = frozenset()

    @abstractmethod
    def answer(self, instrument: Instrument, questions: Sequence[TextQuestion]) -> list[Answer]:
        """Return one answer per question, in order."""


def digest(text: str) -> str:
    """Return sixteen hexadecimal digits that identify a passage; white space and case do not matter."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def rate(instrument: Instrument, questions: Sequence[TextQuestion], rater: Rater) -> tuple[pa.Table, pa.Table]:
    """Ask a rater.

    Returns:
        One row per question, in order, of the instrument's schema; and `tables.CALLS`. What cannot be asked, or has no
        usable answer, keeps its row with a status; so does a passage that the rater has learned from.
    """
    learned = rater.learned
    statuses = [
        question.skip or (LEFT_OUT if learned and not learned.isdisjoint(map(digest, question.texts)) else "ok")
        for question in questions
    ]
    asked = [question for question, status in zip(questions, statuses) if status == "ok"]
    answers = iter(rater.answer(instrument, asked))
    rows, calls = [], []
    for question, status in zip(questions, statuses, strict=True):
        answer = next(answers) if status == "ok" else Answer(status=status)
        rows.append(instrument.row(question, rater.name, answer))
        about = {"kind": instrument.name, "question": "|".join(map(str, question.key)), "rater": rater.name}
        calls += [about | {"attempt": attempt} | call for attempt, call in enumerate(answer.calls, 1)]
    return pa.Table.from_pylist(rows, schema=instrument.schema), pa.Table.from_pylist(calls, schema=CALLS)


@dataclass
class Judge(Rater):
    """Rater that asks a language model one question at a time, with or without answered examples.

    Source: LEME, Appendices B.3, B.4 and E; SEESAW-CF, Appendices F and I (GPT-3.5 as judge).
    Deviates: temperature 0 by default (published: 1, where a judge disagrees with itself). A reply is read whole: the
        released code takes the first number, or any word. Examples never share an edit or a passage with the question.

    Attributes:
        generator: A local model or an API; put a `CachedGenerator` around it to pay once.
        shots: Answered examples shown before the question: 0, or 8 as published.
        examples: Kind of instrument -> questions with people's answers, as a judge should write them.
        learned: Digests of their passages.
        temperature: Of the replies; at least 0.7 where a question is asked again.
        tries: Times a question whose reply cannot be read is asked at the most.
        seed: Of the replies and of the examples drawn.
        wording: SHA-256 of the file with words that are not the package's own.
    """

    generator: Generator
    shots: int = 0
    examples: Mapping[str, Sequence[tuple[TextQuestion, str]]] = field(default_factory=dict)
    learned: frozenset[str] = frozenset()
    temperature: float = 0.0
    tries: int = 3
    seed: int = 0
    wording: str = ""
    kinds = ("survey", "claims", "flaws", "answers")

    def __post_init__(self) -> None:
        how = f"{self.shots}-shot, temperature {self.temperature:g}, {self.tries} tries, seed {self.seed}"
        self.name = f"{self.generator.name}, {how}{f', wording {self.wording[:12]}' if self.wording else ''}"

    def answer(self, instrument: Instrument, questions: Sequence[TextQuestion]) -> list[Answer]:
        """Ask every question, and repeat those whose reply cannot be read.

        Raises:
            RecordError: Fewer examples than `shots` are left once those of the same edit or passage are taken out.
            ServiceError: The server refuses the key or does not know the model.
        """
        prompts = [self.prompt(instrument, question) for question in questions]
        answers = [Answer() for _ in questions]
        left = list(range(len(questions)))
        for attempt in range(self.tries):
            heat = max(self.temperature, _RETRY_TEMPERATURE) if attempt else self.temperature
            sampling = Sampling(instrument.max_new_tokens, heat, top_k=0, top_p=1.0)
            asks = [Ask(prompts[n], instrument.seed(self.seed, questions[n], attempt)) for n in left]
            replies = self.generator.generate(asks, sampling) if asks else []
            for n, ask, reply in zip(left, asks, replies, strict=True):
                columns, status = _read(instrument, questions[n], reply)
                call = _call_row(ask, reply, status, heat)
                answers[n] = Answer(columns, status, reply.text, (*answers[n].calls, call))
            left = [n for n in left if answers[n].status != "ok"]
        return answers

    def prompt(self, instrument: Instrument, question: TextQuestion) -> str | tuple[Message, ...]:
        """Return a conversation: the task before the first question, answered examples, the question."""
        pool = self.examples.get(instrument.name, ())
        left = [example for example in pool if question.may_show(example[0])]
        if len(left) < self.shots:
            raise RecordError(
                f"judge {self.name}: {len(left)} of {len(pool)} answered examples share neither edit nor passage with "
                f"{'|'.join(map(str, question.key))[:80]}, {self.shots} are needed. Give more, or fewer shots."
            )
        examples = random.Random(instrument.seed(self.seed, question, -1)).sample(left, self.shots)
        if not question.task:
            return question.text
        turns = [turn for example, reply in examples for turn in (example.text, reply)] + [question.text]
        turns[0] = f"{question.task}\n\n{turns[0]}"
        return tuple(Message("assistant" if number % 2 else "user", text) for number, text in enumerate(turns))


def _read(instrument: Instrument, question: TextQuestion, reply: Completion) -> Parsed:
    if reply.status != "ok":
        return {}, reply.status
    return instrument.parse(question, reply.text) if reply.text.strip() else ({}, "empty reply")


def is_refusal(reply: str) -> bool:
    """Return whether a reply declines to answer, in the usual words of chat models."""
    return _REFUSAL.search(reply) is not None


def _call_row(ask: Ask, reply: Completion, status: str, temperature: float) -> dict[str, Any]:
    """Return a request and its reply; the turns of a conversation as one text, each after its role."""
    turns = [ask.prompt] if isinstance(ask.prompt, str) else [f"[{turn.role}]\n{turn.content}" for turn in ask.prompt]
    tokens = {name: getattr(reply, name) for name in _TOKENS}
    asked = {"prompt": "\n\n".join(turns), "temperature": temperature, "seed": ask.seed}
    return asked | {"reply": reply.text, "status": status} | tokens
