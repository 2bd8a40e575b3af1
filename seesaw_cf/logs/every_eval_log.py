"""Logs of Every Eval Ever: `_samples.jsonl`, a line per item, metric and filter, and a file of results beside it.

Conversion loses group fields and log-probabilities. Groups come back with a mapping file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seesaw_cf.base.text import read_json
from seesaw_cf.logs.log import (
    INVALID,
    EvalLog,
    ItemRow,
    LogSettings,
    Reader,
    answer_text,
    clean,
    hash_of,
    json_lines,
    model_of,
    number_of,
    sample_errors,
)


def read_every_eval(place: Path, files: Sequence[Path], reader: Reader) -> EvalLog:
    """Return the samples of one model.

    Args:
        place: What the user named.
        files: Samples files.
        reader: See `Reader`.

    Raises:
        RecordError: A line is no sample, a file is cut, or the files are of several models.
        StorageError: A file cannot be read.
    """
    names, settings = set[str](), LogSettings()
    for file in files:
        results = file.with_name(file.name.partition("_samples.jsonl")[0] + ".json")
        if results.is_file():
            settings |= _settings(read_json(results, any_number=True))
    rows = (row for file in files for row in _rows(file, names, reader))
    log = reader.log(place.name, rows, settings)
    return replace(log, name=model_of(place, names))


def _settings(results: Mapping[str, Any]) -> LogSettings:
    settings = {}
    for result in results.get("evaluation_results", ()):
        config = result.get("generation_config") or {}
        details = config.get("additional_details") or {}
        task = clean(result.get("evaluation_name"))
        settings[task, "generation"] = clean(config.get("generation_args"))
        settings[task, "shots"] = clean(details.get("num_fewshot"))
    return settings


def _rows(file: Path, names: set[str], reader: Reader) -> Iterator[ItemRow]:
    """Yield an item with all its metrics: lines of an item need not follow each other."""
    items: dict[tuple[str, str, int], tuple[ItemRow, dict[str, float]]] = {}
    for place, line in json_lines(file, reader):
        with sample_errors(place, "a sample of Every Eval Ever: `every_eval_ever validate` says what is wrong."):
            row = _row(line)
        names.add(clean(line.get("model_id")).rpartition("/")[2])
        items.setdefault((row.task, row.item, row.epoch), (row, {}))[1].update(row.metrics)
    yield from (replace(row, metrics=metrics) for row, metrics in items.values())


def _row(line: Mapping[str, Any]) -> ItemRow:
    asked, metadata = line["input"], line.get("metadata") or {}
    task, metric = clean(line["evaluation_name"]), clean(line.get("evaluation_result_id") or "score")
    texts = (asked.get("raw"), asked.get("reference"), asked.get("choices"))
    raw = (line.get("output") or {}).get("raw")
    answer = raw[0] if isinstance(raw, list) and raw else raw or ""
    # the format asks for a score also where the model gave no answer
    score = math.nan if line.get("error") else number_of(line["evaluation"]["score"])
    return ItemRow(
        task=task,
        item=clean(line["sample_id"]),
        content=hash_of(*texts),
        metrics={metric.partition(":")[0]: score},
        case=hash_of(metadata.get("doc_hash") or texts),
        answer=answer_text(answer),
        epoch=int(metadata.get("epoch") or 1),
        invalid=answer == INVALID,
    )
