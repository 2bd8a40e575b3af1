"""Reads the golden arrays of the original authors' programs (../shared/reference/editing_golden, see its README)."""

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.models.weights import WeightDelta, applied
from seesaw_cf.types import EditRequest, Entity

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
    sides = ("target_new", "target_true")
    return [
        EditRequest(row["prompt"], row["subject"], row["relation"], *(Entity(None, row[side]) for side in sides))
        for row in (rows[case] for case in cases)
    ]


def entry(root: Path, name: str, method: str) -> dict[str, Any]:
    """The index entry of a run; skips the test when the set does not have it."""
    index: dict[str, Any] = read(root / "results" / name / "index.json")
    if method not in index:
        pytest.skip(f"this golden set has no run {method} of {name}")
    found: dict[str, Any] = index[method]
    return found


def arrays_of(root: Path, name: str, method: str, double: bool = False) -> tuple[Any, bool]:
    """The arrays of one run: those computed in float64 where asked for and stored, and whether they are."""
    exact = root / "results" / name / f"{method}.f64.npz"
    double = double and exact.exists()
    return np.load(exact if double else root / "results" / name / f"{method}.npz"), double


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


MARGIN = 20.0
"""A limit is the authors' own float32-float64 gap of the very array (results/<model>/tolerances.json) times this.

The gap is one draw of the rounding error of one correct program. Another program, BLAS or CPU makes an error of the
same size and another direction; most lengths agree within a factor of 2, but Adam turns a gradient that is zero but for
rounding into a whole step of either sign, and how many there are differs by more. A wrong formula is far beyond.
"""
STORED = 2.0**-24
"""Relative rounding of an array that is stored in float32, as the results of the float64 runs are."""
_DOUBLE = 2.0**-24
"""What is left of a gap where everything is computed in float64: its rounding over that of float32 is 2^-29, and 2^5
more are left for programs that solve the same system in another way."""


def limit(root: Path, name: str, method: str, array: str, double: bool = False) -> float:
    """How far a correct program may be from a stored array: relative Frobenius difference, nats for log-probabilities.

    Arrays have the names of tolerances.json: "delta/<parameter>", "loss0", "logp_post_max_abs", ... Where both programs
    compute in `double`, norms of Llama and Mistral are still in float32 (transformers casts): there all of it stays.
    Without a gap in the set there is no limit: the test is skipped, with the reason.
    """
    recorded = read(root / "results" / name / "tolerances.json").get(method, {}).get("f64")
    if recorded is None:
        pytest.skip(f"this golden set has no float64 tolerance of the run {method} of {name}")
    logp = array.startswith("logp")
    least = recorded["logp_pre_max_abs"] if logp else STORED
    gap = max(float(recorded[array]), least)
    if double and not _casts(root, name):
        return MARGIN * (gap * _DOUBLE + (0.0 if logp else STORED))
    return MARGIN * gap


def _casts(root: Path, name: str) -> bool:
    return any("RMSNorm" in type(module).__name__ for module in load(root, name)[0].modules())


def error(got: Any, expected: Any) -> float:
    """Relative Frobenius difference."""
    got = np.asarray(got.detach().cpu() if isinstance(got, torch.Tensor) else got, dtype=np.float64)
    expected = np.asarray(expected, dtype=np.float64)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    return float(np.linalg.norm(got - expected) / np.linalg.norm(expected))


def stored_deltas(arrays: Any) -> list[str]:
    """Parameters whose change is stored; some runs keep that of the bias alone, or none, to save space."""
    return list({key.split("/")[1]: None for key in arrays.files if key.startswith(("delta_lr/", "delta/"))})


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
