"""Agreement with the original authors' programs (../shared/reference/editing_golden, tolerances of its README).

Each run is repeated with its stored hyper-parameters, requests and context templates. Float32 tolerances are what two
correct implementations differ by through C^-1 (condition 1e5 to 4e7); the float64 runs are 100 times tighter and were
rounded to float32 when stored (3e-8). Llama's RMSNorm computes in float32 even in a float64 model, hence 1e-6 there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seesaw_cf.editors.alphaedit import AlphaEdit, AlphaEditConfig
from seesaw_cf.editors.arch import model_parts
from seesaw_cf.editors.emmet import EMMET, EMMETConfig
from seesaw_cf.editors.ft import FT, FTConfig
from seesaw_cf.editors.hooks import untouched
from seesaw_cf.editors.memit import MEMIT, MEMITConfig
from seesaw_cf.editors.moments import second_moments
from seesaw_cf.editors.optimise import optimise
from seesaw_cf.editors.positions import prepare
from seesaw_cf.editors.rome import ROME, ROMEConfig
from seesaw_cf.editors.spread import keys_of
from seesaw_cf.weights import WeightDelta, applied
from tests.golden import reference as golden

DELTA = {"memit": 2e-3, "rome": 2e-3, "r": 2e-3, "p": 2e-3, "orig": 2e-3, "emmet": 5e-3, "alphaedit": 3e-2, "ft": 1e-4}
LOGP = {"memit": 0.03, "rome": 0.03, "r": 0.03, "p": 0.03, "orig": 0.03, "emmet": 0.03, "alphaedit": 0.3, "ft": 1e-4}
QUICK = [
    *((name, method) for name in golden.MODELS for method in ("memit_b8", "rome_r0", "r_rome_r2", "emmet_b8")),
    *((name, method) for name in golden.MODELS for method in ("alphaedit_seq4x2", "ft_targetnew_r1")),
    *(("gpt2", method) for method in ("ft_r0", "ft_b8_bs3", "rome_seq3", "rome_clamp_r0", "rome_nocov_r0")),
    ("gpt2", "emmet_r0_easyedit"),
    ("gptj", "ft_r1"),
    ("llama", "ft_nobos_r1"),
    ("llama", "ft_asis_r0"),
    ("llama", "rome_r5"),  # stops early, at step 11
    ("mistral", "ft_nobos_r0"),
]
GPT, LLAMA = ("gpt2", "gptj"), ("llama", "mistral")
EVERY = [
    *((name, f"rome_{which}") for name in golden.MODELS for which in ("r1", "r2", "r4", "r5", "clamp_r0", "nocov_r0")),
    *((name, method) for name in golden.MODELS for method in ("r_rome_r0", "p_rome_r0", "p_rome_r2")),
    *((name, method) for name in golden.MODELS for method in ("memit_r0", "memit_r1", "emmet_r0")),
    *((name, m) for name in golden.MODELS for m in ("emmet_b8_2layers", "alphaedit_r0", "alphaedit_b8")),
    *((name, "ft_targetnew_b8_bs1") for name in golden.MODELS),
    *((name, method) for name in GPT for method in ("ft_r0", "ft_r1", "ft_b8", "ft_b8_bs3", "rome_seq3")),
    *((name, method) for name in GPT for method in ("orig_rome_r0", "emmet_r0_easyedit")),
    *((name, f"ft_{which}") for name in LLAMA for which in ("nobos_r0", "nobos_r1", "asis_r0")),
    *((name, method) for name in LLAMA for method in ("ft_nobos_b8_bs1", "ft_asis_b8_bs1")),
]
SLOW = [run for run in EVERY if run not in QUICK]
DOUBLE = [
    (name, method)
    for name in ("gpt2", "llama")
    for method in ("memit_b8", "rome_r0", "rome_nocov_r0", "r_rome_r0", "p_rome_r0", "emmet_b8", "alphaedit_seq4x2")
] + [("gpt2", "ft_b8_bs3"), ("gpt2", "rome_seq3"), ("llama", "ft_targetnew_r1")]


@pytest.fixture(scope="module")
def root(reference: Callable[..., Path]) -> Path:
    return reference("editing_golden")


def editor_for(root: Path, name: str, method: str) -> Any:
    """The editor that repeats a stored run."""
    index = golden.read(root / "results" / name / "index.json")[method]
    given = index["hparams"]
    if method.startswith("ft"):
        return FT(
            FTConfig(
                layers=index["layers"],
                learning_rate=given["lr"],
                steps=given["num_steps"],
                weight_decay=given["weight_decay"],
                norm_constraint=given["norm_constraint"],
                batch_size=given.get("batch_size", 1 if "bs1" in method else 64),
                objective="teacher_forced" if "targetnew" in method else "last_token",
                bos_in_target="asis" in method,
            )
        )
    shared = {**golden.shared_settings(root, index), "max_length": golden.MAX_LENGTH[name]}
    corpus = golden.read(root / "corpus.json")
    if "rome" in method:
        consistent = method.startswith("r_rome")
        keys: dict[str, Any] = {"consistent_keys": consistent, "bare_keys": method.startswith("p_rome")}
        return ROME(ROMEConfig(**shared, **keys, use_moments=given["mom2_adjustment"]), corpus)
    if method.startswith("memit"):
        return MEMIT(MEMITConfig(**shared, moment_weight=given["mom2_update_weight"]), corpus)
    if method.startswith("alphaedit"):
        numbers = {"null_threshold": given["nullspace_threshold"], "norm_weight": given["L2"]}
        return AlphaEdit(AlphaEditConfig(**shared, **numbers), corpus)
    numbers = {
        "moment_weight": given["mom2_update_weight"],
        "norm_weight": given["update_norm_lambda"],
        "slack": given["emmet_lambda"],
        "slack_for_one": index["program"] == "easyedit",
    }
    return EMMET(EMMETConfig(**shared, **numbers), corpus)


def repeat(root: Path, name: str, method: str, double: bool = False) -> tuple[WeightDelta, Any, Any, Any]:
    """Runs a stored run again: (delta, arrays, model, tokenizer)."""
    model, tokenizer = golden.load(root, name, double)
    index, arrays = golden.run(root, name, method, double)
    editor = editor_for(root, name, method).fit(model, tokenizer)
    asked = golden.requests(root, index["cases"])
    if "seq4x2" not in method:
        return editor.edit(model, tokenizer, asked), arrays, model, tokenizer
    with contextlib.ExitStack() as stack:
        first = editor.edit(model, tokenizer, asked[:4])
        stack.enter_context(applied(model, first))
        second = editor.remember(model, tokenizer, asked[:4]).edit(model, tokenizer, asked[4:])
    both = {key: first.dense(key) + second.dense(key) for key in first.updates}
    return WeightDelta(both, first.meta), arrays, model, tokenizer


def check(root: Path, name: str, method: str) -> None:
    delta, arrays, model, tokenizer = repeat(root, name, method)
    kind = method.split("_")[0]
    exact = "nocov" in method
    tolerance = 1e-5 if exact else 1e-3 if "bs1" in method else DELTA[kind]
    if any(key.startswith("delta") for key in arrays.files):
        errors = golden.delta_error(delta, arrays)
        assert max(errors.values()) < tolerance, errors
    after = golden.log_probabilities(root, model, tokenizer, delta)
    assert np.abs(after - arrays["logp_post"]).max() < (1e-4 if exact else LOGP[kind])
    if kind == "ft":
        assert golden.error(delta.meta["losses"], arrays["loss_ft"]) < 1e-5


@pytest.mark.parametrize(("name", "method"), QUICK)
def test_float32_run(root: Path, name: str, method: str) -> None:
    check(root, name, method)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), SLOW)
def test_other_float32_run(root: Path, name: str, method: str) -> None:
    check(root, name, method)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), DOUBLE)
def test_float64_run(root: Path, name: str, method: str) -> None:
    delta, arrays, model, tokenizer = repeat(root, name, method, double=True)
    errors = golden.delta_error(delta, arrays)
    assert max(errors.values()) < (1e-7 if name == "gpt2" else 2e-6), errors
    after = golden.log_probabilities(root, model, tokenizer, delta)
    assert np.abs(after - arrays["logp_post"]).max() < (1e-10 if name == "gpt2" else 1e-4)


@pytest.mark.parametrize("name", golden.MODELS)
def test_scores_before_editing(root: Path, name: str) -> None:
    """The log-probabilities of the unedited model: the pairs, the tokenizer and the model are read as meant."""
    model, tokenizer = golden.load(root, name)
    _, arrays = golden.run(root, name, "memit_r0")
    assert np.abs(golden.log_probabilities(root, model, tokenizer) - arrays["logp_pre"]).max() < 1e-5


@pytest.mark.parametrize("name", golden.MODELS)
def test_second_moments(root: Path, name: str) -> None:
    model, tokenizer = golden.load(root, name)
    stored = np.load(root / "results" / name / "second_moments.npz")
    modules = {int(key.split(".")[2]): key.removesuffix("/count") for key in stored.files if key.endswith("/count")}
    parts = model_parts(model)
    corpus = golden.read(root / "corpus.json")
    found = second_moments(parts, tokenizer, sorted(modules), corpus, max_length=golden.MAX_LENGTH[name])
    for layer, module in modules.items():
        moment = found[layer]
        assert moment.n_tokens == stored[f"{module}/count"]
        assert moment.n_texts == len(corpus)
        upper = moment.matrix.numpy()[np.triu_indices(parts.key_size(layer))]
        assert golden.error(upper, stored[f"{module}/upper"]) < 1e-6


@pytest.mark.parametrize("name", golden.MODELS)
@pytest.mark.parametrize("method", ["memit_b8", "rome_r0", "rome_r5"])
def test_positions_keys_values_and_losses(root: Path, name: str, method: str) -> None:
    """Everything before the linear algebra: token positions, keys, v*/z and every loss on the way."""
    model, tokenizer = golden.load(root, name)
    index, arrays = golden.run(root, name, method)
    config = editor_for(root, name, method).config
    parts = model_parts(model)
    asked = golden.requests(root, index["cases"])
    edits = [prepare(model, tokenizer, request, config.context_templates) for request in asked]
    letter = "v" if "rome" in method else "z"
    for number, edit in enumerate(edits):
        places = [row.lookup for row in edit.rows] + [edit.anchor.lookup]
        assert places == arrays[f"{letter}{number}/lookup_idxs"].tolist()
        for row, stored in zip(edit.rows, arrays[f"{letter}{number}/input_ids"]):
            assert list(row.ids) == stored[: len(row.ids)].tolist()
    with untouched(model):
        found = optimise(parts, edits, max(config.layers), config, at="mlp" if letter == "v" else "stream")
        if letter == "z":
            first = min(config.layers)
            assert golden.error(keys_of(parts, edits, first, 4096), arrays[f"layer{first}/K"]) < 1e-6
    for number in range(len(edits)):
        assert golden.error(found.initial[number], arrays[f"{letter}{number}/target_init"]) < 1e-6
        assert golden.error(found.shift[number], arrays[f"{letter}{number}/delta"]) < 2e-4
        # 1e-5 but for one request whose two published-program runs (float32, float64) differ by 1.6e-5 themselves
        assert golden.error(np.array(found.losses[number])[:, 0], arrays[f"loss{number}"][:, 0]) < 5e-5
        assert len(found.losses[number]) == len(arrays[f"loss{number}"])
