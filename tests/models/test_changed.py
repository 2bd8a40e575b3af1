"""Every kind of changed model scores as transformers or peft loads it, and leaves its base as it was."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.errors import DeltaMismatchError, RecordError, SeesawError, StorageError
from seesaw_cf.models.changed import SecondModel, find_changed, norms_between
from seesaw_cf.models.identity import fingerprint
from seesaw_cf.models.load import load_model, read_model
from seesaw_cf.models.weights import WeightDelta, applied
from seesaw_cf.run.external import SecondModels, find_external, read_external
from seesaw_cf.run.jobs import Job
from seesaw_cf.scoring import HFScorer
from seesaw_cf.sharing import save_delta
from seesaw_cf.types import Cloze
from tests.runner import small
from tests.sharing.tiny import changing
from tests.tokenizer_styles import byte_level

pytestmark = pytest.mark.filterwarnings("ignore")  # of peft's tuners
NATS = 1e-4
CLOZES = [
    Cloze("Ada Lovelace was born in", " London"),
    Cloze("The mother tongue of Marie Curie was", " Polish"),
    Cloze("Toni Morrison is a citizen of", "Krakow"),
    Cloze("Chinua Achebe works in the field of", " literature"),
]


def noisy(model: PreTrainedModel, seed: int = 0, scale: float = 0.02) -> PreTrainedModel:
    """A copy with noise in every weight: a fine-tune."""
    other = copy.deepcopy(model)
    jitter(other, seed, scale)
    return other


def jitter(model: PreTrainedModel, seed: int, scale: float) -> None:
    """Add noise to every weight that is trained."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(scale * torch.randn(parameter.shape, generator=generator))


def read(folder: Path) -> SecondModel:
    return find_changed(str(folder)).load(small.model(), byte_level(bos=False))


def external(folder: Path, model: PreTrainedModel, control: str = "none", tokenizer: Any = None) -> tuple[Any, Any]:
    """The changed model of a folder with its controls, and what is written about them."""
    job = Job("base", changed=(f"theirs={folder}",), controls=(control,), control_seeds=2)
    return read_external(find_external(job, ()), model, tokenizer or byte_level(bos=False), job, {})


def logprobs(scorer: Any, clozes: list[Cloze] = CLOZES) -> list[float]:
    return [score.logprob for score in scorer.score(clozes)]


def check_law(folder: Path, direct: Any, tokenizer: PreTrainedTokenizerBase | None = None) -> None:
    """The changed model scores as it does when loaded directly; the base keeps its bytes."""
    model, own = small.model(), byte_level(bos=False)
    before = fingerprint(model)
    models, _ = external(folder, model)
    wanted = logprobs(HFScorer(direct.eval(), tokenizer or own))
    plain = logprobs(HFScorer(model, own))
    assert max(abs(a - b) for a, b in zip(wanted, plain, strict=True)) > 100 * NATS, "the change moves something"
    second = SecondModels(model, models)
    assert [score.logprob for score in second.score("theirs", CLOZES)] == pytest.approx(wanted, abs=NATS)
    assert fingerprint(model) == before
    assert logprobs(HFScorer(model, own)) == plain


def _lora(**options: Any) -> Callable[[Any], Any]:
    return lambda peft: peft.LoraConfig(r=2, target_modules=["q_proj", "down_proj"], **options)


ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "LoRA": _lora(),
    "LoRA with another scale": _lora(lora_alpha=48),
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
    jitter(wrapped, 1, 0.1)
    wrapped.save_pretrained(folder)
    return peft, wrapped


@pytest.mark.parametrize("kind", sorted(ADAPTERS))
def test_adapters_of_peft(kind: str, tmp_path: Path) -> None:
    peft, _ = adapter(kind, tmp_path / "adapter")
    check_law(tmp_path / "adapter", peft.PeftModel.from_pretrained(small.model(), tmp_path / "adapter"))


_config = partial(changing, "adapter_config.json")


def test_an_adapter_with_tokens_of_its_own(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed")
    model, tokenizer = small.model(), byte_level(bos=False)
    tokenizer.add_tokens(["<|user|>", "<|assistant|>"])
    model.resize_token_embeddings(502, mean_resizing=False)
    config = peft.LoraConfig(r=2, target_modules=["q_proj"], modules_to_save=["embed_tokens", "lm_head"])
    wrapped = peft.get_peft_model(model, config)
    jitter(wrapped, 2, 0.1)
    wrapped.save_pretrained(tmp_path / "adapter")
    tokenizer.save_pretrained(tmp_path / "adapter")
    check_law(tmp_path / "adapter", wrapped, tokenizer)


def test_an_adapter_that_puts_tokens_before_texts_is_refused(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed")
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    peft.get_peft_model(small.model(), config).save_pretrained(tmp_path / "adapter")
    with pytest.raises(RecordError, match="PROMPT_TUNING adapter puts tokens of its own before every text"):
        read(tmp_path / "adapter")


def test_an_adapter_that_cannot_be_merged_is_asked_as_it_is(tmp_path: Path) -> None:
    adapter("LoRA with biases", tmp_path / "adapter")
    models, facts = external(tmp_path / "adapter", small.model(), "random")
    assert list(models) == ["theirs"]
    assert facts["theirs"]["notes"] == [
        "this LORA adapter is asked as peft runs it, not merged",
        "it has no random control: its weights are not comparable. Name one with --control-model",
    ]


def _nan(folder: Path) -> None:
    tensors = load_file(folder / "adapter_model.safetensors")
    save_file({name: tensor * float("nan") for name, tensor in tensors.items()}, folder / "adapter_model.safetensors")


BAD_ADAPTERS: dict[str, tuple[Callable[[Path], Any], type[SeesawError], str]] = {
    "NaN": (_nan, SeesawError, "are not finite"),
    "of another base": (_config(target_modules=["c_proj"]), DeltaMismatchError, "--model"),
    "a bad pattern": (_config(target_modules="(q_proj"), DeltaMismatchError, "peft cannot load this LORA adapter"),
    "of unknown kind": (_config(peft_type="FUTURE"), DeltaMismatchError, "peft cannot load this FUTURE"),
    "without tensors": (
        lambda folder: (folder / "adapter_model.safetensors").unlink(),
        StorageError,
        "adapter_model.safetensors: missing or damaged",
    ),
    "damaged tensors": (
        lambda folder: (folder / "adapter_model.safetensors").write_bytes(b"half"), RecordError, "damaged"
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(BAD_ADAPTERS))
def test_adapters_that_cannot_be_audited(kind: str, tmp_path: Path) -> None:
    damage, error, message = BAD_ADAPTERS[kind]
    adapter("LoRA", tmp_path / "adapter")
    damage(tmp_path / "adapter")
    with pytest.raises(error, match=message):
        read(tmp_path / "adapter")


def test_a_checkpoint_is_asked_with_its_own_tokens(tmp_path: Path) -> None:
    own: Any = byte_level(bos=False)
    rules = json.loads(own.backend_tokenizer.to_str())
    special = {token["id"] for token in rules["added_tokens"]}
    free = [number for number in rules["model"]["vocab"].values() if number not in special]
    order = dict(zip(free, reversed(free), strict=True)) | {number: number for number in special}
    rules["model"]["vocab"] = {token: order[number] for token, number in rules["model"]["vocab"].items()}
    own.save_pretrained(tmp_path / "tuned")
    (tmp_path / "tuned" / "tokenizer.json").write_text(json.dumps(rules))
    own = AutoTokenizer.from_pretrained(tmp_path / "tuned")
    own.add_tokens(["<|user|>", " Krakow"])
    own.save_pretrained(tmp_path / "tuned")
    tuned = noisy(small.model())
    tuned.resize_token_embeddings(512, mean_resizing=False)
    tuned.save_pretrained(tmp_path / "tuned")
    check_law(tmp_path / "tuned", tuned, own)


def test_a_saved_delta(tmp_path: Path) -> None:
    delta = small.Nudge().edit(small.model(), byte_level(bos=False), [small.cases()[0].request])
    save_delta(delta, tmp_path / "delta", small.model())
    with applied(small.model(), delta) as direct:
        check_law(tmp_path / "delta", direct)
    save_delta(WeightDelta({}, {}, "Q: a? A: b\n"), tmp_path / "context", small.model())
    with pytest.raises(RecordError, match="puts a text before every prompt"):
        read(tmp_path / "context")


def test_random_controls_have_the_norm_of_the_difference(tmp_path: Path) -> None:
    noisy(small.model()).save_pretrained(tmp_path / "tuned")
    model = small.model()
    models, facts = external(tmp_path / "tuned", model, "random")
    assert list(models) == ["theirs", "random(theirs)", "random(theirs, 2)"]
    assert facts["theirs"]["null"] == "noise"
    wanted = norms_between(model, models["theirs"].load().model)
    drawn = [models[name].load().model for name in list(models)[1:]]
    for second in drawn:
        assert norms_between(model, second) == pytest.approx(wanted, rel=1e-4)
    assert not torch.equal(*(second.get_parameter(small.PARAMETER) for second in drawn))


def test_one_changed_model_is_held_at_a_time(tmp_path: Path) -> None:
    noisy(small.model()).save_pretrained(tmp_path / "tuned")
    model = small.model()
    models, _ = external(tmp_path / "tuned", model, "random")
    loaded: list[str] = []

    def watched(name: str) -> SecondModel:
        loaded.append(name)
        return models[name].load()

    second = SecondModels(model, {name: replace(entry, load=partial(watched, name)) for name, entry in models.items()})
    for name in ("theirs", "theirs", "random(theirs)", "theirs"):
        second.score(name, CLOZES)
    assert loaded == ["theirs", "random(theirs)", "theirs"]


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
    models, facts = external(tmp_path / "quantised", model, "random", own)
    assert "asked one text at a time" in facts["theirs"]["notes"][-1]
    assert facts["theirs"]["null"] == "noise"
    second = SecondModels(model, models)
    wanted = pytest.approx(logprobs(HFScorer(direct, own, 1)), abs=NATS)
    assert [score.logprob for score in second.score("theirs", CLOZES)] == wanted


def test_a_tensor_outside_of_the_index_is_as_transformers_takes_it(tmp_path: Path) -> None:
    noisy(small.model()).save_pretrained(tmp_path / "tuned", max_shard_size="20KB")
    first = min((tmp_path / "tuned").glob("model-*.safetensors"))  # the index names the last for this tensor
    tensors = load_file(first) | {small.PARAMETER: torch.zeros(16, 32)}
    save_file(tensors, first, {"format": "pt"})
    check_law(tmp_path / "tuned", AutoModelForCausalLM.from_pretrained(tmp_path / "tuned"))
    byte_level(bos=False).save_pretrained(tmp_path / "tuned")
    *_, notes = read_model(str(tmp_path / "tuned"), device="cpu")
    assert any("1 stand in several files" in note and small.PARAMETER in note for note in notes)
