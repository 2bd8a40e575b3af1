"""Tasks for people and their answers: through Label Studio (https://labelstud.io), or as a CSV sheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import neutral
from seesaw_cf.base.text import read_json, read_text
from seesaw_cf.base.types import JsonObject

EVIDENCE = "evidence"
"""Question whose answer is words of the last text."""
_BETWEEN = "|"  # between several answers in a cell


@dataclass(frozen=True, slots=True)
class RaterQuestion:
    """What is asked about every task of a kind.

    Attributes:
        name: In answers.
        text: What raters read.
        choices: (value, words); none for a free text.
        help: What counts, one line each.
        several: Any of the choices.
    """

    name: str
    text: str
    choices: tuple[tuple[str, str], ...] = ()
    help: tuple[str, ...] = ()
    several: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """One rater's answers to one task.

    Attributes:
        where: File and task, for messages.
        item: Id of the task in the key.
        rater: Who.
        answers: A question -> values of its choices, or texts; a question without an answer is missing.
    """

    where: str
    item: str
    rater: str
    answers: Mapping[str, tuple[str, ...]]

    def text(self, question: str) -> str:
        """Return the answer to a question that has one; "" without."""
        return " ".join(self.answers.get(question, ())).strip()


Texts = Mapping[str, Mapping[str, str]]
"""Id of a task -> the texts that are shown, by field."""


def config_of(fields: Mapping[str, str], questions: Sequence[RaterQuestion]) -> str:
    """Return the labelling configuration of a Label Studio project.

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


def sheet_text(texts: Texts, questions: Sequence[RaterQuestion]) -> str:
    """Return a sheet with one row a task, and an empty column for each question."""
    out, fields = io.StringIO(), list(next(iter(texts.values())))
    writer = csv.writer(out)
    writer.writerow(["item", *fields, *(question.name for question in questions)])
    for id, own in texts.items():
        writer.writerow([id, *(neutral(own[name]) for name in fields), *("" for _ in questions)])
    return out.getvalue()


def instructions_text(task: str, questions: Sequence[RaterQuestion]) -> str:
    """Return what raters read first, with what goes into the columns of a sheet."""
    lines = [task.strip(), "", "In a sheet write into the columns of the questions only; leave a cell empty if unsure."]
    for question in questions:
        lines += ["", f"Column {question.name}: {question.text}", *(f"- {line}" for line in question.help)]
        lines += [f"  {value}  {words}" for value, words in question.choices]
        lines += [f"  Put {_BETWEEN} between several."] if question.several or question.name == EVIDENCE else []
    return "\n".join(lines) + "\n"


def read_responses(path: Path, texts: Texts, questions: Sequence[RaterQuestion], rater: str) -> list[Response]:
    """Read a project's JSON export, or a filled sheet; tasks may be in any order or missing.

    Args:
        path: JSON ("JSON", not "JSON-MIN") or CSV.
        texts: Of the key.
        questions: What was asked.
        rater: Who filled a sheet. In Label Studio each rater is this word and the number that they have there; names
            and addresses are not read.

    Raises:
        StorageError: The file cannot be read.
        RecordError: It is not such a file, a task is not in the key or its texts were edited, a rater answered a task
            twice, an answer was not offered, or nobody answered one; the message names the task.
    """
    skipped: list[str] = []
    read = _sheet(path, texts, questions, rater) if path.suffix.lower() == ".csv" else _export(path, rater, skipped)
    responses: dict[tuple[str, str], Response] = {}
    for response, shown in read:
        _check_texts(response, shown, texts)
        for question in questions:
            _check_answers(response, question, texts[response.item])
        if responses.setdefault((response.item, response.rater), response).answers != response.answers:
            raise RecordError(
                f"{response.where}: {response.rater} answered it twice, in two ways. Keep one, and export again."
            )
    if not any(response.answers for response in responses.values()):
        raise RecordError(
            f"{path}: nobody answered one of its tasks ({len(responses)} empty, {skipped.count('cancelled')} cancelled "
            f"annotations, {skipped.count('predicted')} predictions). Expected answers that raters submitted."
        )
    return list(responses.values())


def _check_texts(response: Response, shown: Mapping[str, object], texts: Texts) -> None:
    if response.item not in texts:
        raise RecordError(
            f"{response.where}: item {response.item!r} is not in the key. Give the key that was written with the tasks."
        )
    for name, text in texts[response.item].items():
        if shown.get(name) != text:
            raise RecordError(
                f"{response.where}: {name} is {checks.shown(shown.get(name))}, expected {checks.shown(text)}. The task "
                "was edited; its answers would be about another text. Restore it."
            )


def _check_answers(response: Response, question: RaterQuestion, shown: Mapping[str, str]) -> None:
    """Refuse answers that were not offered, and evidence that is not in the text."""
    values, choices = response.answers.get(question.name, ()), [value for value, _ in question.choices]
    if choices and (not set(values) <= set(choices) or (len(values) > 1 and not question.several)):
        number = "any" if question.several else "one"
        raise RecordError(
            f"{response.where}: {', '.join(values)} for {question.name!r}, expected {number} of {', '.join(choices)}, "
            "or nothing. Correct the answer where it was given, and export again."
        )
    text = list(shown.values())[-1]
    for words in values if question.name == EVIDENCE else ():
        if words not in text:
            raise RecordError(f"{response.where}: evidence {words!r} is not in the text. Copy it from there.")


def _export(path: Path, rater: str, skipped: list[str]) -> Iterator[tuple[Response, Mapping[str, object]]]:
    """Yield each submitted annotation with the texts of its task."""
    for number, entry in enumerate(read_json(path, list, expected='[{"data": ..., "annotations": [...]}]'), 1):
        where = f"{path}: task {entry.get('id', number) if isinstance(entry, dict) else number}"
        task: dict[str, Any] = checks.instance(where, entry, dict, "an object")
        if "annotations" not in task:
            raise RecordError(f"{where}: no 'annotations'. Export the project as JSON, not as JSON-MIN or CSV.")
        data = checks.instance(f"{where}: data", task.get("data"), dict, "an object")
        item = checks.text(f"{where}: data.item", data.get("item"))
        skipped += ["predicted"] * len(task.get("predictions") or ())
        seen = set()
        for part in checks.items(f"{where}: annotations", task["annotations"]):
            annotation: JsonObject = checks.instance(f"{where}: annotation", part, dict, "an object")
            if annotation.get("was_cancelled"):
                skipped.append("cancelled")
                continue
            by = annotation.get("completed_by")
            name = f"{rater}{checks.whole(f'{where}: completed_by', by.get('id') if isinstance(by, dict) else by)}"
            if name in seen:
                raise RecordError(f"{where}: {name} answered it twice. Keep one of the annotations, and export again.")
            seen.add(name)
            yield Response(where, item, name, _answers(where, annotation, data)), data


def _answers(where: str, annotation: JsonObject, data: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    answers: dict[str, tuple[str, ...]] = {}
    for part in checks.items(f"{where}: result", annotation.get("result", ())):
        entry: JsonObject = checks.instance(f"{where}: result", part, dict, "an object")
        name = checks.text(f"{where}: from_name", entry.get("from_name"))
        value: dict[str, Any] = checks.instance(f"{where}: value", entry.get("value"), dict, "an object")
        given = value.get("choices", value.get("text", ()))
        words = [given] if isinstance(given, str) else list(checks.each(f"{where}: {name}", given, checks.text))
        if "labels" in value:
            text = str(data.get(str(entry.get("to_name")), ""))
            words = [_in_text(highlighted, text) for highlighted in words]
        answers[name] = (*answers.get(name, ()), *(word for word in words if word.strip()))
    return {name: words for name, words in answers.items() if words}


def _in_text(words: str, text: str) -> str:
    """Return highlighted words as the text has them: Label Studio writes its line ends as backslash and n."""
    return next((part for part in (words, words.replace("\\n", "\n")) if part in text), words)


def _sheet(
    path: Path, texts: Texts, questions: Sequence[RaterQuestion], rater: str
) -> Iterator[tuple[Response, Mapping[str, object]]]:
    """Yield each row of a filled sheet; between cells are commas, semicolons or tabs."""
    content = read_text(path).removeprefix("\ufeff")
    between = max(",;\t", key=content.partition("\n")[0].count)
    try:
        frame = pd.read_csv(io.StringIO(content), sep=between, dtype=str, keep_default_na=False, index_col=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise RecordError(f"{path}: not a CSV file ({error}). Save the sheet as CSV UTF-8.") from error
    fields = list(next(iter(texts.values()), {}))
    if missing := [name for name in ["item", *fields, *(question.name for question in questions)] if name not in frame]:
        raise RecordError(f"{path}: columns {missing} are missing; it has {list(frame)}. Keep the sheet's columns.")
    for number, row in enumerate(frame.to_dict("records"), 2):
        item = str(row["item"]).strip()
        if not any(str(cell).strip() for cell in row.values()):
            continue
        answers = {question.name: _cell(question, str(row[question.name])) for question in questions}
        given = {name: words for name, words in answers.items() if words}
        shown = {name: _restored(str(row[name]), text) for name, text in texts.get(item, {}).items()}
        yield Response(f"{path}: row {number}", item, rater, given), shown


def _restored(cell: str, text: str) -> str:
    """Return the text that was exported where a cell is still that, white space aside."""
    return text if cell.split() in (neutral(text).split(), text.split()) else cell


def _cell(question: RaterQuestion, cell: str) -> tuple[str, ...]:
    """Return the answers in a cell: values of choices in any case, or their words."""
    several = question.several or question.name == EVIDENCE
    parts = [part.strip() for part in (cell.split(_BETWEEN) if several else [cell])]
    known = {name.lower(): value for value, words in question.choices for name in (words, value)}
    return tuple(known.get(part.lower(), part) for part in parts if part)
