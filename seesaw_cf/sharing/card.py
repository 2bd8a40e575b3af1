"""The model card of a shared edit. Every text that comes from a model or a data set is escaped."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from huggingface_hub import EvalResult, EvalResultEntry, ModelCardData, eval_result_entries_to_yaml

from seesaw_cf.pretrained import EMBEDDED
from seesaw_cf.sharing.evidence import Evidence
from seesaw_cf.types import Estimate

__all__ = ["WARNING", "card", "escaped", "result_entries"]

WARNING = (
    "This repository holds an **edited** language model. The facts it was edited with are **counterfactual**: they are "
    "false on purpose, and were put in to measure what such an edit does to the model's other beliefs, about people of "
    "different race, origin and gender among others. Do not use it as a source of facts and do not deploy it."
)
_SHOWN = 50
_LIBRARY = {"adapter": "peft", "checkpoint": "transformers", "delta": "seesaw_cf"}
_PLAIN = set(" ,-")

_LOADED = {
    "delta": """from huggingface_hub import snapshot_download
from seesaw_cf.weights import WeightDelta, applied

delta = WeightDelta.load(snapshot_download("{repo}"), model)  # refuses another base
with applied(model, delta):
    ...  # the edited model; the weights are restored exactly afterwards
# delta.context is the text to put before every prompt ("" for weight edits)""",
    "adapter": """from peft import PeftModel

edited = PeftModel.from_pretrained(model, "{repo}")""",
    "checkpoint": """from transformers import AutoModelForCausalLM, AutoTokenizer

edited = AutoModelForCausalLM.from_pretrained("{repo}")
tokenizer = AutoTokenizer.from_pretrained("{repo}")""",
}


def escaped(text: object) -> str:
    """Makes any text harmless in Markdown and HTML: all but letters, digits, space, comma and hyphen become entities.

    Control and formatting characters (line ends, direction marks) become spaces.
    """
    out = []
    for char in str(text):
        if char.isalnum() or char in _PLAIN:
            out.append(char)
        else:
            out.append(" " if unicodedata.category(char).startswith(("C", "Z")) else f"&#{ord(char)};")
    return "".join(out)


def card(repo: str, as_: str, facts: Mapping[str, Any], base: str, evidence: Evidence | None) -> str:
    """The text of `README.md`: metadata for the Hub, then what a reader needs.

    Args:
        repo: "org/name" on the Hub.
        as_: "delta", "adapter" or "checkpoint".
        facts: What `seesaw_cf.sharing.deltas.describe` says of the edit.
        base: Name of the base model.
        evidence: What was measured, None when nothing was.
    """
    editor = facts.get("editor") or "unknown"
    data = ModelCardData(
        base_model=None if base in EMBEDDED else base,
        library_name=_LIBRARY[as_],
        model_name=repo.split("/")[-1],
        tags=["model-editing", "counterfactual", "seesaw-cf", escaped(editor)],
        eval_results=_metadata(evidence) or None,
    )
    parts = [
        f"---\n{data.to_yaml()}\n---\n",
        f"# {escaped(repo.split('/')[-1])}\n",
        f"> **Warning.** {WARNING}\n",
        f"## What was edited\n\n{_edited(facts, base)}",
        f"## With what\n\n{_method(facts)}",
        f"## Results\n\n{_results(evidence)}",
        f"## How to load it\n\n```python\n{_loading(repo, as_, base, facts)}\n```\n",
    ]
    return "\n".join(parts)


def _metadata(evidence: Evidence | None) -> list[EvalResult]:
    """The Hub's evaluation-result metadata; numbers that are not finite have no place in it."""
    if evidence is None:
        return []
    known = {name: estimate for name, estimate in evidence.results.items() if math.isfinite(estimate.value)}
    return [
        EvalResult(
            task_type="text-generation",
            dataset_type=evidence.data or "unknown",
            dataset_name=f"SEESAW-CF {evidence.data}".strip(),
            dataset_config=evidence.config or None,
            metric_type="edit_bias" if name.startswith("bias") else "edit_success",
            metric_name=name,
            metric_value=round(estimate.value, 6),
            metric_args={"low": _number(estimate.low), "high": _number(estimate.high), "n": estimate.n},
        )
        for name, estimate in known.items()
    ]


def result_entries(evidence: Evidence | None) -> list[dict[str, Any]]:
    """The same results for `.eval_results/`, the Hub's newer form; it takes Hub data sets only, so else none."""
    if evidence is None or "/" not in evidence.data:
        return []
    return eval_result_entries_to_yaml(
        [
            EvalResultEntry(
                dataset_id=evidence.data,
                task_id=evidence.config or "default",
                value=round(estimate.value, 6),
                notes=f"{name}; 95 % interval {_number(estimate.low)} to {_number(estimate.high)}, n = {estimate.n}",
            )
            for name, estimate in evidence.results.items()
            if math.isfinite(estimate.value)
        ]
    )


def _number(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None


def _label(value: Any) -> str:
    """The name in a target, whether it is a string, an entity or CounterFact's `{"str": ...}`."""
    if isinstance(value, Mapping):
        value = value.get("label", value.get("str", ""))
    return escaped(value or "")


def _edited(facts: Mapping[str, Any], base: str) -> str:
    requests: Sequence[Mapping[str, Any]] = facts.get("requests") or []
    origin = facts.get("base") or {}
    revision = f", revision {escaped(origin['revision'])}" if origin.get("revision") else ""
    lines = [f"Base model: {escaped(base)}{revision}. {len(requests) or 'Unrecorded'} edit request(s):\n"]
    if requests:
        lines += ["| prompt | subject | true (before) | **counterfactual (now)** |", "|---|---|---|---|"]
    for request in requests[:_SHOWN]:
        cells = [escaped(request.get("prompt", "")), escaped(request.get("subject", ""))]
        cells += [_label(request.get("target_true")), _label(request.get("target_new"))]
        lines.append(f"| {' | '.join(cells)} |")
    if len(requests) > _SHOWN:
        lines.append(f"\nand {len(requests) - _SHOWN} more, all in the JSON file of this repository.")
    return "\n".join(lines) + "\n"


def _method(facts: Mapping[str, Any]) -> str:
    lines = [f"Editor: {escaped(facts.get('editor') or 'unknown')}, package seesaw_cf."]
    settings = facts.get("config")
    if isinstance(settings, Mapping):
        lines += ["", "| setting | value |", "|---|---|"]
        lines += [f"| {escaped(key)} | {escaped(value)} |" for key, value in settings.items()]
    used = {key: value for key, value in (facts.get("versions") or {}).items() if value}
    if used:
        lines += ["", "Versions: " + ", ".join(f"{escaped(key)} {escaped(value)}" for key, value in used.items()) + "."]
    return "\n".join(lines) + "\n"


def _results(evidence: Evidence | None) -> str:
    if evidence is None or not evidence.results:
        return "Nothing was measured.\n"
    protocol = f", protocol {escaped(evidence.protocol)}" if evidence.protocol else ""
    lines = [
        f"Measured on {escaped(evidence.data or 'unnamed data')} {escaped(evidence.config)}{protocol}.",
        "The numbers are of all edits that the run made with this editor; this repository holds those listed above.",
        "Efficacy: share of edits whose new target is more likely than the true one.",
        "D: change of p(new) - p(true) for other people who hold the new target, in probability.",
        "",
        "| result | value | 95 % interval | n | clusters |",
        "|---|---|---|---|---|",
    ]
    lines += [_row(name, estimate) for name, estimate in evidence.results.items()]
    return "\n".join(lines) + "\n"


def _row(name: str, estimate: Estimate) -> str:
    span = f"{estimate.low:.4f} to {estimate.high:.4f}" if math.isfinite(estimate.low) else "not available"
    return f"| {escaped(name)} | {estimate.value:.4f} | {span} | {estimate.n} | {estimate.n_clusters} |"


def _loading(repo: str, as_: str, base: str, facts: Mapping[str, Any]) -> str:
    if as_ == "checkpoint":
        return _LOADED[as_].format(repo=repo)
    dtype = str((facts.get("base") or {}).get("dtype") or "float32")
    if base in EMBEDDED:
        first = f'from seesaw_cf.pretrained import load_model\n\nmodel, tokenizer = load_model("{base}")\n'
    else:
        loader = f'AutoModelForCausalLM.from_pretrained("{base}", dtype="{dtype}")'
        first = f"from transformers import AutoModelForCausalLM\n\nmodel = {loader}\n"
    return first + _LOADED[as_].format(repo=repo)
