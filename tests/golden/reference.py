"""Reads the golden arrays of the original authors' programs (../shared/reference/editing_golden, see its README)."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.types import EditRequest, Entity
from seesaw_cf.weights import WeightDelta, applied

MODELS = ("gpt2", "gptj", "llama", "mistral")
MAX_LENGTH = {"gpt2": 64, "gptj": 64, "llama": 64, "mistral": 4096}


@functools.cache
def load(root: Path, name: str, double: bool = False) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    folder = root / "models" / name
    dtype = torch.float64 if double else torch.float32
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=dtype).eval()
    return model, AutoTokenizer.from_pretrained(folder)


@functools.cache
def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def requests(root: Path, cases: Sequence[int]) -> list[EditRequest]:
    rows = read(root / "requests.json")["requests"]
    return [
        EditRequest(
            row["prompt"],
            row["subject"],
            row["relation"],
            Entity(None, row["target_new"]),
            Entity(None, row["target_true"]),
        )
        for row in (rows[case] for case in cases)
    ]


def run(root: Path, name: str, method: str, double: bool = False) -> tuple[dict[str, Any], Any]:
    """The index entry and the arrays of one run."""
    index = read(root / "results" / name / "index.json")[method]
    return index, np.load(root / "results" / name / f"{method}{'.f64' if double else ''}.npz")


def shared_settings(root: Path, index: dict[str, Any]) -> dict[str, Any]:
    """Our names for the hyper-parameters of ROME, MEMIT, EMMET and AlphaEdit runs."""
    given = index["hparams"]
    return {
        "layers": tuple(index["layers"]),
        "learning_rate": given["v_lr"],
        "steps": given["v_num_grad_steps"],
        "weight_decay": given["v_weight_decay"],
        "clamp": given["clamp_norm_factor"],
        "kl_factor": given["kl_factor"],
        "loss_layer": given["v_loss_layer"],
        "context_templates": tuple(read(root / "requests.json")["context_templates"]),
    }


def error(got: Any, expected: Any) -> float:
    """Relative Frobenius difference."""
    got = np.asarray(got.detach().cpu() if isinstance(got, torch.Tensor) else got, dtype=np.float64)
    expected = np.asarray(expected, dtype=np.float64)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


def delta_error(delta: WeightDelta, arrays: Any) -> dict[str, float]:
    """Relative difference of every changed parameter."""
    stored = {key.split("/")[1]: None for key in arrays.files if key.startswith(("delta_lr/", "delta/"))}
    assert set(stored) == set(delta.updates), (set(stored), set(delta.updates))
    return {name: error(delta.dense(name), dense(arrays, name)) for name in stored}


def dense(arrays: Any, name: str) -> np.ndarray[Any, Any]:
    if f"delta/{name}" in arrays.files:
        return np.asarray(arrays[f"delta/{name}"], dtype=np.float64)
    left, right = (arrays[f"delta_lr/{name}/{part}"].astype(np.float64) for part in "AB")
    return np.asarray(left @ right)


def log_probabilities(
    root: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, delta: WeightDelta | None = None
) -> np.ndarray[Any, Any]:
    """Sum over target tokens of log p for the stored pairs, in nats, as the golden README defines it."""
    found = []
    with torch.no_grad(), applied(model, delta or WeightDelta()):
        for pair in read(root / "requests.json")["pairs"]:
            head = tokenizer(pair["prompt"])["input_ids"]
            tail = tokenizer(pair["target"], add_special_tokens=False)["input_ids"]
            logits = model(torch.tensor([head + tail])).logits[0].double().log_softmax(-1)
            found.append(sum(float(logits[len(head) - 1 + k, token]) for k, token in enumerate(tail)))
    return np.array(found)
