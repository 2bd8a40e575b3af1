"""What people do with the texts of a run: tasks out, and their answers back as the tables that judges write."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError, SeesawError
from seesaw_cf.base.files import write_new
from seesaw_cf.base.tables import table_bytes
from seesaw_cf.base.text import read_json, seed_of
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.instruments import DEFAULT, FAILURE_MODES, FLAWS_BY_NAME, Instruments, read_instruments
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.texts.job import ExportJob
from seesaw_cf.texts.pairs import FlawAnswer, PassagePair, flaw_row, reflected_row, sample_evenly, unblinded
from seesaw_cf.texts.runs import RunTexts
from seesaw_cf.texts.tables import ANNOTATIONS, FAILURES, FLAWS, PASSAGES, RATINGS, REFLECTED, ReflectedRow
from seesaw_cf.texts.tasks import Task, claim_tasks, failure_tasks, flaw_tasks, survey_tasks, writing_tasks
from seesaw_cf.texts.transport import (
    EVIDENCE,
    RaterQuestion,
    Response,
    config_of,
    instructions_text,
    read_responses,
    sheet_text,
)

_Answered = tuple[dict[str, Any], Response]
# Label in a task -> answer in the order shown; no label is a missing rating, never "equal".
ANSWERS: Mapping[str, int] = {"A": -1, "equal": 0, "B": 1}
# Protocol -> the words of each label.
_CHOICES = {
    "blind": ("more in text A", "the same, or in neither", "more in text B"),
    "published": ("-1: more in the text before", "0: the same, or in neither", "1: more in the text after"),
}
_COMMENT = RaterQuestion("comment", "Anything that the questions cannot hold")
_SEEN = RaterQuestion(  # only raters who see the edit can answer it
    "edit_reflected",
    "Does a text say what the edit says, or take it for granted?",
    (("yes", "yes, at least one"), ("no", "neither"), ("unsure", "it cannot be told")),
)
_LABEL = RaterQuestion(
    "label",
    "Does the passage support the claim?",
    tuple(zip(LABELS, ("supports", "neither", "contradicts"), strict=True)),
)


def _flaw_rows(responses: Sequence[_Answered]) -> Iterator[tuple[str, TableRow]]:
    """Yield answers un-blinded; those to a pair's second copy are repeats, and say what the first left open."""
    reflected: dict[tuple[str, str], ReflectedRow] = {}
    for about, response in sorted(responses, key=lambda own: int(own[0]["copy"])):
        pair, first = PassagePair(**about["pair"]), about["first"]
        for flaw in FLAWS_BY_NAME:
            label = response.text(flaw)
            change = unblinded(ANSWERS[label], first) if label else None
            answer = FlawAnswer(change, reply=label, status="ok" if label else "not rated")
            table = "flaws" if about["copy"] == 1 else "flaws.repeats"
            yield table, dict(flaw_row(pair, flaw, response.rater, first, answer))
        row = reflected.setdefault((response.rater, pair.pair_id), reflected_row(pair, response.rater))
        row["reflected"] = row["reflected"] or response.text(_SEEN.name) or None
        row["comment"] = " | ".join(text for text in (row["comment"], response.text("comment")) if text)
    yield from (("flaws.reflected", dict(row)) for row in reflected.values())


def _survey_rows(responses: Sequence[_Answered]) -> Iterator[tuple[str, TableRow]]:
    for about, response in responses:
        for item in DEFAULT.items:
            value = response.text(item)
            status = about["skipped"].get(item) or ("ok" if value else "not rated")
            own = {"item": item, "rater": response.rater, "rating": float(value) if status == "ok" else None}
            yield "ratings", {**about["place"], **own, "reply": value, "status": status, "tries": int(bool(value))}


def _claim_rows(responses: Sequence[_Answered]) -> Iterator[tuple[str, TableRow]]:
    for about, response in responses:
        label, claim = response.text("label"), {name: value for name, value in about.items() if name != "place"}
        own = {"annotator": response.rater, "label": label or None, "evidence": response.answers.get(EVIDENCE, ())}
        yield "annotations", about["place"] | claim | own | {"reply": "", "status": "ok" if label else "not rated"}


def _failure_rows(responses: Sequence[_Answered]) -> Iterator[tuple[str, TableRow]]:
    for about, response in responses:
        chosen = response.answers.get("modes")
        for mode in FAILURE_MODES:
            own = {"mode": mode, "rater": response.rater, "present": None if chosen is None else mode in chosen}
            own |= {"comment": response.text("comment"), "status": "not rated" if chosen is None else "ok"}
            yield "failures", about["place"] | own


def _writing_rows(responses: Sequence[_Answered]) -> Iterator[tuple[str, TableRow]]:
    """Yield passages of the editor "human"; `sample` is the number at the end of the writer's name."""
    for about, response in responses:
        number = re.search(r"\d{1,9}$", response.rater)
        if number is None:
            raise RecordError(f"{response.where}: writer {response.rater!r}, expected a number at the end, such as W1.")
        text = response.text("text")
        own = {"editor": "human", "phase": "post", "sample": int(number[0]), "prompt_id": 0, "seed": 0, "text": text}
        yield "passages", about | own | {"finish": "stop" if text else "", "status": "ok" if text else "not written"}


def _flaw_questions(words: Instruments, job: ExportJob) -> list[RaterQuestion]:
    choices = tuple(zip(ANSWERS, _CHOICES[job.protocol], strict=True))
    flaws = [RaterQuestion(flaw.name, flaw.title, choices, flaw.people) for flaw in words.flaws.values()]
    return [*flaws, _SEEN, _COMMENT]


def _survey_questions(words: Instruments, job: ExportJob) -> list[RaterQuestion]:
    scale = tuple((str(number), f"{number}: {degree}") for number, degree in words.scale.items())
    return [RaterQuestion(i.name, i.statement, scale, (f"Criterion: {i.criterion}",)) for i in words.items.values()]


def _failure_questions(words: Instruments, job: ExportJob) -> list[RaterQuestion]:
    modes = tuple((name, f"{title}: {meaning}") for name, (title, meaning) in words.failures.items())
    return [RaterQuestion("modes", "What do you find in the passages?", modes, several=True), _COMMENT]


@dataclass(frozen=True, slots=True)
class TaskKind:
    """A kind of task.

    Attributes:
        needs: What a run must have for it.
        instructions: Name of what raters read first, in the instruments.
        tasks: (run, job, reasons of what is left out, which it fills) -> tasks.
        questions: What raters are asked.
        rows: (what a task is about, response) of every response -> rows by the name of their table.
        tables: Their schemas, in the order written; the first is always written.
    """

    needs: str
    instructions: str
    tasks: Callable[[RunTexts, ExportJob, Counter[str]], Iterator[Task]]
    questions: Callable[[Instruments, ExportJob], Sequence[RaterQuestion]]
    rows: Callable[[Sequence[_Answered]], Iterator[tuple[str, TableRow]]]
    tables: Mapping[str, pa.Schema]


_COUPLED = "passages about coupled entities"
KINDS: Mapping[str, TaskKind] = {
    "flaws": TaskKind(
        "open-ended descriptions before and after edits", "flaws_people", flaw_tasks, _flaw_questions, _flaw_rows,
        {"flaws": FLAWS, "flaws.repeats": FLAWS, "flaws.reflected": REFLECTED},
    ),
    "survey": TaskKind(_COUPLED, "survey", survey_tasks, _survey_questions, _survey_rows, {"ratings": RATINGS}),
    "claims": TaskKind(
        _COUPLED, "claims_people", claim_tasks, lambda *_: (_LABEL, RaterQuestion(EVIDENCE, "Evidence")), _claim_rows,
        {"annotations": ANNOTATIONS},
    ),
    "failures": TaskKind(
        f"{_COUPLED} after edits", "failures", failure_tasks, _failure_questions, _failure_rows,
        {"failures": FAILURES},
    ),
    "writing": TaskKind(
        "coupled records", "writing", writing_tasks, lambda *_: (RaterQuestion("text", "Your text"),), _writing_rows,
        {"passages": PASSAGES},
    ),
}  # fmt: skip
"""Name -> what people do."""


def export_people(job: ExportJob, out: Path, *, overwrite: bool = False) -> tuple[int, Counter[str]]:
    """Write tasks for people: tasks.json and config.xml for Label Studio, sheet.csv, instructions.txt, and key.json.

    Args:
        job: What is asked, and how.
        out: The folder.
        overwrite: Replace files with other content; without it a filled sheet is never lost.

    Returns:
        How many tasks, copies included; and why -> texts without a task.

    Raises:
        RecordError: The run has no texts for this kind.
        StorageError: A file cannot be written, or is there with other content.
    """
    kind, words = KINDS[job.kind], read_instruments(job.wording)
    left_out: Counter[str] = Counter()
    tasks = list(kind.tasks(RunTexts(job.run), job, left_out))
    if not tasks:
        why = "; ".join(f"{count}: {reason}" for reason, count in left_out.items()) or "no such passages"
        raise RecordError(f"{job.run}: no texts for {job.kind} ({why}). Expected a run with {kind.needs}.")
    groups: dict[str, dict[str, None]] = {}
    for task in tasks:
        groups.setdefault(task.relation, {})[task.name] = None
    drawn = sample_evenly({name: list(own) for name, own in groups.items()}, job.limit, job.seed)
    items = {_item(job, task): task for task in tasks if task.name in drawn}
    titles = list(dict.fromkeys(title for task in items.values() for title in task.texts))
    titles.sort(key=lambda title: max(list(t.texts).index(title) for t in items.values() if title in t.texts))
    fields = {title[:1].lower() + title[1:].replace(" ", "_"): title for title in titles}
    order = random.Random(seed_of(job.seed, "order")).sample(sorted(items), len(items))
    shown = {id: {name: items[id].texts.get(title, "-") for name, title in fields.items()} for id in order}
    questions = [question for question in kind.questions(words, job) if question is not _SEEN or "Edit" in titles]
    published = job.kind == "flaws" and job.protocol == "published"
    instructions = words.instructions[f"{kind.instructions}_published" if published else kind.instructions]
    key = {
        "kind": job.kind,
        "seed": job.seed,
        "protocol": job.protocol,
        "wording": words.facts(),
        "questions": [asdict(question) for question in questions],
        "items": {id: {"texts": shown[id], "about": items[id].about} for id in order},
    }
    files: list[tuple[Path, bytes | str]] = [
        (out / "tasks.json", _json([{"data": {"item": id, **texts}} for id, texts in shown.items()])),
        (out / "config.xml", config_of(fields, questions)),
        (out / "sheet.csv", b"\xef\xbb\xbf" + sheet_text(shown, questions).encode("utf-8")),
        (out / "instructions.txt", instructions_text(instructions, questions)),
        (out / "key.json", _json(key)),
    ]
    write_new(files, overwrite=overwrite)
    (out / "key.json").chmod(0o600)
    return len(order), left_out


def _item(job: ExportJob, task: Task) -> str:
    own = (job.kind, task.name, task.about.get("copy"), *task.texts.values())
    return f"i{seed_of(job.seed, *own, bits=64):016x}"


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


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
        kind = KINDS[checks.one_of("kind of tasks", record["kind"], KINDS)]
        entries = {name: checks.instance("item", item, dict) for name, item in record["items"].items()}
        texts, about = ({name: entry[part] for name, entry in entries.items()} for part in ("texts", "about"))
        questions = [_question(question) for question in record["questions"]]
    except (LookupError, AttributeError, TypeError, RecordError) as error:
        reason = error if isinstance(error, SeesawError) else f"{type(error).__name__}: {error}"
        raise RecordError(f"{key}: not the key of tasks ({reason}). Give the key.json written with them.") from error
    if results.suffix.lower() == ".csv" and not rater.strip():
        raise RecordError(f"{results}: a sheet does not say who filled it. Name the rater: --rater A1.")
    responses = read_responses(results, texts, questions, rater or "LS")
    rows: dict[str, list[TableRow]] = {name: [] for name in kind.tables}
    for name, row in kind.rows([(about[response.item], response) for response in responses]):
        rows[name].append(row)
    first = next(iter(rows))
    return {name: pa.Table.from_pylist(rows[name], kind.tables[name]) for name in rows if rows[name] or name == first}


def _question(fields: dict[str, Any]) -> RaterQuestion:
    choices = tuple((value, words) for value, words in fields["choices"])
    return RaterQuestion(fields["name"], fields["text"], choices, tuple(fields["help"]), fields["several"])


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
    lines = []
    for name, table in tables.items():
        missing = table.column("status").to_pylist().count("not rated") if "status" in table.column_names else 0
        lines.append(f"{name}.parquet: {table.num_rows} rows" + (f", {missing} not rated" if missing else ""))
    return "\n".join(lines)
