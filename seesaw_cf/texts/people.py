"""What people do with the texts of a run: tasks out, and their answers back as the tables that judges write.

Source: SEESAW-CF, appendix F (flaws); LEME, appendix D (survey), section 3.3 and appendix E (claims), section 5.6 and
Table 20 (failures), Table 4 (writing). Deviates: a task asks about one claim, or about one passage to write; flaws are
rated blind unless the protocol is "published".
"""

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
from seesaw_cf.effects.instruments import DEFAULT, FAILURE_MODES, FLAWS_BY_NAME, ITEMS, Instruments, read_instruments
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.texts.claims import claim_questions
from seesaw_cf.texts.job import ExportJob
from seesaw_cf.texts.pairs import PassagePair, flaw_row, sample_evenly, showings, unblinded
from seesaw_cf.texts.records import coupled_cases
from seesaw_cf.texts.released import read_pairs, released_sentences
from seesaw_cf.texts.survey import SurveySample, survey_questions, survey_samples
from seesaw_cf.texts.tables import ANNOTATIONS, FAILURES, FLAWS, PASSAGES, RATINGS, REFLECTED, RunTexts, edit_sentences
from seesaw_cf.texts.transport import (
    EVIDENCE,
    RaterQuestion,
    Response,
    config_of,
    instructions_text,
    read_responses,
    sheet_text,
)

# Label in a task -> answer in the order shown; no label is a missing rating, never "equal".
ANSWERS: Mapping[str, int] = {"A": -1, "equal": 0, "B": 1}
# Protocol -> names of the two texts, and the words of each label.
_WORDS = {
    "blind": (("Text A", "Text B"), ("more in text A", "the same, or in neither", "more in text B")),
    "published": (
        ("Before the edit", "After the edit"),
        ("-1: more in the text before", "0: the same, or in neither", "1: more in the text after"),
    ),
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


@dataclass(frozen=True, slots=True)
class Task:
    """A task.

    Attributes:
        relation: Of the edit; samples are drawn evenly over relations.
        name: What tells the task from others of its kind; copies of one pair share it.
        texts: Title -> text, in the order shown; answers belong to the last. Empty ones are not shown.
        about: What the tables need; never shown.
    """

    relation: str
    name: str
    texts: Mapping[str, str]
    about: dict[str, Any]


Tasks = Iterator[Task]
Rows = Iterator[tuple[str, TableRow]]
Answered = Sequence[tuple[dict[str, Any], Response]]
"""What a task is about, and the response to it."""


def _flaw_tasks(run: RunTexts, job: ExportJob, left_out: Counter[str]) -> Tasks:
    """Yield two texts about one person; some pairs come again in the other order."""
    file, edits = run.folder, dict[tuple[str, int], str]()
    pairs, missing = read_pairs(file if file.is_file() else file / "passages.parquet")
    left_out += missing
    if not job.hide_edit and file.suffix.lower() == ".csv":
        edits = released_sentences(file)
    elif not job.hide_edit and file.is_dir() and (table := run.table("edits")) is not None:
        edits = edit_sentences(table)
    by_id = {pair.pair_id: pair for pair in pairs}
    for id, copy, first in showings(list(by_id), job.seed, job.duplicates, job.protocol):
        pair = by_id[id]
        texts = {"Subject": pair.entity, "Edit": edits.get((pair.editor, pair.case_id), "")}
        texts |= dict(zip(_WORDS[job.protocol][0], pair.shown(first)))
        yield Task(pair.relation, id, texts, {"pair": asdict(pair), "first": first, "copy": copy})


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
        blank = about["pair"] | {"rater": response.rater, "reflected": None, "comment": ""}
        row = reflected.setdefault((response.rater, pair.pair_id), blank)
        row["reflected"] = row["reflected"] or response.text(_SEEN.name) or None
        row["comment"] = " | ".join(filter(None, (row["comment"], response.text("comment"))))
    yield from (("flaws.reflected", row) for row in reflected.values())


def _flaw_questions(words: Instruments, job: ExportJob) -> list[RaterQuestion]:
    choices = tuple(zip(ANSWERS, _WORDS[job.protocol][1], strict=True))
    flaws = [RaterQuestion(flaw.name, flaw.title, choices, flaw.people) for flaw in words.flaws.values()]
    return [*flaws, _SEEN, _COMMENT]


def _survey_tasks(run: RunTexts, job: ExportJob, left_out: Counter[str]) -> Tasks:
    """Yield both passages of a sample; statements that it cannot be asked about keep their reason."""
    hidden = [item.name for item in ITEMS if "new_fact" in item.fields and job.hide_edit]
    for sample in survey_samples(*run.couples):
        if sample.missing:
            left_out[next(iter(sample.missing.values()))] += 1
            continue
        skipped = {str(question.row["item"]): question.skip for question in survey_questions([sample]) if question.skip}
        yield _sample_task(sample, job, skipped=skipped | dict.fromkeys(hidden, "the edit was not told"))


def _survey_rows(answered: Answered) -> Rows:
    for about, response in answered:
        for item in DEFAULT.items:
            value = response.text(item)
            status = about["skipped"].get(item) or ("ok" if value else "not rated")
            own = {"item": item, "rater": response.rater, "rating": float(value) if status == "ok" else None}
            yield "ratings", {**about["place"], **own, "reply": value, "status": status, "tries": int(bool(value))}


def _survey_questions(words: Instruments, job: ExportJob) -> list[RaterQuestion]:
    scale = tuple((str(number), f"{number}: {degree}") for number, degree in words.scale.items())
    return [RaterQuestion(i.name, i.statement, scale, (f"Criterion: {i.criterion}",)) for i in words.items.values()]


def _claim_tasks(run: RunTexts, job: ExportJob, left_out: Counter[str]) -> Tasks:
    """Yield a passage with one claim about it."""
    for question in claim_questions(*run.couples):
        hidden = "the edit was not told" if job.hide_edit and question.row["claim_kind"] == "new_fact" else ""
        if why := question.skip or hidden:
            left_out[why.partition(":")[0]] += 1
            continue
        texts = {"Claim": question.pair[1], "Passage": question.pair[0]}
        name = "|".join(map(str, question.row.values()))
        yield Task(str(question.row["relation"]), name, texts, question.row)


def _claim_rows(answered: Answered) -> Rows:
    for about, response in answered:
        label, evidence = response.text("label"), response.answers.get(EVIDENCE, ())
        own = {"annotator": response.rater, "label": label or None, "evidence": evidence, "reply": ""}
        yield "annotations", about | own | {"status": "ok" if label else "not rated"}


def _failure_tasks(run: RunTexts, job: ExportJob, left_out: Counter[str]) -> Tasks:
    """Yield both passages of every sample that was written after an edit."""
    for sample in survey_samples(*run.couples):
        if sample.phase == "pre":
            left_out["written before the edit"] += 1
        elif not any(sample.passages.values()):
            left_out[next(iter(sample.missing.values()))] += 1
        else:
            yield _sample_task(sample, job)


def _failure_rows(answered: Answered) -> Rows:
    for about, response in answered:
        chosen = response.answers.get("modes")
        for mode in FAILURE_MODES:
            own = {"mode": mode, "rater": response.rater, "present": None if chosen is None else mode in chosen}
            own |= {"comment": response.text("comment"), "status": "not rated" if chosen is None else "ok"}
            yield "failures", about["place"] | own


def _failure_questions(words: Instruments, job: ExportJob) -> list[RaterQuestion]:
    modes = tuple((name, f"{title}: {meaning}") for name, (title, meaning) in words.failures.items())
    return [RaterQuestion("modes", "What do you find in the passages?", modes, several=True), _COMMENT]


def _writing_tasks(run: RunTexts, job: ExportJob, left_out: Counter[str]) -> Tasks:
    """Yield an edit with what was recorded before, and one passage to write."""
    samples = {sample.case_id: sample for sample in reversed(survey_samples(*run.couples))}
    for case in coupled_cases(run.coupled):
        for prompt in case.prompts if case.case_id in samples else ():
            if prompt.status != "ok":
                left_out[prompt.status] += 1
                continue
            about = {"case_id": case.case_id, "relation": case.request.relation_id, "passage": prompt.passage}
            about |= {"entity": prompt.entity.label, "entity_id": prompt.entity.id, "prompt": prompt.text}
            texts = _facts(samples[case.case_id]) | {"Write": prompt.text}
            yield Task(case.request.relation_id, f"{case.case_id}|{prompt.passage}", texts, about)


def _writing_rows(answered: Answered) -> Rows:
    """Yield passages of the editor "human"; `sample` is the number at the end of the writer's name."""
    for about, response in answered:
        number = re.search(r"\d{1,9}$", response.rater)
        if number is None:
            raise RecordError(f"{response.where}: writer {response.rater!r}, expected a number at the end, such as W1.")
        text = response.text("text")
        own = {"editor": "human", "phase": "post", "sample": int(number[0]), "prompt_id": 0, "seed": 0, "text": text}
        yield "passages", about | own | {"finish": "stop" if text else "", "status": "ok" if text else "not written"}


def _facts(sample: SurveySample, hide_edit: bool = False) -> dict[str, str]:
    return {
        "New fact": "" if hide_edit else sample.new_fact,
        "Subject": sample.subject,
        "Related entity": sample.related_entity,
        "Old facts about the subject": "\n".join(sample.old_facts.get("subject", ())),
        "Old facts about the related entity": "\n".join(sample.old_facts.get("related", ())),
    }


def _sample_task(sample: SurveySample, job: ExportJob, **more: object) -> Task:
    passages = {"Main passage": sample.passages["main"], "Related passage": sample.passages["related"]}
    name = "|".join(map(str, sample.place.values()))
    return Task(sample.relation, name, _facts(sample, job.hide_edit) | passages, {"place": sample.place, **more})


@dataclass(frozen=True, slots=True)
class TaskKind:
    """A kind of task.

    Attributes:
        needs: What a run must have for it.
        instructions: Name of what raters read first, in the instruments.
        tasks: (run, job, reasons of what is left out, which it fills) -> tasks.
        questions: What raters are asked.
        rows: Responses, each with what its task is about -> rows with the name of their table.
        tables: Their schemas, in the order written; the first is always written.
    """

    needs: str
    instructions: str
    tasks: Callable[[RunTexts, ExportJob, Counter[str]], Tasks]
    questions: Callable[[Instruments, ExportJob], Sequence[RaterQuestion]]
    rows: Callable[[Answered], Rows]
    tables: Mapping[str, pa.Schema]


_COUPLED = "passages about coupled entities"
KINDS: Mapping[str, TaskKind] = {
    "flaws": TaskKind(
        "open-ended descriptions before and after edits", "flaws_people", _flaw_tasks, _flaw_questions, _flaw_rows,
        {"flaws": FLAWS, "flaws.repeats": FLAWS, "flaws.reflected": REFLECTED},
    ),
    "survey": TaskKind(_COUPLED, "survey", _survey_tasks, _survey_questions, _survey_rows, {"ratings": RATINGS}),
    "claims": TaskKind(
        _COUPLED, "claims_people", _claim_tasks, lambda *_: (_LABEL, RaterQuestion(EVIDENCE, "Evidence")), _claim_rows,
        {"annotations": ANNOTATIONS},
    ),
    "failures": TaskKind(
        f"{_COUPLED} after edits", "failures", _failure_tasks, _failure_questions, _failure_rows,
        {"failures": FAILURES},
    ),
    "writing": TaskKind(
        "coupled records", "writing", _writing_tasks, lambda *_: (RaterQuestion("text", "Your text"),), _writing_rows,
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
    kind, words, left_out = KINDS[job.kind], read_instruments(job.wording), Counter[str]()
    tasks = list(kind.tasks(RunTexts(job.run), job, left_out))
    if not tasks:
        why = "; ".join(f"{count}: {reason}" for reason, count in left_out.items()) or "no such passages"
        raise RecordError(f"{job.run}: no texts for {job.kind} ({why}). Expected a run with {kind.needs}.")
    drawn = sample_evenly({task.name: task.relation for task in tasks}, job.limit, job.seed)
    items = {}
    for task in tasks:
        own = (job.kind, task.name, task.about.get("copy"), *filter(None, task.texts.values()))
        if task.name in drawn:
            items[f"i{seed_of(job.seed, *own, bits=64):016x}"] = task
    titles = [title for title in tasks[0].texts if any(task.texts[title] for task in items.values())]
    fields = {title[:1].lower() + title[1:].replace(" ", "_"): title for title in titles}
    order = random.Random(seed_of(job.seed, "order")).sample(sorted(items), len(items))
    shown = {id: {name: items[id].texts[title] or "-" for name, title in fields.items()} for id in order}
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
        texts, about = ({id: dict(own[part]) for id, own in record["items"].items()} for part in ("texts", "about"))
        questions = [RaterQuestion(**question) for question in record["questions"]]
    except (LookupError, AttributeError, TypeError, ValueError, RecordError) as error:
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
