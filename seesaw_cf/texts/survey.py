"""LEME's survey: passages become samples, samples and items become questions with a rating from 1 to 7."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field

import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import seed_of
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.instruments import DEFAULT, Instruments, Item, Shown
from seesaw_cf.texts.claims import claims_of, foreign
from seesaw_cf.texts.judge import Answer, Instrument, Prompt, few_shot, is_refusal
from seesaw_cf.texts.records import LongformRecord, entity_name
from seesaw_cf.texts.tables import RATINGS, PassageRow, RatingRow, SampleRow

# What a rater sees of a sample, and how it is called.
TITLES = {
    "new_fact": "New fact",
    "old_facts": "Old facts",
    "subject": "Subject",
    "related_entity": "Related entity",
    "main": "Main passage",
    "related": "Related passage",
}
_PASSAGE = {"main": "subject", "related": "related"}
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_RATING = re.compile(
    rf"(?i:rating)[^\w\n-]{{0,6}}(?:(?i:is|of)\b[^\w\n-]*)?{_NUMBER}(?:\s*(?:-|–|to|or|and|,)\s*{_NUMBER})?"
)
_BARE = re.compile(rf"[\W_]*?{_NUMBER}(?:\s*/\s*7)?[\W_]*")


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Which text of which edit, as in `tables.PASSAGES`."""

    editor: str
    case_id: int
    relation: str
    phase: str
    sample: int


@dataclass(frozen=True, slots=True)
class SurveySample(TextPlace):
    """Two passages of one text of one edit, and what is known about their entities.

    Attributes:
        editor, case_id, relation, phase, sample: As in `tables.PASSAGES`.
        subject, related_entity: Names; "" when the record has none.
        new_fact: The edit statement.
        target_new, target_true: Its answer and the one it replaces.
        old_facts: "subject" and "related" -> ground truths as statements.
        passages: "main" and "related" -> text.
        missing: "main" and "related" -> why the text is missing, for those without one.
    """

    subject: str
    related_entity: str
    new_fact: str
    target_new: str
    target_true: str
    old_facts: Mapping[str, tuple[str, ...]] = field(hash=False)
    passages: Mapping[str, str] = field(hash=False)
    missing: Mapping[str, str] = field(default_factory=dict, hash=False)


def survey_samples(passages: pa.Table, records: Sequence[LongformRecord]) -> list[SurveySample]:
    """Put subject and related passages of the same text together with the facts of their record.

    Args:
        passages: `tables.PASSAGES`; other kinds of passages are left out.
        records: Rows of a `coupled_*` config.

    Returns:
        One sample for each (editor, case, phase, sample), in the table's order.

    Raises:
        RecordError: A passage has no record, or is there twice.
    """
    by_case = {record["case_id"]: record for record in records}
    texts: dict[TextPlace, dict[str, PassageRow]] = {}
    rows: list[PassageRow] = passages.to_pylist()
    for row in rows:
        if row["passage"] not in _PASSAGE.values():
            continue
        if row["case_id"] not in by_case:
            raise RecordError(f"passages: case {row['case_id']} has no coupled record. Give the records they are of.")
        place = TextPlace(row["editor"], row["case_id"], row["relation"], row["phase"], row["sample"])
        if row["passage"] in texts.setdefault(place, {}):
            raise RecordError(f"passages: two {row['passage']} passages of {astuple(place)}. Keep one run's passages.")
        texts[place][row["passage"]] = row
    return [_sample(place, own, by_case[place.case_id]) for place, own in texts.items()]


def _sample(place: TextPlace, rows: Mapping[str, PassageRow], record: LongformRecord) -> SurveySample:
    claims, request = claims_of(record, "sentence"), record["requested_rewrite"]
    texts = {name: (rows[side]["text"] or "").strip() if side in rows else "" for name, side in _PASSAGE.items()}
    reasons = {name: _unusable(rows.get(side), texts[name]) for name, side in _PASSAGE.items()}
    return SurveySample(
        **asdict(place),
        subject=request["subject"],
        related_entity=entity_name(record.get("related_entity")),
        new_fact=claims["subject"][0].text,
        target_new=(request["target_new"] or {}).get("str") or "",
        target_true=(request["target_true"] or {}).get("str") or "",
        old_facts={
            name: tuple(c.text for c in claims[name] if c.kind == "ground_truth" and c.status == "ok")
            for name in ("subject", "related")
        },
        passages=texts,
        missing={name: f"{name} passage: {why}" for name, why in reasons.items() if why},
    )


def _unusable(row: PassageRow | None, text: str) -> str:
    if row is None or row["status"] != "ok" or not text:
        return "not written" if row is None else "empty" if row["status"] == "ok" else row["status"]
    why = foreign(text)
    return f"does not read like English: {why}" if why else ""


@dataclass(frozen=True, slots=True)
class SurveyQuestion:
    """One item about one sample."""

    item: Item
    sample: SurveySample

    @property
    def shown(self) -> Shown:
        """What the rater sees: the item's fields and nothing else."""
        sample = self.sample
        everything = {
            "new_fact": sample.new_fact,
            "old_facts": sample.old_facts.get(self.item.old_facts_of, ()),
            "subject": sample.subject,
            "related_entity": sample.related_entity,
            **sample.passages,
        }
        return Shown(**{name: everything[name] for name in self.item.fields})  # type: ignore[arg-type]

    @property
    def skip_reason(self) -> str:
        """Why it cannot be asked; "" when it can."""
        for name in self.item.fields:
            if name in self.sample.missing:
                return self.sample.missing[name]
        entity = self.item.old_facts_of
        return f"the record has no old facts of the {entity} entity" if entity and not self.shown.old_facts else ""


def survey_questions(samples: Iterable[SurveySample], words: Instruments = DEFAULT) -> list[SurveyQuestion]:
    """Return every item about every sample."""
    return [SurveyQuestion(item, sample) for sample in samples for item in words.items.values()]


def answered_questions(samples: Iterable[SurveySample], ratings: pa.Table) -> list[tuple[SurveyQuestion, int]]:
    """Return questions with people's answers.

    Args:
        samples: What was rated.
        ratings: `tables.RATINGS`; rows without a whole rating are left out.
    """
    questions = {(*_key(question)[:4], question.item.name): question for question in survey_questions(samples)}
    rows: list[RatingRow] = ratings.to_pylist()
    answered = []
    for row in rows:
        question = questions.get((row["editor"], row["case_id"], row["phase"], row["sample"], row["item"]))
        rating = row["rating"]
        if question is None or question.skip_reason or row["status"] != "ok" or rating is None:
            continue
        if float(rating).is_integer():
            answered.append((question, int(rating)))
    return answered


def _key(question: SurveyQuestion) -> tuple[object, ...]:
    sample = question.sample
    return (sample.editor, sample.case_id, sample.phase, sample.sample, question.item.name)


class Survey(Instrument[SurveyQuestion]):
    """The survey as an instrument. Source: LEME, Appendices B.3 and D."""

    name = "survey"
    schema = RATINGS
    max_new_tokens = 64

    def prompt(self, question: SurveyQuestion, examples: Sequence[tuple[SurveyQuestion, int]]) -> Prompt:
        """Return task, criterion, examples and scale, then the statement with what is shown of a sample."""
        rated = [(_question(example), f" Rating: {rating}") for example, rating in examples]
        return few_shot(self._task(question.item), rated, _question(question))

    def _task(self, item: Item) -> str:
        scale = self.words.scale
        examples = "\n\n".join(
            f"{kind} example:\n{_fields(item, example)}\nRating: {example.rating} ({scale[example.rating]})\n"
            f"Reason: {example.reason}"
            for kind, example in (("Positive", item.good), ("Negative", item.bad))
        )
        degrees = "\n".join(f"{number} = {words}" for number, words in scale.items())
        return (
            f"{self.words.instructions['survey'].strip()}\n\n"
            f"You rate one criterion: {item.criterion}\n\n{examples}\n\n"
            f"Scale, for how far you agree with a statement:\n{degrees}\n\n"
            "Answer with one line, such as 'Rating: 4', and nothing else."
        )

    def parse(self, question: SurveyQuestion, reply: str) -> tuple[float | None, str]:
        """Read the rating: exactly one whole number from 1 to 7 is expected."""
        bare = _BARE.fullmatch(reply.strip())
        numbers = [bare[1]] if bare else [number for groups in _RATING.findall(reply) for number in groups if number]
        values = sorted({float(number) for number in numbers})
        if len(values) != 1:
            return None, "two ratings" if values else "refusal" if is_refusal(reply) else "no rating"
        if values[0] not in self.words.scale:
            return None, f"{'outside 1-7' if values[0].is_integer() else 'not a whole number'}: {values[0]:g}"
        return values[0], "ok"

    def row(self, question: SurveyQuestion, rater: str, answer: Answer) -> TableRow:
        """Return a row of `RATINGS`."""
        return {name: getattr(question.sample, name) for name in SampleRow.__annotations__} | {
            "item": question.item.name,
            "rater": rater,
            "rating": answer.value,
            "reply": answer.reply,
            "status": answer.status,
            "tries": len(answer.calls),
            "prompt_tokens": _total(call["prompt_tokens"] for call in answer.calls),
            "new_tokens": _total(call["new_tokens"] for call in answer.calls),
        }

    def key(self, question: SurveyQuestion) -> tuple[object, ...]:
        """Return the text and the item."""
        return _key(question)

    def seed(self, seed: int, question: SurveyQuestion, attempt: int) -> int:
        """Return 48 bits of a hash."""
        return seed_of(seed, *_key(question), attempt)

    def texts(self, question: SurveyQuestion) -> Sequence[str]:
        """Return both passages."""
        return [text for text in question.sample.passages.values() if text]

    def skip_reason(self, question: SurveyQuestion) -> str:
        """Return why a question cannot be asked."""
        return question.skip_reason

    def is_example_for(self, example: SurveyQuestion, question: SurveyQuestion) -> bool:
        """Return whether another edit's answer to the same item may be shown."""
        first, second = example.sample, question.sample
        same_edit = (first.subject, first.new_fact) == (second.subject, second.new_fact)
        same = (
            same_edit
            or first.case_id == second.case_id
            or not set(self.texts(example)).isdisjoint(self.texts(question))
        )
        return example.item.name == question.item.name and not same


def _question(question: SurveyQuestion) -> str:
    return f"{_fields(question.item, question.shown)}\n\nStatement: {question.item.statement}\nRating:"


def _fields(item: Item, sample: Shown) -> str:
    lines = []
    for name in item.fields:
        value = getattr(sample, name)
        text = f" {value}" if isinstance(value, str) else "".join(f"\n- {fact}" for fact in value)
        lines.append(f"{TITLES[name]}:{text}")
    return "\n".join(lines)


def _total(counts: Iterable[int | None]) -> int | None:
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if numbers else None
