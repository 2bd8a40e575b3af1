"""A small finished run, and raters who answer its tasks in Label Studio or in a sheet."""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.tables import write_table
from seesaw_cf.effects.instruments import ITEMS
from seesaw_cf.texts.tables import EDITS

from .analysis_samples import passages as free_passages
from .coupled import MAIN, RELATED, passages, record

Answer = Callable[[dict[str, Any], str], Sequence[str]]
"""(what un-blinds a task, name of a question) -> values or words."""


def write_run(folder: Path, cases: int = 4, text: str = "", editor: str = "memit") -> Path:
    """A run of so many edits with coupled passages, and pairs of free descriptions; `text` is put into every text."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [record(number) for number in range(1, cases + 1)]
    pq.write_table(pa.Table.from_pylist(records), folder / "records.parquet")
    tables = [passages(records, f"{MAIN} {text}", f"{RELATED} {text}", name) for name in ("none", editor)]
    for number in range(1, cases + 1):
        about = {"case_id": number, "relation": ("P21", "P27")[number % 2]}
        before = {**about, "editor": "none", "phase": "pre", "text": f"Ada Oak is judge {number}. {text}"}
        tables.append(free_passages(before, {**about, "editor": editor, "text": f"Ada Oak is nun {number}. {text}"}))
    write_table(folder / "passages.parquet", pa.concat_tables(tables))
    rows = [
        {"editor": editor, "case_id": number, "relation": ("P21", "P27")[number % 2], "subject": "Ada Oak"}
        | {"target_new": "female", "target_true": "male", "status": "ok", "delta_norm": 1.0, "demonstrations": None}
        for number in range(1, cases + 1)
    ]
    write_table(folder / "edits.parquet", pa.Table.from_pylist(rows, schema=EDITS))
    job = {"data": str(folder / "records.parquet"), "configs": ["coupled_counterfact"]}
    settings = {"generation": "short", "sampling": {"temperature": 0.9, "top_k": 0}, "samples": 1}
    manifest = {"job": job, "model": {"id": "tiny"}, "seed": 0, "settings": settings}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def truth(about: dict[str, Any], question: str) -> Sequence[str]:
    """The text after the edit has more of every flaw; every claim is contradicted by "was born in"; and so on."""
    named = {"edit_reflected": ["yes"], "comment": ["so, so"], "text": ["Marie Curie was born in London."]}
    named |= {"label": ["contradicts"], "evidence": ["was born in"], "modes": ["topic_drift", "spaces"]}
    named |= {item.name: [str(1 + number % 7)] for number, item in enumerate(ITEMS)}
    return named.get(question) or ["B" if about["first"] == "pre" else "A"]


def answer_label_studio(folder: Path, answer: Answer = truth, by: object = 7) -> Path:
    """The export of a project in which one rater answered every task."""
    key, tasks = (json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("key", "tasks"))
    for number, task in enumerate(tasks, 1):
        about = key["items"][task["data"]["item"]]["about"]
        parts = [label_studio_parts(task["data"], name, answer(about, name)) for name in key["questions"]]
        result = [part for own in parts for part in own]
        task |= {"id": number, "annotations": [{"completed_by": by, "result": result}], "predictions": []}
    (folder / "results.json").write_text(json.dumps(tasks), encoding="utf-8")
    return folder / "results.json"


def label_studio_parts(data: dict[str, str], name: str, values: Sequence[str]) -> list[dict[str, Any]]:
    """What Label Studio keeps of the answer to a question."""
    judged = list(data)[-1]
    if name == "evidence":
        starts = [(data[judged].index(words), words) for words in values]
        marks = [{"start": at, "end": at + len(words), "text": words, "labels": [name]} for at, words in starts]
        return [{"from_name": name, "to_name": judged, "type": "labels", "value": mark} for mark in marks]
    kind, part = ("textarea", "text") if name in ("comment", "text") else ("choices", "choices")
    return [{"from_name": name, "to_name": judged, "type": kind, "value": {part: list(values)}}] if values else []


def answer_sheet(folder: Path, answer: Answer = truth) -> Path:
    """The sheet, filled by one rater."""
    key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    with (folder / "sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    for row in rows:
        about = key["items"][row[0]]["about"]
        for question in key["questions"]:
            row[head.index(question)] = " | ".join(answer(about, question))
    return write_rows(folder / "filled.csv", [head, *rows])


def write_rows(file: Path, rows: Sequence[Sequence[str]]) -> Path:
    """A CSV file."""
    with file.open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows(rows)
    return file
