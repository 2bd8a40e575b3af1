"""Tasks of people out, to Label Studio (https://labelstud.io) or as a sheet, and their answers back by one key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
import pyarrow as pa

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import csv_text, neutral, write_new
from seesaw_cf.base.tables import table_bytes
from seesaw_cf.base.text import read_json, seed_of
from seesaw_cf.effects.instruments import read_instruments
from seesaw_cf.stats.plain import json_text
from seesaw_cf.texts import ExportJob
from seesaw_cf.texts.pairs import sample_evenly
from seesaw_cf.texts.people import KINDS, Answers, Facts, Questions, rater_questions
from seesaw_cf.texts.released import read_csv
from seesaw_cf.texts.tables import RunTexts

BETWEEN = "|"  # between several answers in a cell
SEVERAL = ("modes", "evidence")  # questions with several answers; evidence is words of the last text
Words = Mapping[str, Sequence[str]]
"""Question -> what was chosen, marked or written."""
Responses = Iterator[tuple[str, str, str, Mapping[Any, Any], Words]]
"""File and task, for messages; id of the task in the key; rater; texts as they came back; and the answers."""


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
    words, kind = read_instruments(job.wording), KINDS[job.kind]
    made = list(kind.tasks(RunTexts(job.run), job))
    left_out = Counter(skip for *_, skip in made if skip)
    tasks = {_id(job, texts, about): (texts, about) for texts, about, skip in made if not skip}
    if not tasks:
        why = "; ".join(f"{count}: {reason}" for reason, count in left_out.items()) or "no such passages"
        raise RecordError(f"{job.run}: no texts for {job.kind} ({why}). Give a run that has such passages.")
    relations = {id: str(about["relation"]) for id, (_, about) in tasks.items()}
    drawn = sample_evenly(relations, None if job.kind == "flaws" else job.limit, job.seed)  # of flaws pairs were drawn
    shown = {id: tasks[id][0] for id in sorted(drawn)}  # ids are hashes: their order is one by chance
    fields = [name for name in next(iter(shown.values())) if any(texts[name] for texts in shown.values())]
    questions = dict(rater_questions(job.kind, words, job.protocol))
    if "edit" not in fields:
        questions.pop("edit_reflected", None)
    rows = [{"item": id, **{name: texts[name] or "-" for name in fields}} for id, texts in shown.items()]
    key = {"kind": job.kind, "seed": job.seed, "protocol": job.protocol, "wording": words.facts()}
    key["items"] = {row["item"]: {"texts": row, "about": tasks[row["item"]][1]} for row in rows}
    instructions = kind.instructions + "_published" * (job.kind == "flaws" and job.protocol == "published")
    files: list[tuple[Path, bytes | str]] = [
        (out / "tasks.json", json_text([{"data": row} for row in rows])),
        (out / "config.xml", config_of(fields, questions)),
        (out / "sheet.csv", "\ufeff" + csv_text(pd.DataFrame(rows).assign(**dict.fromkeys(questions, "")))),
        (out / "instructions.txt", instructions_text(words.instructions[instructions], questions)),
        (out / "key.json", json_text(key | {"questions": questions})),
    ]
    write_new(files, overwrite=overwrite)
    (out / "key.json").chmod(0o600)
    return len(rows), left_out


def _id(job: ExportJob, texts: Mapping[str, str], about: Facts) -> str:
    return f"i{seed_of(job.seed, job.kind, *map(str, about.values()), *texts.values(), bits=64):016x}"


def config_of(fields: Sequence[str], questions: Questions) -> str:
    """Return the labelling configuration of a Label Studio project.

    Args:
        fields: Of a task; answers belong to the last.
        questions: What is asked; of evidence, words of the last text are highlighted.
    """
    view = ET.Element("View")

    def add_header(text: str) -> None:  # "$" would name a field of the task
        ET.SubElement(view, "Header", value=text.replace("$", "\uff04"), size="4")

    for name in fields:
        add_header(f"{name[:1].upper()}{name[1:].replace('_', ' ')}")
        # Plain text, never HTML and never taken for an address to load.
        ET.SubElement(view, "Text", name=name, value=f"${name}", valueType="text", granularity="word")
    for name, (text, choices) in questions.items():
        for line in text.splitlines():
            add_header(line)
        about = {"name": name, "toName": fields[-1]}
        if name == "evidence":
            ET.SubElement(ET.SubElement(view, "Labels", about), "Label", value=name)
        elif not choices:
            ET.SubElement(view, "TextArea", about, maxSubmissions="1")
        else:
            how = "multiple" if name in SEVERAL else "single-radio"
            parent = ET.SubElement(view, "Choices", about, choice=how, showInline="true")
            for value, words in choices.items():
                ET.SubElement(parent, "Choice", value=words, alias=value)
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def instructions_text(task: str, questions: Questions) -> str:
    """Return what raters read first, with what goes into the columns of a sheet."""
    lines = [task.strip(), "", "In a sheet write into the columns of the questions only; leave a cell empty if unsure."]
    for name, (text, choices) in questions.items():
        lines += ["", f"Column {name}: {text}", *(f"  {value}  {words}" for value, words in choices.items())]
        lines += [f"  Put {BETWEEN} between several."] if name in SEVERAL else []
    return "\n".join(lines) + "\n"


def _export(path: Path, rater: str) -> Responses:
    """Yield each submitted annotation of a project's JSON export."""
    for number, task in enumerate(read_json(path, list, expected='[{"data": ..., "annotations": [...]}]'), 1):
        where = f"{path}: task {task.get('id', number) if isinstance(task, dict) else number}"
        try:
            item, data = checks.text("item", task["data"]["item"]), task["data"]
            for own in task["annotations"]:
                if not own.get("was_cancelled"):
                    by = own["completed_by"]
                    words = dict[str, list[str]]()
                    for part in own.get("result") or ():
                        given = part["value"].get("choices", part["value"].get("text", ()))
                        words.setdefault(part["from_name"], []).extend([given] if isinstance(given, str) else given)
                    yield where, item, f"{rater or 'LS'}{int(by['id'] if isinstance(by, dict) else by)}", data, words
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            why = f"not as Label Studio exports a project ({type(error).__name__}: {error})"
            raise RecordError(f"{where}: {why}. Export it as JSON, not as JSON-MIN or CSV.") from error


def _sheet(path: Path, rater: str, questions: Questions) -> Responses:
    """Yield each row of a filled sheet."""
    if not rater.strip():
        raise RecordError(f"{path}: a sheet does not say who filled it. Name the rater: --rater A1.")
    for number, row in enumerate(read_csv(path).to_dict("records"), 2):
        if missing := [name for name in ("item", *questions) if name not in row]:
            raise RecordError(f"{path}: columns {missing} are missing; it has {list(row)}. Keep the sheet's columns.")
        if any(str(cell).strip() for cell in row.values()):
            words = {name: row[name].split(BETWEEN) if name in SEVERAL else [row[name]] for name in questions}
            yield f"{path}: row {number}", row["item"].strip(), rater, row, words


def _answers(where: str, words: Words, questions: Questions, text: str) -> dict[str, tuple[str, ...]]:
    """Return answers as values of choices; refuse those that were not offered, and evidence that is not in the text."""
    answers = {}
    for name, (_, choices) in questions.items():
        known = {word.lower(): value for value, words in choices.items() for word in (words, value)}
        own = [checks.text(f"{where}: {name}", word).strip() for word in words.get(name, ())]
        if name == "evidence":  # Label Studio writes line ends as backslash and n
            own = [word if word in text else word.replace("\\n", "\n") for word in own]
        given = tuple(known.get(word.lower(), word) for word in own if word)
        wrong = [word for word in given if word not in (choices or (text if name == "evidence" else word))]
        if wrong or (len(given) > 1 and name not in SEVERAL):
            expected = f"one of {', '.join(choices)}" if choices else "words of the text"
            raise RecordError(f"{where}: {', '.join(given)} for {name!r}, expected {expected}, or nothing. Correct it.")
        if given:
            answers[name] = given
    return answers


def import_people(results: Path, key: Path, rater: str = "") -> dict[str, pa.Table]:
    """Return the tables of what people answered, as judges write them.

    Args:
        results: JSON export of Label Studio ("JSON", not "JSON-MIN"), or a filled sheet (`.csv`); tasks may be in any
            order or missing.
        key: `key.json` that was written with the tasks.
        rater: Who filled a sheet. In Label Studio each rater is this word ("LS" without one) and the number that they
            have there; names and addresses are not read.

    Returns:
        Name of a Parquet file -> its rows. What a rater left open has the status "not rated"; tasks that a rater did
        not see have no rows.

    Raises:
        StorageError: A file cannot be read.
        RecordError: Not such files, a task is not in the key or its texts were edited, a rater answered a task twice,
            an answer was not offered, or nobody answered one; the message names the task.
    """
    try:
        record = read_json(key, dict)
        kind = KINDS[checks.one_of("kind of tasks", record["kind"], KINDS)]
        texts, facts = ({id: dict(own[part]) for id, own in record["items"].items()} for part in ("texts", "about"))
        questions = {name: (text, dict(choices)) for name, (text, choices) in record["questions"].items()}
    except (LookupError, AttributeError, TypeError, ValueError) as error:
        raise RecordError(f"{key}: not the key of tasks ({error!r}). Give the key.json written with them.") from error
    answered: dict[tuple[str, str], Answers] = {}
    sheet = results.suffix.lower() == ".csv"
    for where, item, by, data, words in _sheet(results, rater, questions) if sheet else _export(results, rater):
        if item not in texts:
            raise RecordError(f"{where}: item {item!r} is not in the key. Give the key written with the tasks.")
        for name, text in texts[item].items():
            if str(data.get(name)).split() not in (text.split(), neutral(text).split()):
                was, given = checks.shown(text), checks.shown(data.get(name))
                raise RecordError(f"{where}: {name} is {given}, expected {was}. The task was edited; restore it.")
        if (item, by) in answered:
            raise RecordError(f"{where}: {by} answered it twice. Keep one, and export again.")
        answered[item, by] = _answers(where, words, questions, list(texts[item].values())[-1])
    if not any(answered.values()):
        why = "Empty and cancelled annotations, and predictions, do not count."
        raise RecordError(f"{results}: nobody answered one of its tasks. {why}")
    rows: dict[str, list[Facts]] = {name: [] for name in kind.tables}
    reflected: dict[tuple[str, str], Facts] = {}
    for item, by in sorted(answered, key=lambda own: facts[own[0]].get("copy", 1)):
        about, answers = facts[item] | {"rater": by, "annotator": by}, answered[item, by]
        table = "flaws.repeats" if about.get("copy") == 2 else next(iter(rows))
        for row in kind.rows(about, answers):
            status = row.get("status") or ("not rated" if row[kind.column] is None else "ok")
            rows[table].append(about | row | {"status": status, "comment": " ".join(answers.get("comment", ()))})
        # Answers to a pair's second copy say what the first left open.
        own = reflected.setdefault((by, about.get("pair_id", item)), about | {"comment": "", "reflected": None})
        own["reflected"] = own["reflected"] or next(iter(answers.get("edit_reflected", ())), None)
        own["comment"] = " | ".join(filter(None, [own["comment"], *answers.get("comment", ())]))
    if "flaws.reflected" in rows:
        rows["flaws.reflected"] = list(reflected.values())
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
    missing = {name: [row.get("status") for row in own.to_pylist()].count("not rated") for name, own in tables.items()}
    lines = [f"{name}.parquet: {table.num_rows} rows, {missing[name]} not rated" for name, table in tables.items()]
    return "\n".join(lines).replace(", 0 not rated", "")
