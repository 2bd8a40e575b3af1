"""From a posted form to an answer, and whether it is whole and right."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seesaw_cf.texts.people.spans import read_spans, sentence_spans
from seesaw_cf.texts.people.study import Answer, ItemQuestion, RatingItem, RatingStudy, RatingTask

LONGEST = 20_000
"""Letters of a free text that are kept."""
Form = Mapping[str, Sequence[str]]
SENTENCES, SPANS = ".sentences", ".spans"  # what follows a claim's name in a form


def first_of(form: Form, name: str) -> str:
    """Return the value of a field that is there once; "" when it is not there."""
    return (form.get(name) or [""])[0]


def read_answer(study: RatingStudy, item: RatingItem, form: Form) -> Answer:
    """Return the answers of a form about an item; unknown content is left out."""
    return {question.name: _READ[question.shape](question, item, form) for question in study.asked(item)}


def _choice(question: ItemQuestion, item: RatingItem, form: Form) -> str:
    value = first_of(form, question.name)
    return value if value in dict(question.choices) else ""


def _several(question: ItemQuestion, item: RatingItem, form: Form) -> list[str]:
    values = set(form.get(question.name, ()))
    return [value for value, _ in question.choices if value in values]


def _claim(question: ItemQuestion, item: RatingItem, form: Form) -> Answer:
    choice, body = _choice(question, item, form), item.texts[0].body
    if choice == "neutral":
        return {"choice": choice, "sentences": [], "spans": []}
    ticks = set(form.get(question.name + SENTENCES, ()))
    numbers = [number for number in range(1, len(sentence_spans(body)) + 1) if str(number) in ticks]
    spans = [list(span) for span in read_spans(body, form.get(question.name + SPANS, ()))]
    return {"choice": choice, "sentences": numbers, "spans": spans}


def _free(question: ItemQuestion, item: RatingItem, form: Form) -> str:
    text = first_of(form, question.name).replace("\r\n", "\n").strip()[:LONGEST]
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")


_READ: dict[str, Callable[[ItemQuestion, RatingItem, Form], Any]] = {
    "choice": _choice,
    "several": _several,
    "claim": _claim,
    "line": _free,
    "text": _free,
}


def blanks(study: RatingStudy, item: RatingItem, answer: Answer) -> dict[str, str]:
    """Return question -> what is still wanted; empty when the item is answered."""
    problems = {}
    for question in study.asked(item):
        value = answer.get(question.name)
        if question.shape == "claim" and isinstance(value, dict):
            if value["choice"] in ("supports", "contradicts") and not (value["sentences"] or value.get("spans")):
                problems[question.name] = "mark at least one sentence, or the words, that say so"
            value = value["choice"]
        if question.needed and not value:
            problems[question.name] = "not answered yet"
    return problems


def expected(item: RatingItem, task: RatingTask) -> Answer:
    """Return the right answers, in the order in which this rater saw the texts."""
    right = item.gold.answers if item.gold else {}
    return {name: in_other_order(value) for name, value in right.items()} if task.first == "post" else right


def in_other_order(answer: Any) -> Any:
    """Return an answer about two texts as it is when they are shown in the other order."""
    return {"A": "B", "B": "A"}.get(answer, answer) if isinstance(answer, str) else answer


def agrees(answer: Any, right: Any, *, exactly: bool) -> bool:
    """Return whether an answer is the right one.

    Args:
        answer, right: Values of one question.
        exactly: Else a number may differ by 1. What was marked for a claim is not compared.
    """
    if isinstance(right, dict):
        return isinstance(answer, dict) and answer.get("choice") == right["choice"]
    if isinstance(right, list | tuple):
        return isinstance(answer, list | tuple) and set(answer) == set(right)
    if not exactly and str(right).isdecimal() and str(answer).isdecimal():
        return math.fabs(int(answer) - int(right)) <= 1
    return bool(answer == right)
