"""Tasks for people out, and their answers back: everything that `seesaw-cf people` does."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError, SeesawError
from seesaw_cf.base.files import write_new
from seesaw_cf.base.seeds import seed_of
from seesaw_cf.base.text import read_json
from seesaw_cf.texts.people.answers import TABLES, check_response
from seesaw_cf.texts.people.label_studio import config_of, label_studio_tasks, read_export
from seesaw_cf.texts.people.sheet import instructions_text, read_filled, sheet_text
from seesaw_cf.texts.people.tasks import KINDS, REFLECTED, PeopleTask, TaskOptions, TaskQuestion
from seesaw_cf.texts.runs import RunTexts
from seesaw_cf.texts.write.pairs import draw_groups, even_counts

RATER = "LS"
"""Raters of Label Studio are called this and their number there."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What was written.

    Attributes:
        tasks: How many, copies included.
        left_out: Why -> texts without a task.
    """

    tasks: int
    left_out: Mapping[str, int]


def export_people(
    run: Path, kind: str, out: Path, options: TaskOptions, sample: int | None = None, *, overwrite: bool = False
) -> ExportResult:
    """Write tasks for people: tasks.json and config.xml for Label Studio, sheet.csv, instructions.txt, and key.json.

    Args:
        run: A run of `seesaw-cf leme run`; for flaws also passages, rated pairs or a released CSV.
        kind: Name out of `KINDS`.
        out: The folder.
        options: What is asked, and how.
        sample: Only so many texts, drawn evenly over the edited relations; None = all.
        overwrite: Replace files with other content; without it a filled sheet is never lost.

    Raises:
        RecordError: The run has no texts for this kind.
        StorageError: A file cannot be written, or is there with other content.
    """
    own = KINDS[checks.one_of("kind of tasks", kind, KINDS)]
    left_out: Counter[str] = Counter()
    tasks = list(own.tasks(RunTexts(run), options, left_out))
    if not tasks:
        why = "; ".join(f"{count}: {reason}" for reason, count in left_out.items()) or "no such passages"
        raise RecordError(f"{run}: no texts for {kind} ({why}). Expected a run with {own.needs}.")
    chosen = _sampled(tasks, sample, options.seed)
    titles = list(dict.fromkeys(title for task in chosen for title in task.texts))
    titles.sort(key=lambda title: max(list(task.texts).index(title) for task in chosen if title in task.texts))
    fields = {_field(title): title for title in titles}
    items = {
        f"i{seed_of(options.seed, kind, task.name, task.about.get('copy'), *task.texts.values(), bits=64):016x}": task
        for task in chosen
    }
    shown = {id: {name: task.texts.get(title, "-") for name, title in fields.items()} for id, task in items.items()}
    order = random.Random(seed_of(options.seed, "order")).sample(sorted(shown), len(shown))
    shown = {id: shown[id] for id in order}
    questions = [q for q in own.questions(options) if q.name != REFLECTED or "Edit" in titles]
    key = {
        "kind": kind,
        "seed": options.seed,
        "protocol": options.protocol,
        "wording": options.wording.facts(),
        "questions": [asdict(question) for question in questions],
        "items": {id: {"texts": shown[id], "about": items[id].about} for id in order},
    }
    files: list[tuple[Path, bytes | str]] = [
        (out / "tasks.json", _json(list(label_studio_tasks(shown)))),
        (out / "config.xml", config_of(fields, questions)),
        (out / "sheet.csv", b"\xef\xbb\xbf" + sheet_text(list(fields), shown, questions).encode("utf-8")),
        (out / "instructions.txt", instructions_text(own.instructions(options), questions)),
        (out / "key.json", _json(key)),
    ]
    write_new(files, overwrite=overwrite)
    (out / "key.json").chmod(0o600)
    return ExportResult(len(order), left_out)


def _sampled(tasks: Sequence[PeopleTask], sample: int | None, seed: int) -> list[PeopleTask]:
    """Draw texts evenly over the edited relations; all tasks about a drawn text are kept."""
    groups: dict[str, list[str]] = {}
    for task in tasks:
        names = groups.setdefault(task.group, [])
        names += [task.name] if task.name not in names[-1:] and task.about.get("copy") != 2 else []
    if sample is None:
        return list(tasks)
    checks.whole("sample", sample, 1)
    counts = even_counts({name: len(own) for name, own in groups.items()}, sample)
    drawn = set(draw_groups(groups, counts, seed))
    return [task for task in tasks if task.name in drawn]


def _field(title: str) -> str:
    """Return the name of a task's field: "Main passage" -> "main_passage", "Text A" -> "text_A"."""
    return (title[:1].lower() + title[1:]).replace(" ", "_")


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
        kind = checks.one_of("kind of tasks", record["kind"], KINDS)
        entries = {name: checks.instance("item", item, dict) for name, item in record["items"].items()}
        texts, about = ({name: entry[part] for name, entry in entries.items()} for part in ("texts", "about"))
        questions = [_question(question) for question in record["questions"]]
    except (LookupError, AttributeError, TypeError, RecordError) as error:
        reason = error if isinstance(error, SeesawError) else f"{type(error).__name__}: {error}"
        raise RecordError(f"{key}: not the key of tasks ({reason}). Give the key.json written with them.") from error
    if results.suffix.lower() == ".csv":
        if not rater.strip():
            raise RecordError(f"{results}: a sheet does not say who filled it. Name the rater: --rater A1.")
        responses = read_filled(results, texts, questions, rater)
    else:
        responses = read_export(results, texts, rater or RATER)
    for response in responses:
        check_response(response, questions)
    tables = TABLES[kind]([(about[response.item], response) for response in responses])
    return {name: table for name, table in tables if table.num_rows or "." not in name}


def _question(fields: dict[str, Any]) -> TaskQuestion:
    choices = tuple((value, words) for value, words in fields["choices"])
    return TaskQuestion(fields["name"], fields["text"], choices, tuple(fields["help"]), fields["several"])
