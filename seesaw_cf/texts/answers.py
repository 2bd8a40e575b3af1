"""What people answered, in an export of Label Studio or a filled sheet, as the tables that judges write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError, SeesawError
from seesaw_cf.base.files import neutral, write_new
from seesaw_cf.base.tables import table_bytes
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.instruments import DEFAULT, FAILURE_MODES, FLAWS_BY_NAME
from seesaw_cf.texts.pairs import PassagePair, flaw_row, unblinded
from seesaw_cf.texts.people import ANSWERS, BETWEEN, EVIDENCE, SEEN, RaterQuestion, Texts
from seesaw_cf.texts.released import read_csv
from seesaw_cf.texts.tables import ANNOTATIONS, FAILURES, FLAWS, PASSAGES, RATINGS, REFLECTED


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
    shown: Mapping[Any, object]
    answers: Mapping[str, tuple[str, ...]]

    def text(self, question: str) -> str:
        """Return the answer to a question that has one; "" without."""
        return " ".join(self.answers.get(question, ())).strip()


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
    read = _sheet(path, texts, questions, rater) if path.suffix.lower() == ".csv" else _export(path, rater)
    responses: dict[tuple[str, str], Response] = {}
    for response in read:
        _check(response, questions, texts)
        if responses.setdefault((response.item, response.rater), response) is not response:
            raise RecordError(f"{response.where}: {response.rater} answered it twice. Keep one, and export again.")
    if not any(response.answers for response in responses.values()):
        raise RecordError(
            f"{path}: nobody answered one of its tasks. Expected answers that raters submitted: empty and cancelled "
            "annotations and predictions do not count."
        )
    return list(responses.values())


def _check(response: Response, questions: Sequence[RaterQuestion], texts: Texts) -> None:
    """Refuse tasks that are not in the key or were edited, answers that were not offered, evidence not in the text."""
    where, item, shown = response.where, response.item, response.shown
    if item not in texts:
        raise RecordError(f"{where}: item {item!r} is not in the key. Give the key that was written with the tasks.")
    for name, text in texts[item].items():
        if str(shown.get(name)).split() not in (text.split(), neutral(text).split()):
            was, given = checks.shown(text), checks.shown(shown.get(name))
            raise RecordError(f"{where}: {name} is {given}, expected {was}. The task was edited; restore it.")
    for question in questions:
        values, choices = response.answers.get(question.name, ()), [value for value, _ in question.choices]
        if choices and (not set(values) <= set(choices) or (len(values) > 1 and not question.several)):
            number = "any" if question.several else "one"
            raise RecordError(
                f"{where}: {', '.join(values)} for {question.name!r}, expected {number} of {', '.join(choices)}, or "
                "nothing. Correct the answer where it was given."
            )
    for words in response.answers.get(EVIDENCE.name, ()):
        if words not in list(texts[item].values())[-1]:
            raise RecordError(f"{where}: evidence {words!r} is not in the text. Copy it from there.")


def _export(path: Path, rater: str) -> Iterator[Response]:
    """Yield each submitted annotation of an export."""
    for number, task in enumerate(read_json(path, list, expected='[{"data": ..., "annotations": [...]}]'), 1):
        where = f"{path}: task {task.get('id', number) if isinstance(task, dict) else number}"
        try:
            item = checks.text("item", task["data"]["item"])
            responses = [
                Response(where, item, _name(rater, own["completed_by"]), task["data"], _answers(own, task["data"]))
                for own in task["annotations"]
                if not own.get("was_cancelled")
            ]
        except (LookupError, TypeError, ValueError, AttributeError, RecordError) as error:
            why = f"not as Label Studio exports a project ({type(error).__name__}: {error})"
            raise RecordError(f"{where}: {why}. Export it as JSON, not as JSON-MIN or CSV.") from error
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
    """Yield each row of a filled sheet."""
    frame, fields = read_csv(path), list(next(iter(texts.values()), {}))
    if missing := [name for name in ["item", *fields, *(question.name for question in questions)] if name not in frame]:
        raise RecordError(f"{path}: columns {missing} are missing; it has {list(frame)}. Keep the sheet's columns.")
    for number, row in enumerate(frame.to_dict("records"), 2):
        if any(str(cell).strip() for cell in row.values()):
            answers = {question.name: _cell(question, str(row[question.name])) for question in questions}
            given = {name: words for name, words in answers.items() if words}
            yield Response(f"{path}: row {number}", str(row["item"]).strip(), rater, row, given)


def _cell(question: RaterQuestion, cell: str) -> tuple[str, ...]:
    """Return the answers in a cell: values of choices in any case, or their words."""
    parts = [part.strip() for part in (cell.split(BETWEEN) if question.several else [cell])]
    known = {name.lower(): value for value, words in question.choices for name in (words, value)}
    return tuple(known.get(part.lower(), part) for part in parts if part)


Rows = Iterator[tuple[str, TableRow]]
Answered = Sequence[tuple[dict[str, Any], Response]]
"""What a task is about, and the response to it."""


def _flaw_rows(answered: Answered) -> Rows:
    """Yield answers un-blinded; those to a pair's second copy are repeats, and say what the first left open."""
    reflected: dict[tuple[str, str], dict[str, Any]] = {}
    for about, response in sorted(answered, key=lambda own: int(own[0]["copy"])):
        pair, first = PassagePair(**about["pair"]), about["first"]
        for flaw in FLAWS_BY_NAME:
            label = response.text(flaw)
            answer = (unblinded(ANSWERS[label], first), label, "ok") if label else (None, "", "not rated")
            table = "flaws" if about["copy"] == 1 else "flaws.repeats"
            yield table, flaw_row(pair, flaw, response.rater, first, *answer)
        blank = about | about["pair"] | {"reflected": None, "comment": ""}
        row = reflected.setdefault((response.rater, pair.pair_id), blank)
        row["reflected"] = row["reflected"] or response.text(SEEN.name) or None
        row["comment"] = " | ".join(filter(None, (row["comment"], response.text("comment"))))
    yield from (("flaws.reflected", row) for row in reflected.values())


def _survey_rows(answered: Answered) -> Rows:
    for about, response in answered:
        for item in DEFAULT.items:
            value = response.text(item)
            status = about["skipped"].get(item) or ("ok" if value else "not rated")
            own = {"item": item, "rating": float(value) if status == "ok" else None, "reply": value, "status": status}
            yield "ratings", about | own | {"tries": int(bool(value))}


def _claim_rows(answered: Answered) -> Rows:
    for about, response in answered:
        label, evidence = response.text("label"), response.answers.get(EVIDENCE.name, ())
        own = {"label": label or None, "evidence": evidence, "reply": "", "status": "ok" if label else "not rated"}
        yield "annotations", about | own


def _failure_rows(answered: Answered) -> Rows:
    for about, response in answered:
        chosen = response.answers.get("modes")
        for mode in FAILURE_MODES:
            own = {"mode": mode, "present": None if chosen is None else mode in chosen}
            own |= {"comment": response.text("comment"), "status": "not rated" if chosen is None else "ok"}
            yield "failures", about | own


def _writing_rows(answered: Answered) -> Rows:
    """Yield passages of the editor "human"; `sample` is the number at the end of the writer's name."""
    for about, response in answered:
        number = re.search(r"\d{1,9}$", response.rater)
        if number is None:
            raise RecordError(f"{response.where}: writer {response.rater!r}, expected a number at the end, such as W1.")
        text = response.text("text")
        own = {"editor": "human", "phase": "post", "sample": int(number[0]), "prompt_id": 0, "seed": 0, "text": text}
        yield "passages", about | own | {"finish": "stop" if text else "", "status": "ok" if text else "not written"}


_FLAWS = {"flaws": FLAWS, "flaws.repeats": FLAWS, "flaws.reflected": REFLECTED}
_ROWS: Mapping[str, tuple[Callable[[Answered], Rows], Mapping[str, pa.Schema]]] = {
    "flaws": (_flaw_rows, _FLAWS),
    "survey": (_survey_rows, {"ratings": RATINGS}),
    "claims": (_claim_rows, {"annotations": ANNOTATIONS}),
    "failures": (_failure_rows, {"failures": FAILURES}),
    "writing": (_writing_rows, {"passages": PASSAGES}),
}
"""Kind -> what makes rows with the name of their table, and the tables in the order written, the first always."""


def import_people(results: Path, key: Path, rater: str = "") -> dict[str, pa.Table]:
    """Return the tables of what people answered, as judges write them.

    Args:
        results: JSON export of Label Studio, or a filled sheet (`.csv`).
        key: `key.json` that was written with the tasks.
        rater: Who filled a sheet; in Label Studio the word before each rater's number ("LS" without one).

    Returns:
        Name of a Parquet file -> its rows. What a rater left open has the status "not rated"; tasks that a rater did
        not see have no rows.

    Raises:
        StorageError: A file cannot be read.
        RecordError: Not these files, or not about the same texts; the message names the task.
    """
    try:
        record = read_json(key, dict)
        rows_of, tables = _ROWS[checks.one_of("kind of tasks", record["kind"], _ROWS)]
        texts, about = ({id: dict(own[part]) for id, own in record["items"].items()} for part in ("texts", "about"))
        questions = [RaterQuestion(**question) for question in record["questions"]]
    except (LookupError, AttributeError, TypeError, ValueError, RecordError) as error:
        reason = error if isinstance(error, SeesawError) else f"{type(error).__name__}: {error}"
        raise RecordError(f"{key}: not the key of tasks ({reason}). Give the key.json written with them.") from error
    if results.suffix.lower() == ".csv" and not rater.strip():
        raise RecordError(f"{results}: a sheet does not say who filled it. Name the rater: --rater A1.")
    responses = read_responses(results, texts, questions, rater or "LS")
    rows: dict[str, list[TableRow]] = {name: [] for name in tables}
    raters = [{"rater": response.rater, "annotator": response.rater} for response in responses]
    for name, row in rows_of([(about[own.item] | rater, own) for own, rater in zip(responses, raters)]):
        rows[name].append(row)
    first = next(iter(rows))
    return {name: pa.Table.from_pylist(rows[name], tables[name]) for name in rows if rows[name] or name == first}


def write_people(results: Path, key: Path, out: Path, rater: str = "", *, overwrite: bool = False) -> str:
    """Write the tables of what people answered as Parquet files into a folder; return how many rows they have.

    Args:
        results, key, rater: See `import_people`.
        out: The folder.
        overwrite: Replace files that are there.

    Raises:
        SeesawError: See `import_people`.
    """
    tables = import_people(results, key, rater)
    write_new([(out / f"{name}.parquet", table_bytes(table)) for name, table in tables.items()], overwrite=overwrite)
    missing = {name: [row.get("status") for row in own.to_pylist()].count("not rated") for name, own in tables.items()}
    lines = [f"{name}.parquet: {table.num_rows} rows, {missing[name]} not rated" for name, table in tables.items()]
    return "\n".join(lines).replace(", 0 not rated", "")
