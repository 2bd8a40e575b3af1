"""Logs of lm_eval (`--log_samples`): JSONL files with one line per document and filter, and a file of results.

A document's number restarts in every task and is no key alone. `prompt_hash` covers the first request's context only,
which is the same for all items of a task without context. So an item is its number, where all requests are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.logs.log import (
    EvalLog,
    ItemRow,
    Reader,
    answer_text,
    clean,
    hash_of,
    is_number,
    json_lines,
    log_probability_metrics,
    model_of,
    number_of,
    sample_errors,
    start_of,
)

INVALID = "[invalid]"  # the answer of an item whose text held none
SAMPLES = re.compile(r"samples_(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+?))?\.jsonl?(?:\.gz)?")
_OLDER = re.compile(r"pretrained__(?:.*__)?[^_]*_(?P<task>.+)\.jsonl?(?:\.gz)?")  # before April 2024
# Sums over documents: [log-likelihood, words or bytes] of each; "perplexity" has a log-likelihood alone.
_PERPLEXITIES = re.compile(r".*perplexity|bits_per_\w+")
_NO_METRICS = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash"),
    )
)
# Of the results file: setting -> its key, where every task has a value, and keys of `config` that all tasks share.
_BY_TASK = {"version": "versions", "shots": "n-shot"}
_SHARED = {"seeds": ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed"), "generation": ("gen_kwargs",)}
_TEMPLATE = ("chat_template_sha", "system_instruction_sha", "fewshot_as_multiturn")


def is_lm_eval(file: Path) -> bool:
    """Return whether a file is one of samples."""
    return ".json" in file.name and (bool(SAMPLES.fullmatch(file.name)) or b'"doc_id"' in start_of(file))


def read_lm_eval(place: Path, files: Sequence[Path], reader: Reader) -> EvalLog:
    """Return the newest samples of every task.

    Args:
        place: What the user named.
        files: Samples files, of one model.
        reader: See `Reader`.

    Raises:
        RecordError: A line is no sample, a file is cut, or the files are of several models.
        StorageError: A file cannot be read.
    """
    newest: dict[str, tuple[str, Path]] = {}
    models = set[str]()
    for file in files:
        match = SAMPLES.fullmatch(file.name)
        older = _OLDER.fullmatch(file.name)
        task, date = (match["task"], match["date"] or "") if match else (file.name.partition(".")[0], "")
        task = older["task"] if older else task
        if task in newest:
            last, rest = sorted((newest[task], (date, file)))[::-1]
            sizes = [f"{sum(1 for _ in json_lines(run[1], reader)):,} lines" for run in (last, rest)]
            reader.notes.append(
                f"{place} holds several runs of {task}: the newest counts ({sizes[0]}), "
                f"not {rest[1].name} ({sizes[1]})."
            )
        newest[task] = max(newest.get(task, ("", file)), (date, file))
        models |= {clean(name) for name in [_results(file, date).get("model_name")] if name}
    results = {task: _results(file, date) for task, (date, file) in newest.items()}
    settings = {task: _settings(task, result) for task, result in results.items()}
    name = model_of(place, models)
    rows = (row for task, (_, file) in newest.items() for row in _rows(task, file, results[task], settings, reader))
    return reader.log(name, rows, settings)


def _results(samples: Path, date: str) -> JsonObject:
    file = samples.with_name(f"results_{date}.json")
    return cast(JsonObject, read_json(file, any_number=True)) if date and file.is_file() else {}


def _settings(task: str, results: JsonObject) -> dict[str, str]:
    config = cast(JsonObject, results.get("config") or {})
    settings = {name: cast(JsonObject, results.get(key) or {}).get(task) for name, key in _BY_TASK.items()}
    shared = {name: [config.get(key) for key in keys] for name, keys in _SHARED.items()} if config else {}
    template = {"template": [results.get(key) for key in _TEMPLATE]} if results else {}
    return {name: clean(value) for name, value in (settings | shared | template).items() if value is not None}


def _rows(
    task: str, file: Path, results: JsonObject, settings: dict[str, dict[str, str]], reader: Reader
) -> Iterator[ItemRow]:
    documents = set[str]()
    for place, line in json_lines(file, reader):
        with sample_errors(place, "a sample of lm_eval with doc_id, metrics and filtered_resps (--log_samples)."):
            row = _row(task, line, reader)
        documents.add(row.item)
        settings[task]["generation"] = settings[task].get("generation") or _generation(line)
        yield row
    sizes = cast(Mapping[str, Mapping[str, object]], results.get("n-samples") or {}).get(task, {})
    effective = sizes.get("effective")
    if isinstance(effective, int) and effective > len(documents):
        reader.cut(str(file), f"it holds {len(documents)} of {effective} documents")


def _row(task: str, line: Mapping[str, Any], reader: Reader) -> ItemRow:
    document = line["doc"] if isinstance(line.get("doc"), dict) else {}
    texts = [text for request in _requests(line) for text in request if isinstance(text, str)]
    target, responses, scored_by = line.get("target"), line["filtered_resps"], clean(line.get("filter", "none"))
    names = line.get("metrics") or [name for name in line if name not in _NO_METRICS]
    values = {clean(name): line.get(name) for name in names}
    weights = {name: _weight(name, value) for name, value in values.items() if _PERPLEXITIES.fullmatch(name)}
    weights = {name: weight for name, weight in weights.items() if weight > 0}
    metrics = {name: number_of(value) for name, value in values.items() if not isinstance(value, list | dict)}
    for name, weight in weights.items():
        value = values[name]
        metrics[name] = -number_of(value[0] if isinstance(value, list) else value) / weight
    answer, invalid = "", False
    if _are_logprobs(responses):
        logprobs = [float(response[0]) for response in responses]
        choices = texts[1::2] if len(texts) == 2 * len(logprobs) and len(logprobs) > 1 else []
        if "acc_mutual_info" in metrics:  # after the choices in their context they were asked alone
            logprobs, choices = logprobs[: len(logprobs) // 2], choices[: len(logprobs) // 2]
        metrics |= log_probability_metrics(logprobs, _right(target, logprobs, choices, metrics.get("acc")))
        answer = choices[_best(logprobs)] if choices else ""
    elif responses and not weights:
        answer = str(responses[0][0] if isinstance(responses[0], list) and responses[0] else responses[0])
        invalid = answer.strip() in ("", INVALID)
    return ItemRow(
        task=task if scored_by == "none" else f"{task}/{scored_by}",
        item=clean(line["doc_id"]),
        content=hash_of(*texts, target),
        metrics=metrics,
        case=hash_of(line.get("doc_hash") or document or (*texts, target)),
        answer=answer_text(answer),
        fields=reader.keep(document),
        invalid=invalid,
        weights=weights,
        others={name: value for name, value in values.items() if name not in weights and not is_number(value)},
    )


def _requests(line: Mapping[str, Any]) -> list[list[object]]:
    """Return what was asked in each request; until July 2024 requests were lists."""
    asked = line.get("arguments") or {}
    requests = asked.values() if isinstance(asked, dict) else asked
    return [list(request.values()) if isinstance(request, dict) else list(request) for request in requests]


def _weight(name: str, value: object) -> float:
    """Return the words or bytes of a document; 1 where a log-likelihood is logged alone; 0 where it is no such sum."""
    if isinstance(value, list):
        return number_of(value[1]) if len(value) == 2 and number_of(value[0]) <= 0 else 0.0
    return float(name == "perplexity" and number_of(value) <= 0)


def _right(target: object, logprobs: Sequence[float], choices: Sequence[str], accuracy: float | None) -> int:
    """Return the number of the right choice, which a log gives as a number or as a text that one choice has; else -1.

    Tasks such as WinoGrande ask for one text after several contexts: their target names no choice. "3" may be the
    index of the fourth choice or the text of another: `accuracy` decides, if the model's answer is one of the two.
    """
    if len(logprobs) == 1:
        return 0
    named = [number for number, choice in enumerate(choices) if choice.strip() == str(target).strip()]
    meant = set(named if len(named) == 1 else ())
    if str(target).isdecimal() and int(str(target)) < len(logprobs):
        meant.add(int(str(target)))
    if len(meant) == 2 and accuracy is not None:
        meant = {number for number in meant if (number == _best(logprobs)) == (accuracy == 1)}
    return meant.pop() if len(meant) == 1 else -1


def _are_logprobs(responses: Sequence[Any]) -> bool:
    """Return whether responses are pairs of a log-probability and an is-greedy flag; the flag is text on disk."""
    pairs = (isinstance(response, list) and len(response) == 2 for response in responses)
    return bool(responses) and all(pairs) and all(str(response[1]) in ("True", "False") for response in responses)


def _best(scores: Sequence[float]) -> int:
    """Return the index of the largest score, the first of equal ones."""
    return max(range(len(scores)), key=scores.__getitem__)


def _generation(line: Mapping[str, Any]) -> str:
    values = [value for request in _requests(line) for value in request]
    return clean(next((value for value in values if isinstance(value, dict)), ""))
