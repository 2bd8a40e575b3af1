"""A language model as judge: what it is asked, how a reply is read, the row that it becomes. Every call is kept."""

from __future__ import annotations

import abc
import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.instruments import DEFAULT, Instruments
from seesaw_cf.generation.types import Ask, Completion, Generator, Message, Sampling
from seesaw_cf.texts.tables import CALLS, CallRow

Q = TypeVar("Q")
Prompt = str | tuple[Message, ...]
LEFT_OUT = "left out: the instrument learned from this passage"
_RETRY_TEMPERATURE = 0.7  # lowest one of a question that is asked again: at 0 a local model repeats itself
_REFUSAL = re.compile(r"\b(?:i(?:['’]m| am) sorry|i (?:can(?:no|['’])t|am (?:un|not )able)|as an ai)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """A rater's answer to one question.

    Attributes:
        value: What the instrument makes of it; None unless `status` is "ok".
        status: "ok", or the reason for no value.
        reply: The words of a rater that writes.
        calls: Every request behind it, in order.
    """

    value: Any = None
    status: str = "ok"
    reply: str = ""
    calls: tuple[CallRow, ...] = ()


@dataclass(frozen=True)
class Instrument(abc.ABC, Generic[Q]):
    """A kind of question about texts.

    Attributes:
        words: What raters read.
        name: Of the kind.
        schema: Of the rows.
        max_new_tokens: Longest reply of a judge.
    """

    words: Instruments = DEFAULT
    name: ClassVar[str]
    schema: ClassVar[pa.Schema]
    max_new_tokens: ClassVar[int] = 160

    @abc.abstractmethod
    def prompt(self, question: Q, examples: Sequence[tuple[Q, Any]]) -> Prompt:
        """Return what a judge is asked, after answered examples."""

    @abc.abstractmethod
    def parse(self, question: Q, reply: str) -> tuple[Any, str]:
        """Return the value in a reply and "ok", or the reason for none."""

    @abc.abstractmethod
    def row(self, question: Q, rater: str, answer: Answer) -> TableRow:
        """Return the row of an answer."""

    @abc.abstractmethod
    def key(self, question: Q) -> tuple[object, ...]:
        """Return what tells a question from all others."""

    @abc.abstractmethod
    def seed(self, seed: int, question: Q, attempt: int) -> int:
        """Return the seed of a reply; attempt -1: of the examples that are drawn."""

    @abc.abstractmethod
    def texts(self, question: Q) -> Sequence[str]:
        """Return the passages that a question shows."""

    def skip_reason(self, question: Q) -> str:
        """Return why a question cannot be asked; "" when it can."""
        return ""

    def is_example_for(self, example: Q, question: Q) -> bool:
        """Return whether an answered question may be shown before another: they share neither edit nor passage."""
        return False


class Rater(Protocol):
    """What answers questions: a judge, a classifier, a trained encoder."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Name the instruments that it can answer."""

    @property
    def source(self) -> str:
        """Folder or Hub id of a model that was trained for it; "" for others."""

    @property
    def name(self) -> str:
        """Name the rater and everything that changes its answers."""

    @property
    def learned(self) -> frozenset[str]:
        """Digests of the passages that it has learned from: they are never evaluated with it."""

    def answer(self, instrument: Instrument[Any], questions: Sequence[Any]) -> list[Answer]:
        """Return one answer per question, in order."""


def digest(text: str) -> str:
    """Return sixteen hexadecimal digits that identify a passage; white space and case do not matter."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def rate(instrument: Instrument[Q], questions: Sequence[Q], rater: Rater) -> tuple[pa.Table, pa.Table]:
    """Ask a rater.

    Returns:
        One row per question, in order, of the instrument's schema; and `tables.CALLS`. What cannot be asked, or has no
        usable answer, keeps its row with a status; so does a passage that the rater has learned from.
    """
    learned = rater.learned
    statuses = [
        instrument.skip_reason(question)
        or (LEFT_OUT if learned and not learned.isdisjoint(map(digest, instrument.texts(question))) else "ok")
        for question in questions
    ]
    asked = [question for question, status in zip(questions, statuses) if status == "ok"]
    answers = iter(rater.answer(instrument, asked))
    rows, calls = [], []
    for question, status in zip(questions, statuses, strict=True):
        answer = next(answers) if status == "ok" else Answer(status=status)
        rows.append(instrument.row(question, rater.name, answer))
        about = {"kind": instrument.name, "question": "|".join(map(str, instrument.key(question))), "rater": rater.name}
        calls += [about | {"attempt": attempt} | call for attempt, call in enumerate(answer.calls, 1)]
    return pa.Table.from_pylist(rows, schema=instrument.schema), pa.Table.from_pylist(calls, schema=CALLS)


@dataclass(frozen=True)
class Judge:
    """Rater that asks a language model one question at a time, with or without answered examples.

    Source: LEME, Appendices B.3, B.4 and E; SEESAW-CF, Appendices F and I (GPT-3.5 as judge).
    Deviates: temperature 0 by default (published: 1, where a judge disagrees with itself). A reply is read whole: the
        released code takes the first number, or any word. Examples never share an edit or a passage with the question.

    Attributes:
        generator: A local model or an API; put a `CachedGenerator` around it to pay once.
        shots: Answered examples shown before the question: 0, or 8 as published.
        examples: Kind of instrument -> (question, value) that people answered; drawn with a seed of the question.
        learned: Digests of their passages.
        temperature: Of the replies; at least 0.7 where a question is asked again.
        tries: Times a question whose reply cannot be read is asked at the most.
        seed: Of the replies and of the examples drawn.
        wording: SHA-256 of the file with words that are not the package's own.
    """

    generator: Generator
    shots: int = 0
    examples: Mapping[str, Sequence[tuple[Any, Any]]] = field(default_factory=dict)
    learned: frozenset[str] = frozenset()
    temperature: float = 0.0
    tries: int = 3
    seed: int = 0
    wording: str = ""
    kinds: ClassVar[tuple[str, ...]] = ("survey", "claims", "flaws")
    source: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """The model, and how it is asked."""
        how = f"{self.shots}-shot, temperature {self.temperature:g}, {self.tries} tries, seed {self.seed}"
        return f"{self.generator.name}, {how}{f', wording {self.wording[:12]}' if self.wording else ''}"

    def answer(self, instrument: Instrument[Q], questions: Sequence[Q]) -> list[Answer]:
        """Ask every question, and repeat those whose reply cannot be read.

        Raises:
            RecordError: Fewer examples than `shots` are left once those of the same edit or passage are taken out.
            ServiceError: The server refuses the key or does not know the model.
        """
        prompts = [instrument.prompt(question, self._examples(instrument, question)) for question in questions]
        sampling = Sampling(instrument.max_new_tokens, self.temperature, top_k=0, top_p=1.0)
        answers = [Answer() for _ in questions]
        left = list(range(len(questions)))
        for attempt in range(self.tries):
            if attempt:
                sampling = replace(sampling, temperature=max(self.temperature, _RETRY_TEMPERATURE))
            asks = [Ask(prompts[n], instrument.seed(self.seed, questions[n], attempt)) for n in left]
            replies = self.generator.generate(asks, sampling) if asks else []
            for n, ask, reply in zip(left, asks, replies, strict=True):
                value, status = _read(instrument, questions[n], reply)
                call = call_row(ask, reply, status, sampling.temperature)
                answers[n] = Answer(value, status, reply.text, (*answers[n].calls, call))
            left = [n for n in left if answers[n].status != "ok"]
        return answers

    def _examples(self, instrument: Instrument[Q], question: Q) -> list[tuple[Q, Any]]:
        if not self.shots:
            return []
        pool = self.examples.get(instrument.name, ())
        left = [example for example in pool if instrument.is_example_for(example[0], question)]
        if len(left) < self.shots:
            raise RecordError(
                f"judge {self.name}: {len(left)} of {len(pool)} answered examples share neither edit nor passage with "
                f"{'|'.join(map(str, instrument.key(question)))[:80]}, {self.shots} are needed. Give more, or fewer "
                "shots."
            )
        return random.Random(instrument.seed(self.seed, question, -1)).sample(left, self.shots)


def _read(instrument: Instrument[Q], question: Q, reply: Completion) -> tuple[Any, str]:
    if reply.status != "ok":
        return None, reply.status
    return instrument.parse(question, reply.text) if reply.text.strip() else (None, "empty reply")


def is_refusal(reply: str) -> bool:
    """Return whether a reply declines to answer, in the usual words of chat models."""
    return _REFUSAL.search(reply) is not None


def few_shot(task: str, examples: Sequence[tuple[str, str]], question: str) -> tuple[Message, ...]:
    """Return a conversation: the task before the first question, answered examples, the question."""
    turns = [turn for example in examples for turn in example] + [question]
    turns[0] = f"{task}\n\n{turns[0]}"
    return tuple(Message("assistant" if number % 2 else "user", text) for number, text in enumerate(turns))


def call_row(ask: Ask, reply: Completion, status: str, temperature: float) -> CallRow:
    """Return a request and its reply; the turns of a conversation as one text, each after its role."""
    turns = [ask.prompt] if isinstance(ask.prompt, str) else [f"[{turn.role}]\n{turn.content}" for turn in ask.prompt]
    return {
        "prompt": "\n\n".join(turns),
        "temperature": temperature,
        "seed": ask.seed,
        "reply": reply.text,
        "status": status,
        "prompt_tokens": reply.prompt_tokens,
        "new_tokens": reply.new_tokens,
    }
