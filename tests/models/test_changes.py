"""Every kind of changed model has the log-probabilities of the model loaded directly, and leaves its base as it was."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.editors.controls import ControlConfig
from seesaw_cf.editors.nulls import null_kind, null_of, rounded_again
from seesaw_cf.errors import (
    DeltaMismatchError,
    MissingExtraError,
    RecordError,
    SeesawError,
    StorageError,
    UnsupportedModelError,
)
from seesaw_cf.models.edited import ChangedModel, find_edited
from seesaw_cf.models.identity import fingerprint
from seesaw_cf.models.load import load_model
from seesaw_cf.models.steering import SteeringVector, load_steering
from seesaw_cf.models.weights import WeightDelta, applied
from seesaw_cf.run.external import ExternalModel, read_external
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.requests import Requests
from seesaw_cf.scoring import HFScorer, make_scorer
from seesaw_cf.types import Cloze
from tests.runner import small
from tests.sharing.tiny import changing
from tests.tokenizer_styles import byte_level

pytestmark = pytest.mark.filterwarnings("ignore")  # of peft's tuners
NATS = 1e-4
JOB = Job("base", changed=("theirs=there",), controls=("random",))
CLOZES = [
    Cloze("Ada Lovelace was born in", " London"),
    Cloze("The mother tongue of Marie Curie was", " Polish"),
    Cloze("Toni Morrison is a citizen of", "Krakow"),
    Cloze("Chinua Achebe works in the field of", " literature"),
]


def noisy(model: PreTrainedModel, seed: int = 0, scale: float = 0.02) -> PreTrainedModel:
    """A copy with noise in every weight: a fine-tune."""
    other, generator = copy.deepcopy(model), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(scale * torch.randn(parameter.shape, generator=generator))
    return other


def narrowed(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    torch.nn.Module.to(model, dtype)
    return model


def read(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> ChangedModel:
    checkpoint = find_edited(str(folder))
    checkpoint.check(model)
    return checkpoint.read(model, tokenizer)


def external_of(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> ExternalModel:
    checkpoints = {"theirs": find_edited(str(folder))}
    return read_external(checkpoints, model, tokenizer, JOB, {}, Requests())[0]["theirs"]


def logprobs(scorer: Any, clozes: list[Cloze] = CLOZES) -> list[float]:
    return [score.logprob for score in scorer.score(clozes)]


def check_law(
    folder: Path, direct: Any, tokenizer: PreTrainedTokenizerBase | None = None, clozes: list[Cloze] = CLOZES
) -> None:
    """The changed model scores as it does when loaded directly, by tries too; the base keeps its bytes."""
    model, own = small.model(), byte_level(bos=False)
    before = fingerprint(model)
    changed = external_of(folder, model, own)
    wanted = logprobs(HFScorer(direct.eval(), tokenizer or own), clozes)
    plain = logprobs(HFScorer(model, own), clozes)
    assert max(abs(a - b) for a, b in zip(wanted, plain, strict=True)) > 100 * NATS, "the change moves something"
    for scorer in (HFScorer(model, own), make_scorer(model, own)[0]):
        scores = [score.logprob for score in changed.score(model, scorer, clozes)]
        assert scores == pytest.approx(wanted, abs=NATS)
    assert fingerprint(model) == before
    assert logprobs(HFScorer(model, own), clozes) == plain


# Adapters of peft.


def _lora(**options: Any) -> Callable[[Any], Any]:
    return lambda peft: peft.LoraConfig(r=2, target_modules=["q_proj", "down_proj"], **options)


ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "LoRA": _lora(),
    "DoRA": _lora(use_dora=True),
    "PiSSA": _lora(init_lora_weights="pissa"),
    "LoRA with a whole module": _lora(modules_to_save=["norm"]),
    "LoRA with trained tokens": _lora(trainable_token_indices=[5, 9]),
    "LoRA of parameters": lambda peft: peft.LoraConfig(
        r=2, target_modules=[], target_parameters=["mlp.down_proj.weight"]
    ),
    "LoRA of embeddings": lambda peft: peft.LoraConfig(r=2, target_modules=["embed_tokens"]),
    "IA3": lambda peft: peft.IA3Config(target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]),
    "trainable tokens": lambda peft: peft.TrainableTokensConfig(token_indices=list(range(200, 300))),
    "LoHa": lambda peft: peft.LoHaConfig(r=2, target_modules=["q_proj", "down_proj"]),
    "VeRA": lambda peft: peft.VeraConfig(r=2, target_modules=["down_proj"]),
    "OFT": lambda peft: peft.OFTConfig(
        oft_block_size=4, target_modules=["q_proj", "down_proj"], use_cayley_neumann=False
    ),
    "LoRA with biases": lambda peft: peft.LoraConfig(r=2, target_modules=["q_proj"], lora_bias=True),
    "layer norms": lambda peft: peft.LNTuningConfig(target_modules=["input_layernorm", "norm"]),
}


def adapter(kind: str, folder: Path) -> tuple[Any, Any]:
    """Save an adapter with random numbers; return peft and the adapted model."""
    peft = pytest.importorskip("peft", reason="peft is not installed")
    wrapped = peft.get_peft_model(small.model(), ADAPTERS[kind](peft))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in wrapped.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    wrapped.save_pretrained(folder)
    return peft, wrapped


@pytest.mark.parametrize("kind", sorted(ADAPTERS.keys() - {"LoRA with biases"}))
def test_adapters_of_peft(kind: str, tmp_path: Path) -> None:
    peft, _ = adapter(kind, tmp_path / "adapter")
    direct = peft.PeftModel.from_pretrained(small.model(), tmp_path / "adapter").base_model.model
    check_law(tmp_path / "adapter", direct)


def test_an_adapter_with_tokens_of_its_own(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed")
    model, tokenizer = small.model(), byte_level(bos=False)
    tokenizer.add_tokens(["<|user|>", "<|assistant|>"])
    model.resize_token_embeddings(502, mean_resizing=False)
    config = peft.LoraConfig(r=2, target_modules=["q_proj"], modules_to_save=["embed_tokens", "lm_head"])
    wrapped = peft.get_peft_model(model, config)
    with torch.no_grad():
        for parameter in wrapped.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(2)))
    wrapped.save_pretrained(tmp_path / "adapter")
    tokenizer.save_pretrained(tmp_path / "adapter")
    found = read(tmp_path / "adapter", small.model(), byte_level(bos=False))
    assert "2 were added and 0 are missing: it is asked with its own tokenizer" in found.notes[0]
    check_law(tmp_path / "adapter", wrapped.base_model.model, tokenizer)


_config = partial(changing, "adapter_config.json")


def _nan(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "adapter_model.safetensors")
    save_file({name: tensor * float("nan") for name, tensor in tensors.items()}, folder / "adapter_model.safetensors")


BAD_ADAPTERS: dict[str, tuple[str, Callable[[Path], Any], type[SeesawError], str]] = {
    "NaN in a LoRA": ("LoRA", _nan, RecordError, "numbers that are not finite, so what made it failed"),
    "NaN in a DoRA": ("DoRA", _nan, RecordError, "this adapter holds numbers that are not finite"),
    "of another base": ("DoRA", _config(target_modules=["c_proj"]), DeltaMismatchError, "--model"),
    "with biases for modules without": (
        "LoRA with biases",
        lambda _: None,
        RecordError,
        r"this LORA adapter \(RuntimeError: Impossible to merge .* no bias.*Convert it with peft.convert_to_lora",
    ),
    "of unknown kind": ("DoRA", _config(peft_type="FUTURE"), RecordError, "peft cannot load and merge this FUTURE"),
    "without tensors": (
        "DoRA",
        lambda folder: (folder / "adapter_model.safetensors").unlink(),
        StorageError,
        "adapter_model.safetensors: missing or damaged",
    ),
}


@pytest.mark.parametrize("kind", list(BAD_ADAPTERS))
def test_adapters_that_cannot_be_audited(kind: str, tmp_path: Path) -> None:
    of, damage, error, message = BAD_ADAPTERS[kind]
    adapter(of, tmp_path / "adapter")
    damage(tmp_path / "adapter")
    with pytest.raises(error, match=message):
        read(tmp_path / "adapter", small.model(), byte_level(bos=False))


def test_prompt_tuning_cannot_be_merged(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed")
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    peft.get_peft_model(small.model(), config).save_pretrained(tmp_path / "adapter")
    with pytest.raises(RecordError, match=r"merge this PROMPT_TUNING adapter .*some prompts only cannot be audited"):
        read(tmp_path / "adapter", small.model(), byte_level(bos=False))


def test_an_adapter_for_some_prompts_only_is_not_merged_silently(tmp_path: Path) -> None:
    adapter("LoRA", tmp_path / "adapter")
    _config(alora_invocation_tokens=[7, 8])(tmp_path / "adapter")
    with pytest.raises(RecordError, match="LORA adapter"):
        read(tmp_path / "adapter", small.model(), byte_level(bos=False))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modules_to_save": ["embed_tokens"]}, "has a head or an embedding of its own, but the base ties the two"),
        ({"modules_to_save": ["lm_head"]}, "has a head or an embedding of its own, but the base ties the two"),
        ({"target_modules": ["lm_head"]}, r"one of several modules that share weights \(tied embeddings, .*_word_emb"),
        ({"layer_replication": [[0, 2], [1, 2]]}, "one of several modules that share weights .*layer_replication"),
    ],
)
def test_an_adapter_of_weights_that_the_base_shares_is_refused(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed")
    tied = small.model()
    tied.config.tie_word_embeddings = True
    tied.tie_weights()
    config = peft.LoraConfig(r=2, **{"target_modules": ["q_proj"], **options})
    noisy(peft.get_peft_model(copy.deepcopy(tied), config)).save_pretrained(tmp_path / "adapter")
    with pytest.raises(SeesawError, match=message):
        read(tmp_path / "adapter", tied, byte_level(bos=False))


def test_the_extra_of_an_adapter_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter("DoRA", tmp_path / "adapter")
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'seesaw_cf\[hub\]'"):
        read(tmp_path / "adapter", small.model(), byte_level(bos=False))


# Checkpoints of another dtype, with other tokens.


def test_the_noise_floor_of_a_dtype_is_measured_on_the_base(tmp_path: Path) -> None:
    narrowed(small.model(), torch.bfloat16).save_pretrained(tmp_path / "rounded")
    model, tokenizer = small.model(), byte_level(bos=False)
    checkpoints = {"theirs": find_edited(str(tmp_path / "rounded"))}
    models, facts = read_external(checkpoints, model, tokenizer, JOB, {}, Requests(), CLOZES)
    before, after = (logprobs(HFScorer(narrowed(small.model(), dtype).float(), tokenizer)) for dtype in _DTYPES)
    floor = max(abs(a - b) for a, b in zip(before, after, strict=True))
    match = re.search("moves log-probabilities by up to (.*) nats .99 % of 4 questions", facts["theirs"]["notes"][2])
    assert match
    assert float(match[1]) == pytest.approx(floor, rel=0.1)
    assert facts["theirs"]["null"] == "rounding"
    null = models["random(theirs)"].change
    assert isinstance(null, WeightDelta)
    change = models["theirs"].change
    assert change is not None
    assert null.norms() == pytest.approx(change.norms())


_DTYPES = (torch.float32, torch.bfloat16)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_checkpoints_of_a_narrower_dtype(dtype: torch.dtype, tmp_path: Path) -> None:
    narrowed(noisy(small.model()), dtype).save_pretrained(tmp_path / "tuned")
    found = read(tmp_path / "tuned", small.model(), byte_level(bos=False))
    assert (found.rounded, found.rounding) == (dtype, False)
    assert "every one was rounded, beside what changed" in found.notes[1]
    check_law(tmp_path / "tuned", AutoModelForCausalLM.from_pretrained(tmp_path / "tuned", dtype=torch.float32))


def test_a_base_that_is_only_rounded_has_the_null_of_a_rounding(tmp_path: Path) -> None:
    narrowed(small.model(), torch.bfloat16).save_pretrained(tmp_path / "rounded")
    found = read(tmp_path / "rounded", small.model(), byte_level(bos=False))
    assert (found.rounded, found.rounding) == (torch.bfloat16, True)
    assert "every one was rounded, and nothing else changed" in found.notes[1]
    assert null_kind(found.change, found.rounding) == "rounding"


def shuffled(tokenizer: Any, folder: Path) -> torch.Tensor:
    """Save a tokenizer with the same tokens under other numbers; return old number -> new number."""
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    special = {token["id"] for token in rules["added_tokens"]}
    free = [number for number in rules["model"]["vocab"].values() if number not in special]
    order = dict(zip(free, reversed(free), strict=True)) | {number: number for number in special}
    rules["model"]["vocab"] = {token: order[number] for token, number in rules["model"]["vocab"].items()}
    tokenizer.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(rules))
    return torch.tensor([order[number] for number in range(len(order))])


@pytest.mark.slow
def test_checkpoints_with_reordered_and_more_tokens(tmp_path: Path) -> None:
    tokenizer = byte_level(bos=False)
    order = shuffled(tokenizer, tmp_path / "tuned")
    tuned = noisy(small.model())
    moved: Any = copy.deepcopy(tuned)
    with torch.no_grad():
        for end in (moved.get_input_embeddings(), moved.get_output_embeddings()):
            end.weight[order] = end.weight[: len(order)].clone()
    moved.save_pretrained(tmp_path / "tuned")
    own = AutoTokenizer.from_pretrained(tmp_path / "tuned")
    own.add_tokens(["<|user|>", " Krakow"])
    own.save_pretrained(tmp_path / "tuned")
    moved.resize_token_embeddings(512, mean_resizing=False)
    moved.save_pretrained(tmp_path / "tuned")
    found = read(tmp_path / "tuned", small.model(), tokenizer)
    assert found.vocabulary is not None
    assert (found.vocabulary.added, found.vocabulary.missing) == (2, 0)
    assert found.vocabulary.moved == len(order) - int((order == torch.arange(len(order))).sum()) > 400
    assert isinstance(found.change, WeightDelta)
    for name in ("model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight"):
        wanted = tuned.get_parameter(name) - small.model().get_parameter(name)
        rows = slice(len(order)) if name.startswith("model.embed") else slice(None)
        assert torch.equal(found.change.dense(name)[rows], wanted[rows])
    same = [cloze for cloze in CLOZES if "Krakow" not in cloze.target]
    check_law(tmp_path / "tuned", moved, own, same)
    asked = external_of(tmp_path / "tuned", small.model(), tokenizer).score(small.model(), None, CLOZES)  # type: ignore[arg-type]
    assert [score.status for score in asked] == [
        "ok", "ok", "the changed model's tokenizer cuts this text into other tokens", "ok"
    ]  # fmt: skip


def test_reordered_tokens_that_are_only_rounded_are_asked_with_their_own_tokenizer(tmp_path: Path) -> None:
    model, tokenizer = small.model(), byte_level(bos=False)
    order = shuffled(tokenizer, tmp_path / "rounded")
    model.resize_token_embeddings(len(order), mean_resizing=False)  # every row is a token
    moved: Any = narrowed(copy.deepcopy(model), torch.float16).float()
    with torch.no_grad():
        for end in (moved.get_input_embeddings(), moved.get_output_embeddings()):
            end.weight[order] = end.weight[: len(order)].clone()
    narrowed(copy.deepcopy(moved), torch.float16).save_pretrained(tmp_path / "rounded")
    found = read(tmp_path / "rounded", model, tokenizer)
    assert (found.rounding, found.vocabulary is None) == (True, False)
    own = AutoTokenizer.from_pretrained(tmp_path / "rounded")
    asked = external_of(tmp_path / "rounded", model, tokenizer).score(model, HFScorer(model, tokenizer), CLOZES)
    assert [score.logprob for score in asked] == pytest.approx(logprobs(HFScorer(moved.eval(), own)), abs=NATS)


def test_reordered_rounded_and_padded_is_a_rounding(tmp_path: Path) -> None:
    model, tokenizer = small.model(), byte_level(bos=False)  # with rows of no token
    order = shuffled(tokenizer, tmp_path / "rounded")
    assert len(order) < model.config.vocab_size
    moved: Any = narrowed(copy.deepcopy(model), torch.bfloat16)
    with torch.no_grad():
        for end in (moved.get_input_embeddings(), moved.get_output_embeddings()):
            end.weight[order] = end.weight[: len(order)].clone()
    moved.save_pretrained(tmp_path / "rounded")
    models, facts = read_external(
        {"theirs": find_edited(str(tmp_path / "rounded"))}, model, tokenizer, JOB, {}, Requests()
    )
    assert facts["theirs"]["null"] == "rounding"
    null, change = models["random(theirs)"].change, models["theirs"].change
    assert null is not None
    assert change is not None
    assert null.norms() == pytest.approx(change.norms())


def test_rows_of_padding_are_no_change_of_the_vocabulary(tmp_path: Path) -> None:
    tuned = noisy(small.model())
    tuned.resize_token_embeddings(512, mean_resizing=False)
    tuned.save_pretrained(tmp_path / "tuned")
    found = read(tmp_path / "tuned", small.model(), byte_level(bos=False))
    assert "its embedding has 512 rows, that of the base 500" in found.notes[1]
    check_law(tmp_path / "tuned", tuned)


# Steering vectors.


def vector(layer: int = 1, width: int = 16, **changes: Any) -> SteeringVector:
    direction = torch.randn(width, generator=torch.Generator().manual_seed(3))
    return SteeringVector(layer, changes.pop("direction", direction), changes.pop("strength", 2.0), changes)


def test_steering_vectors(tmp_path: Path) -> None:
    vector().save(tmp_path / "vector")
    direct = small.model()
    direct.model.layers[1].register_forward_hook(lambda _, __, output: output + 2 * vector().direction)
    check_law(tmp_path / "vector", direct)
    again = load_steering(tmp_path / "vector")
    assert torch.equal(again.direction, vector().direction)
    assert again.sha256() == vector().sha256() != vector(strength=3.0).sha256()


def test_a_steered_model_is_as_before_also_after_an_exception() -> None:
    model = small.model()
    with pytest.raises(RuntimeError, match="on purpose"), vector().applied(model):
        raise RuntimeError("on purpose")
    assert not any(block._forward_hooks for block in model.model.layers)


@given(seed=st.integers(0, 99), strength=st.floats(0.1, 9))
def test_null_directions_have_the_length_of_the_vector(seed: int, strength: float) -> None:
    mine = vector(strength=strength)
    null = null_of(mine, null_kind(mine, rounded=False), ControlConfig(seed=seed))
    assert isinstance(null, SteeringVector)
    assert null.norms() == pytest.approx(mine.norms())
    assert torch.equal(null.direction, mine.like(seed).direction)
    assert abs(float(torch.cosine_similarity(null.direction, mine.direction, 0))) < 0.95


@given(seed=st.integers(0, 99))
def test_null_roundings_have_the_error_of_every_weight(seed: int) -> None:
    error = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    null = rounded_again(WeightDelta({"a": error, "b": error[0]}), seed)
    assert torch.equal(null.dense("a").abs(), error.abs())
    assert torch.equal(null.dense("b").abs(), error[0].abs())
    assert not torch.equal(null.dense("a"), error)


_facts = partial(changing, "steering.json")


def _tensor(**tensors: torch.Tensor) -> Callable[[Path], None]:
    from safetensors.torch import save_file

    return lambda folder: save_file(tensors, folder / "steering.safetensors")


BAD_VECTORS: dict[str, tuple[SteeringVector, Callable[[Path], Any], type[SeesawError], str]] = {
    "another width": (
        vector(width=24),
        lambda _: None,
        DeltaMismatchError,
        r"vector: the direction has shape \(24,\), the hidden states of LlamaForCausalLM have \(16,\). Give the model",
    ),
    "no such layer": (
        vector(layer=2), lambda _: None, DeltaMismatchError, "layer is 2, LlamaForCausalLM has blocks 0 to 1"
    ),
    "nothing": (vector(strength=0.0), lambda _: None, RecordError, "this steering vector changes nothing"),
    "not finite": (
        vector(direction=torch.full((16,), math.nan)), lambda _: None, RecordError, "numbers that are not finite"
    ),
    "a list of facts": (vector(), _facts(meta=[1]), RecordError, r"steering.json: meta is \[1\], expected an object"),
    "no layer": (vector(), _facts(layer="1"), RecordError, r"layer is '1' and strength 2.0, expected the number of"),
    "changed": (vector(), _facts(strength=5.0), RecordError, "steering.json says .* A file was changed or cut off"),
    "two tensors": (
        vector(), _tensor(direction=torch.ones(16), b=torch.ones(1)), RecordError, "expected one vector of floating"
    ),
    "a matrix": (vector(), _tensor(direction=torch.ones(1, 16)), RecordError, "expected one vector"),
    "no tensors": (
        vector(), lambda folder: (folder / "steering.safetensors").unlink(), StorageError, "missing or damaged"
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(BAD_VECTORS))
def test_steering_vectors_that_cannot_be_audited(kind: str, tmp_path: Path) -> None:
    mine, damage, error, message = BAD_VECTORS[kind]
    mine.save(tmp_path / "vector")
    damage(tmp_path / "vector")
    with pytest.raises(error, match=message):
        read(tmp_path / "vector", small.model(), byte_level(bos=False))


def test_a_vector_of_another_program_needs_no_hash(tmp_path: Path) -> None:
    vector().save(tmp_path / "vector")
    (tmp_path / "vector" / "steering.json").write_text('{"layer": 1}')
    assert load_steering(tmp_path / "vector").strength == 1.0
    with applied(small.model(), WeightDelta()), load_steering(tmp_path / "vector").applied(small.model()):
        pass


# Quantised checkpoints.


def quantised(method: str, model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Save a model as a quantised checkpoint; return it as transformers loads it."""
    pytest.importorskip("bitsandbytes" if method != "int8 of torchao" else "torchao", reason="not installed")
    from transformers import BitsAndBytesConfig, TorchAoConfig

    config: Any
    if method == "int8 of torchao":
        config = TorchAoConfig(pytest.importorskip("torchao.quantization").Int8WeightOnlyConfig())
    else:
        config = BitsAndBytesConfig(load_in_4bit=method == "4 bit", load_in_8bit=method == "8 bit")
    model.save_pretrained(folder / "base")
    options: dict[str, Any] = {"dtype": torch.float32, "device_map": {"": "cpu"}}
    made = AutoModelForCausalLM.from_pretrained(folder / "base", quantization_config=config, **options)
    made.save_pretrained(folder / "quantised")
    loaded: PreTrainedModel = AutoModelForCausalLM.from_pretrained(folder / "quantised", **options)
    return loaded.eval()


@pytest.mark.parametrize("method", ["4 bit", "8 bit", "int8 of torchao"])
def test_quantised_checkpoints_are_asked_as_transformers_loads_them(method: str, tmp_path: Path) -> None:
    model, own = load_model("seesaw-tiny", device="cpu", progress=False)
    direct = quantised(method, model, tmp_path)
    found = read(tmp_path / "quantised", model, own)
    assert found.rounding
    assert "asked as transformers loads it, one text at a time" in found.notes[0]
    assert all(0 < row["relative"] < 0.4 for row in found.change.meta["moved"])
    scores = external_of(tmp_path / "quantised", model, own).score(model, HFScorer(model, own), CLOZES)
    assert [score.logprob for score in scores] == pytest.approx(logprobs(HFScorer(direct, own, 1)), abs=NATS)


@pytest.mark.parametrize(("method", "package"), [("gptq", "gptqmodel"), ("awq", "gptqmodel"), ("hqq", "hqq")])
def test_what_loads_a_quantised_model_is_named(
    method: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.model().save_pretrained(tmp_path / "model")
    file = tmp_path / "model" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"quantization_config": {"quant_method": method}}))

    def missing(*_: object, **__: object) -> None:
        raise ImportError(f"Loading it requires {package}")

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", missing)
    message = rf"quantised by {method}, and what loads it is not installed .* pip install {package}"
    with pytest.raises(MissingExtraError, match=message):
        read(tmp_path / "model", small.model(), byte_level(bos=False))
    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", lambda *_, **__: 1 / 0)
    with pytest.raises(UnsupportedModelError, match=r"cannot be loaded on cpu .* audit its GGUF file"):
        read(tmp_path / "model", small.model(), byte_level(bos=False))
