"""Ask a model questions until each reply can be read: the one loop of every judge and annotator."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from seesaw_cf.base.errors import RecordError
from seesaw_cf.generation.types import Ask, Completion, Generator, Message, Sampling
from seesaw_cf.texts.tables import CallRow, call_row

T = TypeVar("T")
Prompt = str | tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What the last reply to a question was read as.

    Attributes:
        value: What the reader made of it.
        status: "ok", or why the reply could not be read.
        reply: Its text.
        calls: Every request for this question, in order.
    """

    value: T
    status: str
    reply: str
    calls: tuple[CallRow, ...]


def ask_until_read(
    prompts: Sequence[Prompt],
    read: Callable[[int, Completion], tuple[T, str]],
    seed: Callable[[int, int], int],
    generator: Generator,
    sampling: Sampling,
    *,
    tries: int,
    retry_temperature: float = 0.0,
) -> list[Answer[T]]:
    """Ask every question, and repeat questions with unreadable replies.

    Args:
        prompts: The questions.
        read: (number of the question, reply) -> its value and a status; "ok" ends the asking.
        seed: (number of the question, try from 0 on) -> seed of the reply.
        generator, sampling: Who answers, and how.
        tries: Times one question is asked at the most; at least once.
        retry_temperature: Lowest temperature of a question that is asked again; at 0 a local model repeats itself.

    Returns:
        One answer per question, in order.

    Raises:
        ServiceError: The server refuses the key or does not know the model.
    """
    answers: dict[int, Answer[T]] = {}
    unread = list(range(len(prompts)))
    for attempt in range(max(1, tries)):
        warmer = max(sampling.temperature, retry_temperature) if attempt else sampling.temperature
        asks = [Ask(prompts[n], seed(n, attempt)) for n in unread]
        replies = generator.generate(asks, replace(sampling, temperature=warmer)) if asks else []
        for n, ask, reply in zip(unread, asks, replies, strict=True):
            value, status = read(n, reply)
            earlier = answers[n].calls if n in answers else ()
            answers[n] = Answer(value, status, reply.text, (*earlier, call_row(ask, reply, status, warmer)))
        unread = [n for n in unread if answers[n].status != "ok"]
    return [answers[n] for n in range(len(prompts))]


def few_shot(task: str, examples: Sequence[tuple[str, str]], question: str) -> tuple[Message, ...]:
    """Return a conversation: the task before the first question, answered examples, the question.

    Args:
        task: Instructions.
        examples: Questions with their answers.
        question: What is asked.
    """
    turns = [turn for example in examples for turn in example] + [question]
    turns[0] = f"{task}\n\n{turns[0]}"
    return tuple(Message("assistant" if number % 2 else "user", text) for number, text in enumerate(turns))


def draw(examples: Sequence[T], shots: int, seed: int, shortage: str) -> list[T]:
    """Draw the examples that are shown.

    Args:
        examples: Those that may be shown.
        shots: How many are.
        seed: Of the draw.
        shortage: Message of the error.

    Raises:
        RecordError: There are fewer.
    """
    if len(examples) < shots:
        raise RecordError(f"{shortage}, {shots} are needed. Give more, or fewer shots.")
    return random.Random(seed).sample(list(examples), shots)
