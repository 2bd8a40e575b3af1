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
    choices: Sequence[tuple[str, str]] = ()
    help: Sequence[str] = ()
    several: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """One rater's answers to one task.

    Attributes:
        where: File and task, for messages.
        item: Id of the task in the key.
        rater: Who.
        shown: The texts of the task, as they came back.
        answers: A question -> values of its choices, or texts; a question without an answer is missing.
    """

    where: str
    item: str
    rater: str
    shown: Mapping[str, object]
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
    for response in read:
        _check(response, questions, texts)
        if responses.setdefault((response.item, response.rater), response) is not response:
            raise RecordError(f"{response.where}: {response.rater} answered it twice. Keep one, and export again.")
    if not any(response.answers for response in responses.values()):
        raise RecordError(
            f"{path}: nobody answered one of its tasks ({len(responses)} empty, {skipped.count('cancelled')} cancelled "
            f"annotations, {skipped.count('predicted')} predictions). Expected answers that raters submitted."
        )
    return list(responses.values())


def _check(response: Response, questions: Sequence[RaterQuestion], texts: Texts) -> None:
    """Refuse tasks that are not in the key or were edited, answers that were not offered, evidence not in the text."""
    if response.item not in texts:
        raise RecordError(
            f"{response.where}: item {response.item!r} is not in the key. Give the key that was written with the tasks."
        )
    for name, text in texts[response.item].items():
        if response.shown.get(name) != text:
            raise RecordError(
                f"{response.where}: {name} is {checks.shown(response.shown.get(name))}, expected {checks.shown(text)}. "
                "The task was edited; its answers would be about another text. Restore it."
            )
    for question in questions:
        values, choices = response.answers.get(question.name, ()), [value for value, _ in question.choices]
        if choices and (not set(values) <= set(choices) or (len(values) > 1 and not question.several)):
            raise RecordError(
                f"{response.where}: {', '.join(values)} for {question.name!r}, expected "
                f"{'any' if question.several else 'one'} of {', '.join(choices)}, or nothing. Correct the answer where "
                "it was given, and export again."
            )
    for words in response.answers.get(EVIDENCE, ()):
        if words not in list(texts[response.item].values())[-1]:
            raise RecordError(f"{response.where}: evidence {words!r} is not in the text. Copy it from there.")


def _export(path: Path, rater: str, skipped: list[str]) -> Iterator[Response]:
    """Yield each submitted annotation of an export."""
    for number, task in enumerate(read_json(path, list, expected='[{"data": ..., "annotations": [...]}]'), 1):
        where = f"{path}: task {number}"
        try:
            where = f"{path}: task {task.get('id', number)}"
            skipped += ["predicted"] * len(task.get("predictions") or ())
            item, annotations = checks.text("item", task["data"]["item"]), task["annotations"]
            skipped += ["cancelled" for own in annotations if own.get("was_cancelled")]
            responses = [
                Response(where, item, _name(rater, own["completed_by"]), task["data"], _answers(own, task["data"]))
                for own in annotations
                if not own.get("was_cancelled")
            ]
        except (LookupError, TypeError, ValueError, AttributeError, RecordError) as error:
            raise RecordError(
                f"{where}: not as Label Studio exports a project ({type(error).__name__}: {error}). Export it as JSON, "
                "not as JSON-MIN or CSV."
            ) from error
        yield from responses


def _name(word: str, by: Any) -> str:
    return f"{word}{int(by['id'] if isinstance(by, dict) else by)}"


def _answers(annotation: Mapping[str, Any], data: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    answers: dict[str, tuple[str, ...]] = {}
    for part in annotation.get("result") or ():
        name, value = part["from_name"], part["value"]
        given = value.get("choices", value.get("text", ()))
        words = [checks.text(name, word) for word in ([given] if isinstance(given, str) else given)]
        if "labels" in value:  # Label Studio writes the line ends of highlighted words as backslash and n
            text = str(data[part["to_name"]])
            words = [word if word in text else word.replace("\\n", "\n") for word in words]
        answers[name] = (*answers.get(name, ()), *(word for word in words if word.strip()))
    return {name: words for name, words in answers.items() if words}


def _sheet(path: Path, texts: Texts, questions: Sequence[RaterQuestion], rater: str) -> Iterator[Response]:
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
        if any(str(cell).strip() for cell in row.values()):
            item = str(row["item"]).strip()
            answers = {question.name: _cell(question, str(row[question.name])) for question in questions}
            # A cell is what was exported where it still is that, white space aside.
            same = {
                name: text if str(row[name]).split() in (neutral(text).split(), text.split()) else row[name]
                for name, text in texts.get(item, {}).items()
            }
            given = {name: words for name, words in answers.items() if words}
            yield Response(f"{path}: row {number}", item, rater, same, given)


def _cell(question: RaterQuestion, cell: str) -> tuple[str, ...]:
    """Return the answers in a cell: values of choices in any case, or their words."""
    several = question.several or question.name == EVIDENCE
    parts = [part.strip() for part in (cell.split(_BETWEEN) if several else [cell])]
    known = {name.lower(): value for value, words in question.choices for name in (words, value)}
    return tuple(known.get(part.lower(), part) for part in parts if part)
