"""One small evaluation as every harness would log it: items in groups and clusters, answers by a seeded model."""

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["FORMATS", "Item", "Made", "items", "write_log"]

CHOICES = ("yes", "no", "maybe")


@dataclass(frozen=True)
class Item:
    """A question with three choices: log-probabilities of them, None for a text without an answer."""

    number: int
    passage: str
    gender: str
    target: int
    logprobs: tuple[float, float, float]
    invalid: bool = False

    @property
    def best(self) -> int:
        return int(np.argmax(self.logprobs))

    @property
    def right(self) -> float:
        return float(self.best == self.target and not self.invalid)

    @property
    def prompt(self) -> str:
        return f"Passage {self.passage}, question {self.number}:"


def items(n: int = 60, *, seed: int = 0, shift: float = 0.0, only: str = "", invalid: float = 0.0) -> list[Item]:
    """Questions in pairs of one passage; `shift` moves the right answer's log-probability, of one gender or of all."""
    world, own = np.random.default_rng(7), np.random.default_rng(seed)
    made = []
    for number in range(n):
        target, logprobs = int(world.integers(3)), world.normal(-3, 1, 3) + own.normal(0, 0.01, 3)
        gender = ("woman", "man")[number // 2 % 2]
        logprobs[target] += shift if only in ("", gender) else 0.0
        made.append(
            Item(number, f"p{number // 2}", gender, target, tuple(map(float, logprobs)), bool(own.random() < invalid))  # type: ignore[arg-type]
        )
    return made


@dataclass(frozen=True)
class Made:
    """How a log is written."""

    task: str = "quiz"
    model: str = "small"
    shots: int = 0
    version: float = 1.0
    seed: int = 0
    prompt: Callable[[Item], str] = field(default=lambda item: item.prompt)


def _lm_eval(folder: Path, rows: Sequence[Item], made: Made) -> Path:
    place = folder / f"models__{made.model}"
    place.mkdir(parents=True)
    lines = [json.dumps(_lm_eval_line(item, made)) for item in rows]
    (place / f"samples_{made.task}_2026-11-24T13-08-14.300821.jsonl").write_text("\n".join(lines) + "\n")
    results = {
        "model_name": f"models/{made.model}",
        "versions": {made.task: made.version},
        "n-shot": {made.task: made.shots},
        "n-samples": {made.task: {"original": len(rows), "effective": len(rows)}},
        "config": {"random_seed": made.seed, "numpy_seed": 1234, "torch_seed": 1234, "fewshot_seed": 1234},
    }
    (place / "results_2026-11-24T13-08-14.300821.json").write_text(json.dumps(results))
    return folder


def _lm_eval_line(item: Item, made: Made) -> Mapping[str, Any]:
    responses = [[str(value), str(at == item.best)] for at, value in enumerate(item.logprobs)]
    prompt = made.prompt(item)
    asked = {f"gen_args_{at}": {"arg_0": prompt, "arg_1": f" {word}"} for at, word in enumerate(CHOICES)}
    document = {"passage": item.passage, "gender": item.gender, "nothing": None}
    answers = {"resps": [[response] for response in responses], "filtered_resps": responses, "filter": "none"}
    line = {"doc_id": item.number, "doc": document, "doc_hash": f"hash of {item.number}", "target": str(item.target)}
    return line | {"arguments": asked} | answers | {"metrics": ["acc"], "acc": item.right}


def _inspect_document(rows: Sequence[Item], made: Made) -> Mapping[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": made.task, "task_version": made.version, "model": f"hf/{made.model}", "task_args": {}},
        "samples": [_inspect_sample(item, made) for item in rows],
    }


def _inspect_sample(item: Item, made: Made) -> Mapping[str, Any]:
    answer = "" if item.invalid else CHOICES[item.best]
    value = "N" if item.invalid else "C" if item.right else "I"
    sample = {"id": item.number, "epoch": 1, "input": made.prompt(item), "choices": list(CHOICES)}
    fields = {"target": CHOICES[item.target], "metadata": {"passage": item.passage, "gender": item.gender}}
    return sample | fields | {"output": {"completion": answer}, "scores": {"acc": {"value": value, "answer": answer}}}


def _inspect_json(folder: Path, rows: Sequence[Item], made: Made) -> Path:
    folder.mkdir(parents=True)
    (folder / "log.json").write_text(json.dumps(_inspect_document(rows, made)))
    return folder / "log.json"


def _inspect_eval(folder: Path, rows: Sequence[Item], made: Made) -> Path:
    folder.mkdir(parents=True)
    document = dict(_inspect_document(rows, made))
    samples = document.pop("samples")
    with zipfile.ZipFile(folder / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(document))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    return folder / "log.eval"


def _frame(rows: Sequence[Item], made: Made) -> pd.DataFrame:
    names = [{"task": made.task, "item": f"i{item.number}", "prompt": made.prompt(item)} for item in rows]
    return pd.DataFrame(names).assign(
        acc=[item.right for item in rows],
        passage=[item.passage for item in rows],
        gender=[item.gender for item in rows],
    )


def _table(folder: Path, rows: Sequence[Item], made: Made, form: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{made.model}.{form}"
    _frame(rows, made).to_csv(file, index=False) if form == "csv" else _frame(rows, made).to_parquet(file)
    return file


FORMATS: Mapping[str, Callable[[Path, Sequence[Item], Made], Path]] = {
    "lm_eval": _lm_eval,
    "inspect_json": _inspect_json,
    "inspect_eval": _inspect_eval,
    "csv": partial(_table, form="csv"),
    "parquet": partial(_table, form="parquet"),
}


def write_log(folder: Path, rows: Sequence[Item], made: Made | None = None, form: str = "lm_eval") -> Path:
    """Write a log in one of `FORMATS` into a new folder and return what a user would name."""
    return FORMATS[form](folder, rows, made or Made())
