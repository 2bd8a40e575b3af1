"""The survey: passages become samples, samples and items become questions, raters answer, answers become a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Protocol, TypedDict

import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.tables import Int32, schema_of
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.survey_items import Item, Shown, chosen_items
from seesaw_cf.texts.annotate.annotate import foreign
from seesaw_cf.texts.annotate.learned import LEFT_OUT, digest, learned_of
from seesaw_cf.texts.tables import RATINGS, CallRow, PassageRow, SampleRow
from seesaw_cf.texts.write.claims import claims_of
from seesaw_cf.texts.write.passages import LongformRecord, entity_name


class _CallOf(TypedDict):
    """What a row of `CALLS` begins with: which question, and which try."""

    editor: str
    case_id: int
    phase: str
    sample: Int32
    item: str
    rater: str
    attempt: Int32


# One row per request to a judge, in the order made: everything that was sent and said.
CALLS = schema_of(_CallOf, CallRow)
_PASSAGE = {"main": "subject", "related": "related"}


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

    @property
    def digests(self) -> frozenset[str]:
        """Digests of the passages that there are, by which a rater knows what it has learned from."""
        return frozenset(digest(text) for text in self.passages.values() if text)


@dataclass(frozen=True, slots=True)
class SurveyQuestion:
    """One item about one sample."""

    item: Item
    sample: SurveySample

    @property
    def shown(self) -> Shown:
        """What the rater sees: the item's fields and nothing else."""
        whole = {
            "new_fact": self.sample.new_fact,
            "old_facts": self.sample.old_facts.get(self.item.old_facts_of, ()),
            "subject": self.sample.subject,
            "related_entity": self.sample.related_entity,
            **self.sample.passages,
        }
        return Shown(**{name: whole[name] for name in self.item.fields})  # type: ignore[arg-type]

    @property
    def skip_reason(self) -> str:
        """Why it cannot be asked; "" when it can."""
        for name in self.item.fields:
            if name in self.sample.missing:
                return self.sample.missing[name]
        whose = self.item.old_facts_of
        return f"the record has no old facts of the {whose} entity" if whose and not self.shown.old_facts else ""


@dataclass(frozen=True, slots=True)
class Rating:
    """A rater's answer.

    Attributes:
        rating: 1 to 7; None unless `status` is "ok".
        reply: Raw words of a rater that writes.
        status: "ok", or the reason for no rating.
        calls: Every request behind it, tries that failed included.
    """

    rating: float | None
    reply: str = ""
    status: str = "ok"
    calls: tuple[CallRow, ...] = ()


class Rater(Protocol):
    """What answers questions: a judge, a trained encoder, a baseline."""

    @property
    def name(self) -> str:
        """Name the rater and everything that changes its ratings."""

    def rate(self, questions: Sequence[SurveyQuestion]) -> list[Rating]:
        """Return one rating per question, in order."""


def survey_samples(passages: pa.Table, records: Sequence[LongformRecord]) -> list[SurveySample]:
    """Put subject and related passages of the same text together with the facts of their record.

    Args:
        passages: `tables.PASSAGES`; other kinds of passages are left out.
        records: Rows of a `coupled_*` config.

    Returns:
        One sample for each (editor, case, phase, sample, prompt), in the table's order.

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
    claims = claims_of(record, "sentence")
    texts, missing = {}, {}
    for name, passage in _PASSAGE.items():
        row = rows.get(passage)
        texts[name] = (row["text"] or "").strip() if row else ""
        if why := _unusable(row, texts[name]):
            missing[name] = f"{name} passage: {why}"
    request = record["requested_rewrite"]
    return SurveySample(
        **asdict(place),
        subject=request["subject"],
        related_entity=entity_name(record.get("related_entity")),
        new_fact=claims["subject"][0].text,
        target_new=(request["target_new"] or {}).get("str") or "",
        target_true=(request["target_true"] or {}).get("str") or "",
        old_facts={
            name: tuple(c.text for c in claims[name] if c.kind == "ground_truth" and c.status == "ok")
            for name in _PASSAGE.values()
        },
        passages=texts,
        missing=missing,
    )


def _unusable(row: PassageRow | None, text: str) -> str:
    if row is None:
        return "not written"
    if row["status"] != "ok":
        return row["status"]
    if not text:
        return "empty"
    why = foreign(text)
    return f"does not read like English: {why}" if why else ""


def survey(samples: Sequence[SurveySample], rater: Rater, items: tuple[str, ...] = ()) -> tuple[pa.Table, pa.Table]:
    """Ask a rater every item about every sample.

    Args:
        samples: From `survey_samples`.
        rater: Who answers.
        items: Names of items; all nine when none is named.

    Returns:
        `tables.RATINGS`, one row per (sample, item), and `CALLS`. What cannot be asked, or has no usable answer, keeps
        its row with a status and no rating; so does a sample of a passage that the rater has learned from.
    """
    questions = [SurveyQuestion(item, sample) for sample in samples for item in chosen_items(items)]
    learned = learned_of(rater)
    seen = {sample for sample in samples if not learned.isdisjoint(sample.digests)}
    reasons = [question.skip_reason or (LEFT_OUT if question.sample in seen else "") for question in questions]
    answers = iter(rater.rate([question for question, why in zip(questions, reasons) if not why]))
    rows, calls = [], []
    for question, why in zip(questions, reasons, strict=True):
        answer = Rating(None, status=why) if why else next(answers)
        rows.append(_row(question, rater.name, answer))
        about = {name: getattr(question.sample, name) for name in ("editor", "case_id", "phase", "sample")}
        about |= {"item": question.item.name, "rater": rater.name}
        calls += [{**about, "attempt": attempt, **call} for attempt, call in enumerate(answer.calls, 1)]
    return pa.Table.from_pylist(rows, schema=RATINGS), pa.Table.from_pylist(calls, schema=CALLS)


def _row(question: SurveyQuestion, rater: str, answer: Rating) -> TableRow:
    return {
        **{name: getattr(question.sample, name) for name in SampleRow.__annotations__},
        "item": question.item.name,
        "rater": rater,
        "rating": answer.rating if answer.status == "ok" else None,
        "reply": answer.reply,
        "status": answer.status,
        "tries": len(answer.calls),
        "prompt_tokens": _total(call["prompt_tokens"] for call in answer.calls),
        "new_tokens": _total(call["new_tokens"] for call in answer.calls),
    }


def _total(counts: Iterator[int | None]) -> int | None:
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if numbers else None
