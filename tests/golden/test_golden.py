"""Agreement with the original authors' programs (../shared/reference/editing_golden, see its README).

Each run is repeated with its stored hyper-parameters, requests and context templates, in float64: against the authors'
float64 run where it is stored, else against their float32 run. No limit is chosen by hand, see `reference.limit`.
"""

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seesaw_cf.editors.alphaedit import AlphaEdit, AlphaEditConfig
from seesaw_cf.editors.ft import FT, FTConfig
from seesaw_cf.editors.locate.moments import MomentOptions, second_moments
from seesaw_cf.editors.locate.optimise import optimise
from seesaw_cf.editors.locate.positions import prepare
from seesaw_cf.editors.locate.spread import keys_of
from seesaw_cf.editors.memit import EMMET, MEMIT, EMMETConfig, MEMITConfig
from seesaw_cf.editors.rome import ROME, ROMEConfig
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.hooks import frozen
from seesaw_cf.models.weights import WeightDelta, applied
from tests.golden import reference as golden

GPT, LLAMA = ("gpt2", "gptj"), ("llama", "mistral")
FAST = [
    *(("gpt2", m) for m in ("rome_r0", "r_rome_r0", "p_rome_r0", "memit_b8", "emmet_r0_easyedit")),
    *(("gpt2", m) for m in ("ft_r0", "ft_b8_bs3")),
    *(("llama", m) for m in ("rome_nocov_r0", "rome_r5", "emmet_b8", "alphaedit_seq4x2", "ft_nobos_r1", "ft_asis_r0")),
    *((name, m) for name in ("gptj", "mistral") for m in ("rome_nocov_r0", "ft_targetnew_r1")),
]
"""One of each method and setting on a model of each kind."""
EVERY = [
    *((name, f"rome_{which}") for name in golden.MODELS for which in ("r0", "r1", "r2", "r4", "r5", "clamp_r0")),
    *(
        (name, m)
        for name in golden.MODELS
        for m in ("rome_nocov_r0", "r_rome_r0", "r_rome_r2", "p_rome_r0", "p_rome_r2")
    ),
    *((name, m) for name in golden.MODELS for m in ("memit_r0", "memit_r1", "memit_b8")),
    *((name, m) for name in golden.MODELS for m in ("emmet_r0", "emmet_b8", "emmet_b8_2layers")),
    *((name, m) for name in golden.MODELS for m in ("alphaedit_r0", "alphaedit_b8", "alphaedit_seq4x2")),
    *((name, m) for name in golden.MODELS for m in ("ft_targetnew_r1", "ft_targetnew_b8_bs1")),
    *((name, m) for name in GPT for m in ("ft_r0", "ft_r1", "ft_b8", "ft_b8_bs3", "rome_seq3")),
    *((name, m) for name in GPT for m in ("orig_rome_r0", "emmet_r0_easyedit")),
    *((name, f"ft_{m}") for name in LLAMA for m in ("nobos_r0", "nobos_r1", "asis_r0", "nobos_b8_bs1", "asis_b8_bs1")),
]
OTHERS = [run for run in EVERY if run not in FAST]
SINGLE = [("gpt2", "ft_r0"), ("llama", "ft_nobos_r1"), ("gpt2", "rome_nocov_r0"), ("llama", "memit_b8")]
"""Also in float32, as models are edited in practice."""


@pytest.fixture(scope="module")
def root(reference: Callable[..., Path]) -> Path:
    return reference("editing_golden")


def editor_for(root: Path, name: str, method: str) -> Any:
    """The editor that repeats a stored run."""
    index = golden.entry(root, name, method)
    given = index["hparams"]
    if method.startswith("ft"):
        optimiser = {"learning_rate": given["lr"], "steps": given["num_steps"], "weight_decay": given["weight_decay"]}
        loss: Any = {"objective": "teacher_forced" if "targetnew" in method else "last_token"}
        loss |= {"bos_in_target": "asis" in method, "norm_constraint": given["norm_constraint"]}
        batch = given.get("batch_size", 1 if "bs1" in method else 64)
        return FT(FTConfig(layers=index["layers"], batch_size=batch, **optimiser, **loss))
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


def repeat(root: Path, name: str, method: str, double: bool) -> tuple[WeightDelta, Any, Any]:
    """Runs a stored run again: (delta, model, tokenizer)."""
    index = golden.entry(root, name, method)
    model, tokenizer = golden.load(root, name, double)
    editor = editor_for(root, name, method).fit(model, tokenizer)
    asked = golden.requests(root, index["cases"])
    if "seq4x2" not in method:
        return editor.edit(model, tokenizer, asked), model, tokenizer
    with contextlib.ExitStack() as stack:
        first = editor.edit(model, tokenizer, asked[:4])
        stack.enter_context(applied(model, first))
        second = editor.remember(model, tokenizer, asked[:4]).edit(model, tokenizer, asked[4:])
    both = {key: first.dense(key) + second.dense(key) for key in first.updates}
    return WeightDelta(both, first.meta), model, tokenizer


def check(root: Path, name: str, method: str, double: bool) -> None:
    """The change of every stored parameter, the scores after the edit and the losses of fine-tuning."""
    delta, model, tokenizer = repeat(root, name, method, double)
    arrays, exact = golden.arrays_of(root, name, method, double)
    limit = functools.partial(golden.limit, root, name, method, double=exact)
    stored = golden.stored_deltas(arrays)
    assert set(stored) <= set(delta.updates)
    errors = {part: golden.error(delta.dense(part), golden.dense(arrays, part)) for part in stored}
    assert all(errors[part] < limit(f"delta/{part}") for part in stored), errors
    after = golden.log_probabilities(root, model, tokenizer, delta)
    assert np.abs(after - arrays["logp_post"]).max() < limit("logp_post_max_abs")
    if method.startswith("ft"):
        assert golden.error(delta.meta["losses"], arrays["loss_ft"]) < limit("loss_ft")


WEEKLY = pytest.mark.exhaustive
DOUBLE = [*FAST, *(pytest.param(*run, marks=[WEEKLY] if number % 8 else []) for number, run in enumerate(OTHERS))]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), DOUBLE)
def test_run_in_float64(root: Path, name: str, method: str) -> None:
    check(root, name, method, double=True)


@pytest.mark.parametrize(
    ("name", "method"),
    [*SINGLE, *(pytest.param(*run, marks=[pytest.mark.slow, WEEKLY]) for run in EVERY if run not in SINGLE)],
)
def test_run_in_float32(root: Path, name: str, method: str) -> None:
    check(root, name, method, double=False)


@pytest.mark.parametrize("name", golden.MODELS)
def test_scores_before_editing(root: Path, name: str) -> None:
    """The log-probabilities of the unedited model: the pairs, the tokenizer and the model are read as meant."""
    model, tokenizer = golden.load(root, name, True)
    arrays, exact = golden.arrays_of(root, name, "memit_r0", True)
    difference = np.abs(golden.log_probabilities(root, model, tokenizer) - arrays["logp_pre"]).max()
    assert difference < golden.limit(root, name, "memit_r0", "logp_pre_max_abs", exact)


@pytest.mark.slow
@pytest.mark.parametrize("name", golden.MODELS)
def test_second_moments(root: Path, name: str) -> None:
    """Against sums in float32, which are as far from those in float64 as index.json says."""
    model, tokenizer = golden.load(root, name, True)
    stored = np.load(root / "results" / name / "second_moments.npz")
    gaps = golden.read(root / "results" / name / "index.json")["_second_moments"]
    modules = {int(key.split(".")[2]): key.removesuffix("/count") for key in stored.files if key.endswith("/count")}
    parts = model_parts(model)
    corpus = golden.read(root / "corpus.json")
    found = second_moments(parts, tokenizer, sorted(modules), corpus, MomentOptions(max_length=golden.MAX_LENGTH[name]))
    for layer, module in modules.items():
        moment = found[layer]
        assert moment.n_tokens == stored[f"{module}/count"]
        assert moment.n_texts == len(corpus)
        upper = moment.matrix.numpy()[np.triu_indices(parts.key_size(layer))]
        assert golden.error(upper, stored[f"{module}/upper"]) < golden.MARGIN * gaps[module]["rel_f32_vs_f64"]


@pytest.mark.parametrize("name", golden.MODELS)
@pytest.mark.parametrize("method", ["memit_b8", "rome_r0", "rome_r5"])
def test_positions_keys_values_and_losses(root: Path, name: str, method: str) -> None:
    """Everything before the linear algebra: token positions, keys, v*/z and every loss on the way."""
    model, tokenizer = golden.load(root, name, True)
    asked = golden.requests(root, golden.entry(root, name, method)["cases"])
    config = editor_for(root, name, method).config
    parts = model_parts(model)
    edits = [prepare(model, tokenizer, request, config.context_templates) for request in asked]
    letter = "v" if "rome" in method else "z"
    single, _ = golden.arrays_of(root, name, method)
    arrays, exact = golden.arrays_of(root, name, method, True)
    for number, edit in enumerate(edits):
        places = [row.lookup for row in edit.rows] + [edit.anchor.lookup]
        assert places == single[f"{letter}{number}/lookup_idxs"].tolist()
        for row, stored in zip(edit.rows, single[f"{letter}{number}/input_ids"]):
            assert list(row.ids) == stored[: len(row.ids)].tolist()

    def near(got: Any, array: str) -> None:
        own = array in arrays.files  # some arrays are stored by the float32 run alone
        difference = golden.error(got, (arrays if own else single)[array])
        assert difference < golden.limit(root, name, method, array, exact and own), array

    with frozen(model):
        found = optimise(parts, edits, max(config.layers), config, at="mlp" if letter == "v" else "stream")
        if letter == "z":
            first = min(config.layers)
            near(keys_of(parts, edits, first, 4096), f"layer{first}/K")
    for number in range(len(edits)):
        near(found.initial[number], f"{letter}{number}/target_init")
        near(found.shift[number], f"{letter}{number}/delta")
        near(np.array(found.losses[number]), f"loss{number}")
