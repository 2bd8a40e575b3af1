"""A language model as rater: any generator, with or without rated examples, every prompt and reply kept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from seesaw_cf.base.seeds import seed_of
from seesaw_cf.effects.survey_items import SCALE, Item, Shown
from seesaw_cf.generation.types import Completion, Generator, Message, Sampling
from seesaw_cf.texts.asking import ask_until_read, draw, few_shot
from seesaw_cf.texts.rate.survey import Rating, SurveyQuestion, SurveySample
from seesaw_cf.texts.train.ratings import FACTS, PASSAGES
from seesaw_cf.texts.wording import is_refusal

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_RATING = re.compile(
    rf"(?i:rating)[^\w\n-]{{0,6}}(?:(?i:is|of)\b[^\w\n-]*)?{_NUMBER}(?:\s*(?:-|–|to|or|and|,)\s*{_NUMBER})?"
)
_BARE = re.compile(rf"[\W_]*?{_NUMBER}(?:\s*/\s*7)?[\W_]*")
_RETRY_TEMPERATURE = 0.7

# The task in our words; LEME's own are in its Appendix D.
INTRO = (
    "An AI system was taught a new fact and then wrote about the subject of that fact (the main passage) and about "
    "an entity related to it (the related passage). Old facts are what was recorded about them before; the new "
    "fact may change some. Do not judge whether the new fact is true in the world: rate what is written."
)

JUDGE_SAMPLING = Sampling(max_new_tokens=64, temperature=0.0, top_k=0, top_p=1.0)


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A question that a person has answered.

    Attributes:
        question: The item and the sample.
        rating: 1 to 7.
    """

    question: SurveyQuestion
    rating: int


@dataclass(frozen=True)
class LLMJudge:
    """Rater that asks a model one item at a time.

    Source: LEME, Appendix B.3.
    Deviates: temperature 0 by default (published: 1, where a judge disagrees with itself); a reply is read
        whole and must hold exactly one whole number from 1 to 7 (the released code takes the first number after
        "Rating:"); examples never share an edit or a passage with the sample that is rated.

    Attributes:
        generator: A local chat model or an API; put a `CachedGenerator` around it to pay once.
        shots: Rated examples shown before the question: 0, or 8 as published.
        pool: Where they are drawn from, with a seed of the question.
        sampling: How the reply is written. A reply that cannot be read is asked again at temperature 0.7 or more.
        tries: Times one question is asked at the most.
        seed: Of the replies and of the examples drawn.
        intro: The task, before criterion, examples and scale.
    """

    generator: Generator
    shots: int = 0
    pool: tuple[Exemplar, ...] = ()
    sampling: Sampling = JUDGE_SAMPLING
    tries: int = 3
    seed: int = 0
    intro: str = INTRO

    @property
    def name(self) -> str:
        """The model, the number of examples, temperature, tries, seed, and a hash of words that are not ours."""
        how = f"{self.shots}-shot, temperature {self.sampling.temperature:g}, {self.tries} tries, seed {self.seed}"
        words = "" if self.intro == INTRO else f", wording {hashlib.sha256(self.intro.encode()).hexdigest()[:12]}"
        return f"{self.generator.name}, {how}{words}"

    @property
    def learned(self) -> frozenset[str]:
        """Digests of the passages that examples are drawn from."""
        pool = self.pool if self.shots else ()
        return frozenset[str]().union(*(exemplar.question.sample.digests for exemplar in pool))

    def rate(self, questions: Sequence[SurveyQuestion]) -> list[Rating]:
        """Return one rating per question, in order.

        Raises:
            RecordError: Fewer examples than `shots` are left once those of the rated edit are taken out.
            ServiceError: The server refuses the key or does not know the model.
        """
        answers = ask_until_read(
            [self._messages(question) for question in questions],
            lambda _, reply: parse_rating(reply),
            lambda n, attempt: self._seed(questions[n], attempt),
            self.generator,
            self.sampling,
            tries=self.tries,
            retry_temperature=_RETRY_TEMPERATURE,
        )
        return [Rating(answer.value, answer.reply, answer.status, calls=answer.calls) for answer in answers]

    def _messages(self, question: SurveyQuestion) -> tuple[Message, ...]:
        examples = [
            (question_text(exemplar.question), f" Rating: {exemplar.rating}") for exemplar in self._examples(question)
        ]
        return few_shot(instructions(question.item, self.intro), examples, question_text(question))

    def _examples(self, question: SurveyQuestion) -> list[Exemplar]:
        """Draw examples of the same item that share neither edit nor passage with the sample."""
        texts = {text for text in question.sample.passages.values() if text}
        left = [
            exemplar
            for exemplar in self.pool
            if exemplar.question.item == question.item
            and not _same_edit(exemplar.question.sample, question.sample)
            and texts.isdisjoint(exemplar.question.sample.passages.values())
        ]
        shortage = (
            f"judge {self.name}: {len(left)} rated examples of item {question.item.name!r} share neither edit nor "
            f"passage with case {question.sample.case_id}"
        )
        return draw(left, self.shots, self._seed(question, -1), shortage)

    def _seed(self, question: SurveyQuestion, attempt: int) -> int:
        sample = question.sample
        place = (sample.editor, sample.case_id, sample.phase, sample.sample)
        return seed_of(self.seed, *place, question.item.name, attempt)


def _same_edit(sample: SurveySample, other: SurveySample) -> bool:
    return sample.case_id == other.case_id or (sample.subject, sample.new_fact) == (other.subject, other.new_fact)


def instructions(item: Item, intro: str = INTRO) -> str:
    """Return the instructions for one item: the task, the words used, the two published examples, the scale."""
    examples = "\n\n".join(
        f"{kind} example:\n{_fields(item, example)}\nRating: {example.rating} ({SCALE[example.rating]})\n"
        f"Reason: {example.reason}"
        for kind, example in (("Positive", item.good), ("Negative", item.bad))
    )
    scale = "\n".join(f"{number} = {words}" for number, words in SCALE.items())
    return (
        f"{intro.strip()}\n\n"
        f"You rate one criterion: {item.criterion}\n\n{examples}\n\n"
        f"Scale, for how far you agree with a statement:\n{scale}\n\n"
        "Answer with one line, such as 'Rating: 4', and nothing else."
    )


def question_text(question: SurveyQuestion) -> str:
    """Return the statement and what is shown of a sample."""
    return f"{_fields(question.item, question.shown)}\n\nStatement: {question.item.statement}\nRating:"


def _fields(item: Item, sample: Shown) -> str:
    lines = []
    for name in item.fields:
        value = getattr(sample, name)
        text = f" {value}" if isinstance(value, str) else "".join(f"\n- {fact}" for fact in value)
        lines.append(f"{(FACTS | PASSAGES)[name]}:{text}")
    return "\n".join(lines)


def parse_rating(completion: Completion) -> tuple[float | None, str]:
    """Read a rating.

    Args:
        completion: What the judge wrote.

    Returns:
        The rating and "ok"; or None and the reason: the completion's own status, "empty reply", "two ratings",
        "outside 1-7: 9", "not a whole number: 4.5", "refusal" or "no rating".
    """
    if completion.status != "ok":
        return None, completion.status
    reply = completion.text.strip()
    if not reply:
        return None, "empty reply"
    bare = _BARE.fullmatch(reply)
    numbers = [bare[1]] if bare else [number for groups in _RATING.findall(reply) for number in groups if number]
    values = sorted({float(number) for number in numbers})
    if not values:
        return None, "refusal" if is_refusal(reply) else "no rating"
    if len(values) > 1:
        return None, "two ratings"
    if values[0] not in SCALE:
        whole = values[0].is_integer()
        return None, f"outside 1-7: {values[0]:g}" if whole else f"not a whole number: {values[0]:g}"
    return values[0], "ok"
