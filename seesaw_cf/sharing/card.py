"""The model card of a shared edit. Every text that comes from a model or a data set is escaped."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from huggingface_hub import EvalResultEntry, ModelCardData, constants, eval_result_entries_to_yaml

from seesaw_cf.base.terminal import markdown_table
from seesaw_cf.base.text import PAPERS, bibtex
from seesaw_cf.models.delta_files import DeltaFacts
from seesaw_cf.models.names import EMBEDDED
from seesaw_cf.models.weights import BaseFacts
from seesaw_cf.records.relations import TASKS
from seesaw_cf.report.levels import LEVELS
from seesaw_cf.report.rows import Row
from seesaw_cf.sharing.evidence import Evidence

SCORES_FILE = "seesaw_cf_scores.jsonl"

WARNING = (
    "This repository holds an **edited** language model. The facts it was edited with are **counterfactual**: they are "
    "false on purpose, and were put in to measure what such an edit does to the model's other beliefs, about people of "
    "different race, origin and gender among others. Do not use it as a source of facts and do not deploy it."
)
_MAX_ROWS = 50
_LIBRARY = {"adapter": "peft", "checkpoint": "transformers", "delta": "seesaw_cf"}
_PLAIN = set(" ,-")

_LOADED = {
    "delta": """from huggingface_hub import snapshot_download
from seesaw_cf.models.weights import applied
from seesaw_cf.sharing import load_delta

delta = load_delta(snapshot_download("{repo}"), model)  # refuses another base
with applied(model, delta):
    ...  # the edited model; the weights are restored exactly afterwards
# delta.context is the text to put before every prompt ("" for weight edits)""",
    "adapter": """from peft import PeftModel

edited = PeftModel.from_pretrained(model, "{repo}")""",
    "checkpoint": """from transformers import AutoModelForCausalLM, AutoTokenizer

edited = AutoModelForCausalLM.from_pretrained("{repo}")
tokenizer = AutoTokenizer.from_pretrained("{repo}")""",
}

_BASE = """from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("{base}", dtype="{dtype}")
"""
_EMBEDDED_BASE = """from seesaw_cf.models.load import load_model

model, tokenizer = load_model("{base}")
"""


def escaped(text: object) -> str:
    """Make any text harmless in Markdown and HTML: all but letters, digits, space, comma and hyphen become entities.

    Control and formatting characters (line ends, direction marks) become spaces.
    """
    out = []
    for char in str(text):
        if char.isalnum() or char in _PLAIN:
            out.append(char)
        else:
            out.append(" " if unicodedata.category(char).startswith(("C", "Z")) else f"&#{ord(char)};")
    return "".join(out)


def card(repo: str, as_: str, facts: DeltaFacts, base: str, evidence: Evidence | None) -> str:
    """Return the text of `README.md`: metadata for the Hub, then what a reader needs.

    Args:
        repo: "org/name" on the Hub.
        as_: "delta", "adapter" or "checkpoint".
        facts: What `seesaw_cf.models.delta_files.describe` returns for the edit.
        base: Name of the base model.
        evidence: What was measured, None when nothing was.
    """
    editor = facts.get("editor") or "unknown"
    data = ModelCardData(
        base_model=None if base in EMBEDDED else base,
        library_name=_LIBRARY[as_],
        model_name=repo.split("/")[-1],
        tags=["model-editing", "counterfactual", "seesaw-cf", escaped(editor)],
    )
    parts = [
        f"---\n{data.to_yaml()}\n---\n",
        f"# {escaped(repo.split('/')[-1])}\n",
        f"> **Warning.** {WARNING}\n",
        f"## What was edited\n\n{_edited(facts, base)}",
        f"## With what\n\n{_method(facts)}",
        f"## Results\n\n{_results(evidence)}",
        f"## How to load it\n\n```python\n{_loading(repo, as_, base, facts)}\n```\n",
        f"## Citation\n\n{_citation(str(editor))}",
    ]
    return "\n".join(parts)


def result_entries(evidence: Evidence | None, repo: str) -> list[dict[str, Any]]:
    """Return results of the edit as the Hub reads them from `.eval_results/`; it takes its own data sets only.

    Args:
        evidence: What was measured about the edit in the repository.
        repo: "org/name" of that repository.

    Returns:
        One entry for each task id with records of the run: what was measured with other records of the
        data set has no task.
    """
    if evidence is None or "/" not in evidence.data:
        return []
    place = f"{constants.ENDPOINT}/{repo}" + f"/blob/main/{SCORES_FILE}" * (evidence.scores is not None)
    entries = []
    for row in evidence.rows:
        task = TASKS[row["task"]] if row["task"] and math.isfinite(row["value"]) else None
        if task and task.config in evidence.config.split(","):
            ends = _interval(row) or row["note"] or "none"
            about = f"{task.meaning}; n {row['n']}; 95 % interval {ends}; config {task.config}"
            entry = EvalResultEntry(
                dataset_id=evidence.data,
                task_id=row["task"],
                value=round(row["value"], 6),
                dataset_revision=evidence.revision or None,
                notes=f"{about}; protocol {evidence.protocol}",
                source_url=place,
                source_name="Score rows of this edit (seesaw_cf)",
            )
            entries.append(entry)
    return eval_result_entries_to_yaml(entries)


def _interval(row: Row) -> str:
    return f"{row['low']:.4f} to {row['high']:.4f}" if math.isfinite(row["low"]) else ""


def _label(value: object) -> str:
    """Return the name in a target, whether it is a string, an entity or CounterFact's `{"str": ...}`."""
    if isinstance(value, Mapping):
        value = value.get("label", value.get("str", ""))
    return escaped(value or "")


def _edited(facts: DeltaFacts, base: str) -> str:
    requests = facts.get("requests") or []
    origin: BaseFacts = facts.get("base") or {}
    revision = f", revision {escaped(origin['revision'])}" if origin.get("revision") else ""
    keys = ("prompt", "subject", "target_true", "target_new")
    rows = [[_label(request.get(key)) for key in keys] for request in requests]
    about = f"Base model: {escaped(base)}{revision}. {len(rows) or 'Unrecorded'} edit request(s):\n\n"
    return about + (_table(["prompt", "subject", "true (before)", "**counterfactual (now)**"], rows) if rows else "")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    more = f"\n\nand {len(rows) - _MAX_ROWS} more, all in the JSON file of this repository."
    return f"{markdown_table(heads, rows[:_MAX_ROWS], left=len(heads))}{more if len(rows) > _MAX_ROWS else ''}\n"


def _method(facts: DeltaFacts) -> str:
    lines = [f"Editor: {escaped(facts.get('editor') or 'unknown')}, package seesaw_cf."]
    settings = facts.get("config")
    if isinstance(settings, Mapping):
        rows = [(escaped(key), escaped(value)) for key, value in settings.items()]
        lines += ["", markdown_table(["setting", "value"], rows, left=2)]
    used = {key: value for key, value in (facts.get("versions") or {}).items() if value}
    if used:
        lines += ["", "Versions: " + ", ".join(f"{escaped(key)} {escaped(value)}" for key, value in used.items()) + "."]
    return "\n".join(lines) + "\n"


def _results(evidence: Evidence | None) -> str:
    if evidence is None or not evidence.rows:
        return "Nothing was measured.\n"
    protocol = f", protocol {escaped(evidence.protocol)}" if evidence.protocol else ""
    at = f" at commit {escaped(evidence.revision)}" if evidence.revision else ""
    lines = [
        f"Measured with {escaped(evidence.data or 'unnamed data')}{at} {escaped(evidence.config)}{protocol}. "
        "Every number is about the edit in this repository alone.",
        "",
        markdown_table(["about", "what", "value", "95 % interval", "n"], list(map(_row, evidence.rows)), left=2),
    ]
    named = dict.fromkeys(row["task"] for row in evidence.rows if row["task"])
    lines += ["", *(f"- `{task}`: {TASKS[task].meaning}." for task in named)]
    if evidence.scores is not None:
        missed = sum(status != "ok" for status in evidence.scores["status"].to_pylist())
        rows = evidence.scores.num_rows
        lines += ["", f"The {rows} score rows behind them are in `{SCORES_FILE}`; {missed} could not be scored."]
    return "\n".join(lines) + "\n"


def _row(row: Row) -> list[str]:
    ends = _interval(row) or escaped(row["note"] or "none")
    about = LEVELS[row["about"], row["true_answer"]][0] if row["about"] != "edited_fact" else "The edited fact"
    about += "" if row["axis"] == "all" else f": {escaped(row['axis'])} {escaped(row['group'])}"
    what = f"{row['what'].replace('_', ' ')}, {row['scale']}" + (f" (`{row['task']}`)" if row["task"] else "")
    return [about, what, f"{row['value']:.4f}", ends, str(row["n"])]


def _citation(editor: str) -> str:
    papers = ("seesaw_cf", editor) if editor in PAPERS else ("seesaw_cf",)
    sentence = "The benchmark, and the method of the edit:" if len(papers) > 1 else "The benchmark:"
    return f"{sentence}\n\n```bibtex\n{bibtex(*papers)}\n```\n"


def _loading(repo: str, as_: str, base: str, facts: DeltaFacts) -> str:
    """Return the program that loads the edit."""
    program = _LOADED[as_].format(repo=repo)
    if as_ == "checkpoint":
        return program
    origin: BaseFacts = facts.get("base") or {}
    load = _EMBEDDED_BASE if base in EMBEDDED else _BASE
    return f"{load.format(base=base, dtype=origin.get('dtype') or 'float32')}\n{program}"
