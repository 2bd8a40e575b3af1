"""What people do with the texts of a run: tasks for Label Studio (https://labelstud.io) and as a sheet, with their key.

Source: SEESAW-CF, appendix F (flaws); LEME, appendix D (survey), section 3.3 and appendix E (claims), section 5.6 and
Table 20 (failures), Table 4 (writing). Deviates: a task asks about one claim, or about one passage to write; flaws are
rated blind unless the protocol is "published".
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import neutral, write_new
from seesaw_cf.base.text import seed_of
from seesaw_cf.effects.instruments import Instruments, read_instruments
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.texts import ExportJob
from seesaw_cf.texts.claims import claim_questions
from seesaw_cf.texts.pairs import sample_evenly, showings
from seesaw_cf.texts.records import coupled_cases
from seesaw_cf.texts.released import read_pairs, released_sentences
from seesaw_cf.texts.survey import SurveySample, survey_questions, survey_samples
from seesaw_cf.texts.tables import RunTexts, edit_sentences

BETWEEN = "|"  # between several answers in a cell
Texts = Mapping[str, Mapping[str, str]]
"""Id of a task -> the texts that are shown, by field."""
# Label in a task -> answer in the order shown; no label is a missing rating, never "equal".
ANSWERS: Mapping[str, int] = {"A": -1, "equal": 0, "B": 1}
# Protocol -> names of the two texts; words of each label.
_TITLES = {"blind": ("Text A", "Text B"), "published": ("Before the edit", "After the edit")}
_SIDES = {
    "blind": ("more in text A", "the same, or in neither", "more in text B"),
    "published": ("-1: more in the text before", "0: the same, or in neither", "1: more in the text after"),
}


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


EVIDENCE = RaterQuestion("evidence", "Evidence", several=True)
"""The question whose answers are words of the last text."""


SEEN = RaterQuestion(  # only raters who see the edit can answer it
    "edit_reflected",
    "Does a text say what the edit says, or take it for granted?",
    (("yes", "yes, at least one"), ("no", "neither"), ("unsure", "it cannot be told")),
)


def rater_questions(kind: str, words: Instruments, protocol: str = "blind") -> list[RaterQuestion]:
    """Return what raters are asked about every task of a kind."""
    comment = RaterQuestion("comment", "Anything that the questions cannot hold")
    sides = tuple(zip(ANSWERS, _SIDES[protocol], strict=True))
    scale = tuple((str(number), f"{number}: {degree}") for number, degree in words.scale.items())
    labels = tuple(zip(LABELS, ("supports", "neither", "contradicts"), strict=True))
    modes = tuple((name, f"{title}: {meaning}") for name, (title, meaning) in words.failures.items())
    flaws = [RaterQuestion(flaw.name, flaw.title, sides, flaw.people) for flaw in words.flaws.values()]
    items = [RaterQuestion(i.name, i.statement, scale, (f"Criterion: {i.criterion}",)) for i in words.items.values()]
    return {
        "flaws": [*flaws, SEEN, comment],
        "survey": items,
        "claims": [RaterQuestion("label", "Does the passage support the claim?", labels), EVIDENCE],
        "failures": [RaterQuestion("modes", "What do you find in the passages?", modes, several=True), comment],
        "writing": [RaterQuestion("text", "Your text")],
    }[kind]


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


def _flaw_tasks(run: RunTexts, job: ExportJob, left_out: Counter[str]) -> Tasks:
    """Yield two texts about one person; some pairs come again in the other order."""
    file, edits = run.folder, dict[tuple[str, int], str]()
    pairs, missing = read_pairs(file if file.is_file() else file / "passages.parquet")
    left_out += missing
    if file.suffix.lower() == ".csv":
        edits = released_sentences(file)
    elif file.is_dir() and (table := run.table("edits")) is not None:
        edits = edit_sentences(table)
    by_id = {pair.pair_id: pair for pair in pairs}
    for id, copy, first in showings(list(by_id), job.seed, job.duplicates, job.protocol):
        pair = by_id[id]
        texts = {"Subject": pair.entity, "Edit": edits.get((pair.editor, pair.case_id), "")}
        texts |= dict(zip(_TITLES[job.protocol], pair.shown(first)))
        yield Task(pair.relation, id, texts, {"pair": asdict(pair), "first": first, "copy": copy})


def _sample_tasks(run: RunTexts, job: ExportJob, left_out: Counter[str]) -> Tasks:
    """Yield both passages of a sample, of failures only of those written after an edit, where one may be missing.

    Statements that it cannot be asked about keep their reason.
    """
    for sample in survey_samples(*run.couples):
        why = next(iter(sample.missing.values()), "")
        if job.kind == "failures":
            why = "written before the edit" if sample.phase == "pre" else "" if any(sample.passages.values()) else why
        if why:
            left_out[why] += 1
            continue
        skipped = {str(question.row["item"]): question.skip for question in survey_questions([sample]) if question.skip}
        passages = {"Main passage": sample.passages["main"], "Related passage": sample.passages["related"]}
        name = "|".join(map(str, sample.place.values()))
        yield Task(sample.relation, name, _facts(sample) | passages, sample.place | {"skipped": skipped})


def _claim_tasks(run: RunTexts, job: ExportJob, left_out: Counter[str]) -> Tasks:
    """Yield a passage with one claim about it."""
    for question in claim_questions(*run.couples):
        if question.skip:
            left_out[question.skip.partition(":")[0]] += 1
            continue
        texts = {"Claim": question.pair[1], "Passage": question.pair[0]}
        name = "|".join(map(str, question.row.values()))
        yield Task(str(question.row["relation"]), name, texts, question.row)


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


def _facts(sample: SurveySample) -> dict[str, str]:
    return {
        "New fact": sample.new_fact,
        "Subject": sample.subject,
        "Related entity": sample.related_entity,
        "Old facts about the subject": "\n".join(sample.old_facts.get("subject", ())),
        "Old facts about the related entity": "\n".join(sample.old_facts.get("related", ())),
    }


_TASKS: Mapping[str, tuple[Callable[[RunTexts, ExportJob, Counter[str]], Tasks], str]] = {
    "flaws": (_flaw_tasks, "flaws_people"),
    "survey": (_sample_tasks, "survey"),
    "claims": (_claim_tasks, "claims_people"),
    "failures": (_sample_tasks, "failures"),
    "writing": (_writing_tasks, "writing"),
}
"""Kind -> what makes its tasks, and the name of what raters read first, in the instruments."""


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
    words, left_out = read_instruments(job.wording), Counter[str]()
    make, instructions = _TASKS[job.kind]
    tasks = list(make(RunTexts(job.run), job, left_out))
    if not tasks:
        why = "; ".join(f"{count}: {reason}" for reason, count in left_out.items()) or "no such passages"
        raise RecordError(f"{job.run}: no texts for {job.kind} ({why}). Give a run that has such passages.")
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
    asked = rater_questions(job.kind, words, job.protocol)
    questions = [question for question in asked if question is not SEEN or "Edit" in titles]
    instructions += "_published" if job.kind == "flaws" and job.protocol == "published" else ""
    key = {"kind": job.kind, "seed": job.seed, "protocol": job.protocol, "wording": words.facts()}
    key |= {"questions": [asdict(question) for question in questions]}
    key |= {"items": {id: {"texts": shown[id], "about": items[id].about} for id in order}}
    files: list[tuple[Path, bytes | str]] = [
        (out / "tasks.json", _json([{"data": {"item": id, **texts}} for id, texts in shown.items()])),
        (out / "config.xml", config_of(fields, questions)),
        (out / "sheet.csv", b"\xef\xbb\xbf" + sheet_text(shown, questions).encode("utf-8")),
        (out / "instructions.txt", instructions_text(words.instructions[instructions], questions)),
        (out / "key.json", _json(key)),
    ]
    write_new(files, overwrite=overwrite)
    (out / "key.json").chmod(0o600)
    return len(order), left_out


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def config_of(fields: Mapping[str, str], questions: Sequence[RaterQuestion]) -> str:
    """Return the labelling configuration of a Label Studio project.

    Args:
        fields: Field of a task -> its title; answers belong to the last.
        questions: What is asked; of evidence, words of the last text are highlighted.
    """
    view, judged = ET.Element("View"), list(fields)[-1]
    if EVIDENCE in questions:
        labels = ET.SubElement(view, "Labels", name=EVIDENCE.name, toName=judged)
        ET.SubElement(labels, "Label", value=EVIDENCE.name)
    for name, title in fields.items():
        _header(view, title)
        # Plain text, never HTML and never taken for an address to load.
        ET.SubElement(view, "Text", name=name, value=f"${name}", valueType="text", granularity="word")
    for question in questions:
        if question == EVIDENCE:
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
    empty = {question.name: "" for question in questions}
    sheet = pd.DataFrame([{"item": id, **own, **empty} for id, own in texts.items()])
    return str(sheet.map(neutral).to_csv(index=False))


def instructions_text(task: str, questions: Sequence[RaterQuestion]) -> str:
    """Return what raters read first, with what goes into the columns of a sheet."""
    lines = [task.strip(), "", "In a sheet write into the columns of the questions only; leave a cell empty if unsure."]
    for question in questions:
        lines += ["", f"Column {question.name}: {question.text}", *(f"- {line}" for line in question.help)]
        lines += [f"  {value}  {words}" for value, words in question.choices]
        lines += [f"  Put {BETWEEN} between several."] if question.several else []
    return "\n".join(lines) + "\n"
