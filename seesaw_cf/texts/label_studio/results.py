"""Results of Label Studio (its JSON export), checked against the key of the tasks."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.texts.people.spans import Span

RATERS = "LS"


@dataclass(frozen=True, slots=True)
class Highlight:
    """Highlighted words.

    Attributes:
        span: The words, as characters of the task's own text, the end not included.
        labels: What they were highlighted as.
    """

    span: Span
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Answered:
    """One rater's answers to one task.

    Attributes:
        where: File, task and item, for messages.
        item: Id of the item in the key.
        rater: A word for the installation and the number that Label Studio has for who answered; names and addresses
            are never read.
        choices: Question -> what was chosen.
        comment: Free text.
        spans: What was highlighted.
    """

    where: str
    item: str
    rater: str
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    comment: str = ""
    spans: tuple[Highlight, ...] = ()

    def choice(self, question: str, choices: Collection[str]) -> str:
        """Return the one choice of a question; "" when nothing was chosen.

        Raises:
            RecordError: Several, or one that is not offered.
        """
        words = self.choices.get(question, ())
        if len(words) > 1 or any(word not in choices for word in words):
            raise RecordError(
                f"{self.where}: {list(words)} for {question!r}, expected one of {', '.join(choices)} or nothing. "
                "Export the project with the configuration that came with the tasks."
            )
        return words[0] if words else ""


def read_results(
    path: str | os.PathLike[str], items: Mapping[str, Mapping[str, str]], raters: str = RATERS
) -> list[Answered]:
    """Read a JSON export. Tasks may be in any order, be missing, and be answered by any number of raters.

    Args:
        path: The file ("JSON", not "JSON-MIN").
        items: Id of an item -> the data of its task, from the key.
        raters: Each rater is this word and a number, which every installation of Label Studio begins with 1.

    Returns:
        Answers of every rater; annotations that were cancelled are left out.

    Raises:
        StorageError: The file cannot be read.
        RecordError: It is not such an export, a task is not in the key or its texts were changed, or a rater answered a
            task twice in two ways; the message names the task.
    """
    checks.text("raters", raters)
    answers: dict[tuple[str, str], Answered] = {}
    for number, task in enumerate(read_json(path, list, expected='[{"data": ..., "annotations": [...]}]'), 1):
        where = f"{path}: task {task.get('id', number) if isinstance(task, dict) else number}"
        for answer in _task(where, task, items, raters):
            other = answers.setdefault((answer.item, answer.rater), answer)
            if other != answer:
                raise RecordError(
                    f"{answer.where}: two different answers by {answer.rater}. Keep one of the annotations."
                )
    return list(answers.values())


def _task(where: str, task: object, items: Mapping[str, Mapping[str, str]], raters: str) -> Iterator[Answered]:
    fields: JsonObject = checks.instance(where, task, dict, "an object")
    data = checks.instance(f"{where}: data", fields.get("data"), dict, "an object")
    if "annotations" not in fields:
        raise RecordError(f"{where}: no 'annotations'. Export the project as JSON, not as JSON-MIN or CSV.")
    item = checks.text(f"{where}: data.item", data.get("item"))
    if item not in items:
        raise RecordError(f"{where}: item {item!r} is not in the key. Give the key that was written with these tasks.")
    where = f"{where} (item {item})"
    for name, text in items[item].items():
        if data.get(name) != text:
            raise RecordError(
                f"{where}: {name} is {checks.shown(data.get(name))}, expected {checks.shown(text)}. The task was "
                "edited; its answers would be about another text."
            )
    for annotation in checks.items(f"{where}: annotations", fields["annotations"]):
        fields_: JsonObject = checks.instance(f"{where}: annotation", annotation, dict, "an object")
        if not fields_.get("was_cancelled"):
            yield _answered(where, item, fields_, data, raters)


def _answered(where: str, item: str, annotation: Mapping[str, Any], data: Mapping[str, str], raters: str) -> Answered:
    by = annotation.get("completed_by", 0)
    who = by.get("id", 0) if isinstance(by, dict) else by
    choices: dict[str, tuple[str, ...]] = {}
    comment, spans = "", []
    for part in checks.items(f"{where}: result", annotation.get("result", ())):
        entry: JsonObject = checks.instance(f"{where}: result", part, dict, "an object")
        value: JsonObject = checks.instance(f"{where}: value", entry.get("value"), dict, "an object")
        name = checks.text(f"{where}: from_name", entry.get("from_name"))
        if "choices" in value:
            choices[name] = checks.each(f"{where}: {name}", value["choices"], checks.text)
        elif "labels" in value:
            text = data.get(checks.text(f"{where}: to_name", entry.get("to_name")), "")
            labels = checks.each(f"{where}: {name}", value["labels"], checks.text)
            spans.append(Highlight(_span(where, text, value), labels))
        elif "text" in value:
            words = value["text"]
            comment = words if isinstance(words, str) else " ".join(checks.each(f"{where}: {name}", words, checks.text))
    rater = f"{raters}{checks.whole(f'{where}: completed_by', who)}"
    return Answered(where, item, rater, choices, comment.strip(), tuple(spans))


def _span(where: str, text: str, value: Mapping[str, Any]) -> Span:
    """Return the span of the highlighted words, counted as Python does.

    Browsers count characters outside the basic plane twice, Python once: the words tell which it was.
    """
    start, end = (checks.whole(f"{where}: {name}", value.get(name)) for name in ("start", "end"))
    wide = text.encode("utf-16-le")
    first, last = (len(wide[: 2 * at].decode("utf-16-le", "replace")) for at in (start, end))
    quote = value.get("text")
    if quote is None:
        return start, end
    words = checks.text(f"{where}: text", quote).replace("\\n", " ").split()
    for span in ((start, end), (first, last)):
        if text[slice(*span)].split() == words:
            return span
    raise RecordError(
        f"{where}: characters {start} to {end} are {checks.shown(text[start:end])}, but the highlighted text is "
        f"{checks.shown(quote)}. The passage was changed after it was highlighted."
    )
