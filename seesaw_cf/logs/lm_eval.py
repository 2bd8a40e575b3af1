"""Logs of lm_eval (`--log_samples`): JSONL files with one line per document and filter, and a file of results.

A document's number restarts in every task and is no key alone. `prompt_hash` covers the first request's context only,
which is the same for all items of a task without context. So an item is its number, where all requests are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seesaw_cf.base.text import read_json
from seesaw_cf.logs.log import (
    ItemRow,
    Reader,
    ReadFiles,
    answer_text,
    clean,
    hash_of,
    json_lines,
    log_probability_metrics,
    metric_columns,
    number_of,
    sample_errors,
    start_of,
)

_Json = Mapping[str, Any]
INVALID = "[invalid]"  # the answer of an item whose text held none
# The second form is of before April 2024.
SAMPLES = re.compile(
    r"(?:samples_|pretrained__(?:.*__)?[^_]*_)(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT[\d.:-]+?))?\.jsonl?(?:\.gz)?"
)
# Sums over documents: [log-likelihood, words or bytes] of each; "perplexity" has a log-likelihood alone.
_PERPLEXITIES = re.compile(r".*perplexity|bits_per_\w+")
_NO_METRICS = (
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
)
# Of the results file: setting -> its key, where every task has a value, and keys of `config` that all tasks share.
_BY_TASK = {"version": "versions", "shots": "n-shot"}
_SHARED = {"seeds": ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed"), "generation": ("gen_kwargs",)}
_TEMPLATE = ("chat_template_sha", "system_instruction_sha", "fewshot_as_multiturn")


def is_lm_eval(file: Path) -> bool:
    """Return whether a file is one of samples."""
    return ".json" in file.name and (bool(SAMPLES.fullmatch(file.name)) or b'"doc_id"' in start_of(file))


def read_lm_eval(files: Sequence[Path], reader: Reader) -> ReadFiles:
    """Return the newest samples of every task."""
    runs: dict[str, list[tuple[str, Path, _Json]]] = {}
    for file in files:
        match = SAMPLES.fullmatch(file.name)
        task, date = (match["task"], match["date"] or "") if match else (file.name.partition(".")[0], "")
        results = file.with_name(f"results_{date}.json")
        found = read_json(results, any_number=True) if date and results.is_file() else {}
        runs.setdefault(task, []).append((date, file, found))
    models = {clean(run[2]["model_name"]) for own in runs.values() for run in own if run[2].get("model_name")}
    newest = {task: max(own, key=lambda run: run[:2]) for task, own in runs.items()}
    for task, (_, file, _) in newest.items():
        for _, older, _ in (run for run in runs[task] if run[1] != file):
            reader.notes.append(f"There are several runs of {task}: the newest counts, not {older.name}.")
    settings = {task: _settings(task, results) for task, (_, _, results) in newest.items()}
    rows = (
        row for task, (_, file, results) in newest.items() for row in _rows(task, file, results, settings[task], reader)
    )
    return models, settings, rows


def _settings(task: str, results: _Json) -> dict[str, str]:
    config = results.get("config") or {}
    settings = {name: (results.get(key) or {}).get(task) for name, key in _BY_TASK.items()}
    settings |= {name: [config.get(key) for key in keys] for name, keys in _SHARED.items()} if config else {}
    settings |= {"template": [results.get(key) for key in _TEMPLATE]} if results else {}
    return {name: clean(value) for name, value in settings.items() if value is not None}


def _rows(task: str, file: Path, results: _Json, settings: dict[str, str], reader: Reader) -> Iterator[ItemRow]:
    documents = set[str]()
    for place, line in json_lines(file, reader):
        with sample_errors(place, "a sample of lm_eval with doc_id, metrics and filtered_resps (--log_samples)."):
            row = _row(task, line, reader)
            values = (value for request in _requests(line) for value in request if isinstance(value, dict))
        documents.add(row["item"])
        settings["generation"] = settings.get("generation") or clean(next(values, ""))
        yield row
    effective = (results.get("n-samples") or {}).get(task, {}).get("effective")
    if isinstance(effective, int) and effective > len(documents):
        reader.cut(str(file), f"it holds {len(documents)} of {effective} documents")


def _row(task: str, line: _Json, reader: Reader) -> ItemRow:
    document = line["doc"] if isinstance(line.get("doc"), dict) else {}
    texts = [text for request in _requests(line) for text in request if isinstance(text, str)]
    target, responses, scored_by = line.get("target"), line["filtered_resps"], clean(line.get("filter", "none"))
    names = line.get("metrics") or [name for name in line if name not in _NO_METRICS]
    values = {clean(name): line.get(name) for name in names}
    sums = {name: _sum(name, value) for name, value in values.items() if _PERPLEXITIES.fullmatch(name)}
    sums = {name: (value, weight) for name, (value, weight) in sums.items() if weight > 0}
    metrics = metric_columns({name: value for name, value in values.items() if name not in sums})
    for name, (value, weight) in sums.items():
        metrics |= {f"metric:{name}": -value / weight, f"weight:{name}": weight}
    answer, invalid = "", False
    if _are_logprobs(responses):
        logprobs = [float(response[0]) for response in responses]
        choices = texts[1::2] if len(texts) == 2 * len(logprobs) and len(logprobs) > 1 else []
        if "acc_mutual_info" in values:  # after the choices in their context they were asked alone
            logprobs, choices = logprobs[: len(logprobs) // 2], choices[: len(logprobs) // 2]
        right = _right(target, logprobs, choices, metrics.get("metric:acc"))
        metrics |= log_probability_metrics(logprobs, right)
        answer = choices[_best(logprobs)] if choices else ""
    elif responses and not sums:
        answer = str(responses[0][0] if isinstance(responses[0], list) and responses[0] else responses[0])
        invalid = answer.strip() in ("", INVALID)
    return {
        "task": task if scored_by == "none" else f"{task}/{scored_by}",
        "item": clean(line["doc_id"]),
        "epoch": 1,
        "content": hash_of(*texts, target),
        "case": hash_of(line.get("doc_hash") or document or (*texts, target)),
        "answer": answer_text(answer),
        "invalid": invalid,
        "state": "",
        **metrics,
        **reader.keep(document),
    }


def _requests(line: _Json) -> list[list[object]]:
    """Return what was asked in each request; until July 2024 requests were lists."""
    asked = line.get("arguments") or {}
    requests = asked.values() if isinstance(asked, dict) else asked
    return [list(request.values()) if isinstance(request, dict) else list(request) for request in requests]


def _sum(name: str, value: Any) -> tuple[float, float]:
    """Return the log-likelihood of a document and its words or bytes: 1 where it is logged alone, 0: it is none."""
    value, weight = value if isinstance(value, list) and len(value) == 2 else (value, float(name == "perplexity"))
    nats, weight = number_of(value), number_of(weight)
    return (nats, weight) if nats is not None and weight is not None and nats <= 0 else (0.0, 0.0)


def _right(target: object, logprobs: Sequence[float], choices: Sequence[str], accuracy: float | None) -> int:
    """Return the number of the right choice, which a log gives as a number or as a text that one choice has; else -1.

    Tasks such as WinoGrande ask for one text after several contexts: their target names no choice. "3" may be the
    index of the fourth choice or the text of another: `accuracy` decides, if the model's answer is one of the two.
    """
    if len(logprobs) == 1:
        return 0
    text = str(target)
    named = [number for number, choice in enumerate(choices) if choice.strip() == text.strip()]
    meant = set(named if len(named) == 1 else ())
    if text.isdecimal() and int(text) < len(logprobs):
        meant.add(int(text))
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
