"""The same tasks as a CSV sheet that opens in any spreadsheet: one row a task, one column a question."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import neutral
from seesaw_cf.texts.flaws.people import read_sheet
from seesaw_cf.texts.people.answers import Response
from seesaw_cf.texts.people.label_studio import check_texts
from seesaw_cf.texts.people.tasks import EVIDENCE, TaskQuestion

_BETWEEN = "|"  # between several answers in a cell


def sheet_text(fields: Sequence[str], items: Mapping[str, Mapping[str, str]], questions: Sequence[TaskQuestion]) -> str:
    """Return the sheet, with an empty column for each question."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["item", *fields, *(question.name for question in questions)])
    for id, texts in items.items():
        writer.writerow([id, *(neutral(texts[name]) for name in fields), *("" for _ in questions)])
    return out.getvalue()


def instructions_text(task: str, questions: Sequence[TaskQuestion]) -> str:
    """Return what raters who fill a sheet read first."""
    lines = [task.strip(), "", "Write into the columns of the questions only; leave a cell empty if you cannot tell."]
    for question in questions:
        lines += ["", f"Column {question.name}: {question.text}", *(f"- {line}" for line in question.help)]
        lines += [f"  {value}  {words}" for value, words in question.choices]
        if question.several or question.name == EVIDENCE:
            lines.append(f"  Put {_BETWEEN} between several.")
    return "\n".join(lines) + "\n"


def read_filled(
    path: Path, items: Mapping[str, Mapping[str, str]], questions: Sequence[TaskQuestion], rater: str
) -> list[Response]:
    """Read a filled sheet; rows may be in any order or missing, and one that repeats another counts once.

    Args:
        path: The sheet.
        items: Id of a task -> the texts that were shown, by field.
        questions: What was asked.
        rater: Who filled it.

    Raises:
        StorageError: It cannot be read.
        RecordError: Columns are missing, a row is not in the key, its texts were edited, it was answered twice in two
            ways, evidence is not in the text, or nothing is filled in; the message names the row.
    """
    fields = list(next(iter(items.values()), {}))
    by_item: dict[str, Response] = {}
    for number, row in read_sheet(path, ["item", *fields, *(question.name for question in questions)]).items():
        where, item = f"{path}: row {number}", row["item"].strip()
        texts = {name: _restored(row[name], text) for name, text in items.get(item, {}).items()}
        check_texts(where, item, texts, items)
        answers = {question.name: _cell(question, row[question.name]) for question in questions}
        response = Response(where, item, rater, {name: words for name, words in answers.items() if words})
        for words in response.answers.get(EVIDENCE, ()):
            if words not in items[item][fields[-1]]:
                raise RecordError(f"{where}: evidence {words!r} is not in the text. Copy it from there.")
        other = by_item.setdefault(item, response)
        if other.answers != response.answers:
            raise RecordError(f"{where}: item {item} was answered in another way before. Keep one of the two rows.")
    if not any(response.answers for response in by_item.values()):
        raise RecordError(f"{path}: nothing is filled in. Give the sheet that a rater filled.")
    return list(by_item.values())


def _restored(cell: str, text: str) -> str:
    """Return the text that was exported where a cell is still that, white space aside."""
    return text if cell.split() in (neutral(text).split(), text.split()) else cell


def _cell(question: TaskQuestion, cell: str) -> tuple[str, ...]:
    """Return the answers in a cell: values of choices in any case, or their words."""
    several = question.several or question.name == EVIDENCE
    parts = [part.strip() for part in (cell.split(_BETWEEN) if several else [cell])]
    known = {name.lower(): value for value, words in question.choices for name in (words, value)}
    return tuple(known.get(part.lower(), part) for part in parts if part)
