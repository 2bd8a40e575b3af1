"""Label Studio (https://labelstud.io): a labelling configuration out, a JSON export in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.texts.people.answers import Response
from seesaw_cf.texts.people.tasks import EVIDENCE, TaskQuestion


def config_of(fields: Mapping[str, str], questions: Sequence[TaskQuestion]) -> str:
    """Return the labelling configuration of a project.

    Args:
        fields: Field of a task -> its title; answers belong to the last.
        questions: What is asked; of evidence, words of the last text are highlighted.
    """
    view, judged = ET.Element("View"), list(fields)[-1]
    if any(question.name == EVIDENCE for question in questions):
        labels = ET.SubElement(view, "Labels", name=EVIDENCE, toName=judged)
        ET.SubElement(labels, "Label", value=EVIDENCE)
    for name, title in fields.items():
        _header(view, title)
        # Plain text, never HTML and never taken for an address to load.
        ET.SubElement(view, "Text", name=name, value=f"${name}", valueType="text", granularity="word")
    for question in questions:
        if question.name == EVIDENCE:
            continue
        _header(view, question.text)
        for line in question.help:
            _header(view, f"- {line}", size="6")
        if not question.choices:
            ET.SubElement(view, "TextArea", name=question.name, toName=judged, maxSubmissions="1")
            continue
        how = "multiple" if question.several else "single-radio"
        parent = ET.SubElement(view, "Choices", name=question.name, toName=judged, choice=how, showInline="true")
        for value, words in question.choices:
            ET.SubElement(parent, "Choice", value=words, alias=value)
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _header(view: ET.Element, text: str, size: str = "4") -> None:
    # "$" would name a field of the task.
    ET.SubElement(view, "Header", value=text.replace("$", "\uff04"), size=size)


def read_export(path: Path, items: Mapping[str, Mapping[str, str]], rater: str) -> list[Response]:
    """Read a project's JSON export; tasks may be in any order, be missing, and be answered by any number of raters.

    Args:
        path: The file ("JSON", not "JSON-MIN").
        items: Id of a task -> the texts that were shown, by field.
        rater: Each rater is this word and the number that Label Studio has for them; names and addresses are not read.

    Raises:
        StorageError: The file cannot be read.
        RecordError: It is not such an export, a task is not in the key or its texts were edited, a rater answered a
            task twice, or nobody finished one; the message names the task.
    """
    tasks = read_json(path, list, expected='[{"data": ..., "annotations": [...]}]')
    responses: dict[tuple[str, str], Response] = {}
    cancelled = predicted = 0
    for number, entry in enumerate(tasks, 1):
        where = f"{path}: task {entry.get('id', number) if isinstance(entry, dict) else number}"
        task: dict[str, Any] = checks.instance(where, entry, dict, "an object")
        if "annotations" not in task:
            raise RecordError(f"{where}: no 'annotations'. Export the project as JSON, not as JSON-MIN or CSV.")
        data = checks.instance(f"{where}: data", task.get("data"), dict, "an object")
        item = checks.text(f"{where}: data.item", data.get("item"))
        check_texts(where, item, data, items)
        predicted += len(task.get("predictions") or ())
        for part in checks.items(f"{where}: annotations", task["annotations"]):
            annotation: JsonObject = checks.instance(f"{where}: annotation", part, dict, "an object")
            if annotation.get("was_cancelled"):
                cancelled += 1
                continue
            by = annotation.get("completed_by")
            name = f"{rater}{checks.whole(f'{where}: completed_by', by.get('id') if isinstance(by, dict) else by)}"
            response = Response(where, item, name, _answers(where, annotation, data))
            if (item, name) in responses:
                raise RecordError(f"{where}: {name} answered it twice. Keep one of the annotations, and export again.")
            responses[item, name] = response
    if not any(response.answers for response in responses.values()):
        raise RecordError(
            f"{path}: nobody answered one of its {len(tasks)} tasks ({len(responses)} empty and {cancelled} cancelled "
            f"annotations, {predicted} predictions). Expected annotations that raters submitted."
        )
    return list(responses.values())


def check_texts(where: str, item: str, texts: Mapping[str, object], items: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse a task of another key, or one that is not as it was exported.

    Raises:
        RecordError: So it is.
    """
    if item not in items:
        raise RecordError(f"{where}: item {item!r} is not in the key. Give the key that was written with these tasks.")
    for name, text in items[item].items():
        if texts.get(name) != text:
            raise RecordError(
                f"{where}: {name} is {checks.shown(texts.get(name))}, expected {checks.shown(text)}. The task was "
                "edited; its answers would be about another text. Restore it."
            )


def _answers(where: str, annotation: JsonObject, data: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    answers: dict[str, tuple[str, ...]] = {}
    for part in checks.items(f"{where}: result", annotation.get("result", ())):
        entry: JsonObject = checks.instance(f"{where}: result", part, dict, "an object")
        name = checks.text(f"{where}: from_name", entry.get("from_name"))
        value: dict[str, Any] = checks.instance(f"{where}: value", entry.get("value"), dict, "an object")
        if "labels" in value:
            text = data.get(checks.text(f"{where}: to_name", entry.get("to_name")), "")
            words = [_highlighted(where, text, value)]
        elif "choices" in value:
            words = list(checks.each(f"{where}: {name}", value["choices"], checks.text))
        else:
            given = value.get("text", ())
            words = [given] if isinstance(given, str) else list(checks.each(f"{where}: {name}", given, checks.text))
        answers[name] = (*answers.get(name, ()), *(word for word in words if word.strip()))
    return {name: words for name, words in answers.items() if words}


def _highlighted(where: str, text: str, value: Mapping[str, Any]) -> str:
    """Return the highlighted words as they stand in the text.

    Browsers count characters outside the basic plane twice, Python once: the words tell which it was.
    """
    start, end = (checks.whole(f"{where}: {name}", value.get(name)) for name in ("start", "end"))
    wide = text.encode("utf-16-le")
    spans = (text[start:end], wide[2 * start : 2 * end].decode("utf-16-le", "replace"))
    if value.get("text") is None:
        return spans[0]
    words = checks.text(f"{where}: text", value["text"]).replace("\\n", " ").split()
    for span in spans:
        if span.split() == words:
            return span
    raise RecordError(
        f"{where}: characters {start} to {end} are {checks.shown(spans[0])}, but the highlighted text is "
        f"{checks.shown(value['text'])}. The passage was changed after it was highlighted."
    )


def label_studio_tasks(items: Mapping[str, Mapping[str, str]]) -> Iterator[JsonObject]:
    """Yield the tasks as Label Studio imports them."""
    for id, texts in items.items():
        yield {"data": {"item": id, **texts}}
