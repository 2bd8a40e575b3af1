"""People's answers as the rows that judges write: un-blinded, with a status where nothing was answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.survey_items import ITEMS
from seesaw_cf.texts.flaws.people import PairRating, human_work
from seesaw_cf.texts.people.tasks import EVIDENCE, REFLECTED, TaskQuestion
from seesaw_cf.texts.tables import ANNOTATIONS, FAILURES, PASSAGES, RATINGS
from seesaw_cf.texts.wording import FAILURE_MODES, FLAWS_BY_NAME
from seesaw_cf.texts.write.pairs import PassagePair


@dataclass(frozen=True, slots=True)
class Response:
    """One rater's answers to one task.

    Attributes:
        where: File and task, for messages.
        item: Id of the task in the key.
        rater: Who.
        answers: Question -> values of its choices, or texts; a question without an answer is missing.
    """

    where: str
    item: str
    rater: str
    answers: Mapping[str, tuple[str, ...]]

    def text(self, question: str) -> str:
        """Return the answer to a question that has one; "" without."""
        return " ".join(self.answers.get(question, ())).strip()


def check_response(response: Response, questions: Sequence[TaskQuestion]) -> None:
    """Refuse answers that were not offered.

    Raises:
        RecordError: A choice that the question does not have, or several where one was asked for.
        UnknownNameError: A question that was not asked.
    """
    by_name = {question.name: question for question in questions}
    for name, values in response.answers.items():
        question = by_name[one_of(f"question in {response.where}:", name, by_name)]
        choices = [value for value, _ in question.choices]
        several = question.several or not choices
        if (not several and len(values) > 1) or (choices and not set(values) <= set(choices)):
            raise RecordError(
                f"{response.where}: {', '.join(values)} for {name!r}, expected {'any' if several else 'one'} of "
                f"{', '.join(choices)}, or nothing. Correct the answer where it was given, and export again."
            )


About = Mapping[str, Any]
_Answered = tuple[About, Response]


def _flaws(answered: Sequence[_Answered]) -> Iterator[tuple[str, pa.Table]]:
    ratings = []
    for about, response in answered:
        labels = {flaw: response.text(flaw) for flaw in FLAWS_BY_NAME}
        more = response.text(REFLECTED), response.text("comment")
        pair = PassagePair(**about["pair"])
        ratings.append(PairRating(pair, response.rater, about["first"], about["copy"] == 2, labels, *more))
    work = human_work(ratings)
    yield from {"flaws": work.table, "flaws.repeats": work.repeats, "flaws.reflected": work.reflected}.items()


def _survey(answered: Sequence[_Answered]) -> Iterator[tuple[str, pa.Table]]:
    rows: list[TableRow] = []
    for about, response in answered:
        for item in ITEMS:
            value = response.text(item.name)
            status = about["skipped"].get(item.name) or ("ok" if value else "not rated")
            rating = float(value) if status == "ok" else None
            own = {"item": item.name, "rater": response.rater, "rating": rating, "reply": value, "status": status}
            rows.append({**about["place"], **own, "tries": int(bool(value))})
    yield "ratings", pa.Table.from_pylist(rows, schema=RATINGS)


def _claims(answered: Sequence[_Answered]) -> Iterator[tuple[str, pa.Table]]:
    rows: list[TableRow] = []
    for about, response in answered:
        label = response.text("label")
        claim = {name: about[name] for name in ("passage", "claim_kind", "claim_id", "claim")}
        own = {"annotator": response.rater, "label": label or None, "evidence": response.answers.get(EVIDENCE, ())}
        rows.append({**about["place"], **claim, **own, "reply": "", "status": "ok" if label else "not rated"})
    yield "annotations", pa.Table.from_pylist(rows, schema=ANNOTATIONS)


def _failures(answered: Sequence[_Answered]) -> Iterator[tuple[str, pa.Table]]:
    rows: list[TableRow] = []
    for about, response in answered:
        chosen, comment = response.answers.get("modes"), response.text("comment")
        for mode in FAILURE_MODES:
            own = {"mode": mode, "rater": response.rater, "present": None if chosen is None else mode in chosen}
            status = "not rated" if chosen is None else "ok"
            rows.append({**about["place"], **own, "comment": comment, "status": status})
    yield "failures", pa.Table.from_pylist(rows, schema=FAILURES)


def _writing(answered: Sequence[_Answered]) -> Iterator[tuple[str, pa.Table]]:
    """Yield passages of the editor "human"; `sample` is the number at the end of the rater's name."""
    rows: list[TableRow] = []
    for about, response in answered:
        number = re.search(r"\d{1,9}$", response.rater)
        if number is None:
            raise RecordError(f"{response.where}: writer {response.rater!r}, expected a number at the end, such as W1.")
        text = response.text("text")
        own = {"editor": "human", "phase": "post", "sample": int(number[0]), "prompt_id": 0, "seed": 0, "text": text}
        rows.append({**about, **own, "finish": "stop" if text else "", "status": "ok" if text else "not written"})
    yield "passages", pa.Table.from_pylist(rows, schema=PASSAGES)


TABLES: Mapping[str, Callable[[Sequence[_Answered]], Iterator[tuple[str, pa.Table]]]] = {
    "flaws": _flaws,
    "survey": _survey,
    "claims": _claims,
    "failures": _failures,
    "writing": _writing,
}
"""Kind of tasks -> the tables of answers to them, by the names of their files."""
