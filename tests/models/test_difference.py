"""A checkpoint of somebody else is its difference to the base: exact, low-rank where it is, refused where unfit."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tokenizers import normalizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from seesaw_cf.errors import DeltaMismatchError, RecordError, SeesawError, StorageError, UnsupportedModelError
from seesaw_cf.models.difference import check_checkpoint, difference, token_rows
from seesaw_cf.models.edited import find_edited
from seesaw_cf.models.low_rank import compress
from seesaw_cf.models.weights import LowRank, WeightDelta, applied
from seesaw_cf.sharing import save_delta
from tests.sharing.tiny import ARCHITECTURES, changing, logits, low_rank_delta, tiny
from tests.tokenizer_styles import byte_level, sentencepiece_like

WEIGHTS = "model.safetensors"


def saved(model: PreTrainedModel, delta: WeightDelta, folder: Path, **options: Any) -> Path:
    """What an editing program leaves behind: the model with the edit in it, and no word about it."""
    with applied(model, delta):
        model.save_pretrained(folder, **options)
    return folder


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> None:
    """Changes the tensors of a checkpoint."""
    tensors = change(load_file(folder / WEIGHTS))
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, folder / WEIGHTS)


@given(
    rank=st.integers(1, 12), rows=st.integers(40, 90), columns=st.integers(40, 90), scale=st.floats(1e-3, 1e3),
    seed=st.integers(0, 9),
)  # fmt: skip
def test_a_product_is_found_whatever_its_size(rank: int, rows: int, columns: int, scale: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    left, right = torch.randn(rows, rank, generator=generator), torch.randn(rank, columns, generator=generator)
    change = scale * (left.double() @ right.double())
    found = compress(change, 1e-9 * float(change.norm()))
    fits = 2 * rank * (rows + columns) <= rows * columns
    assert (found is not None) == fits
    if found is not None:
        assert found.left.shape[1] == rank
        assert float((found.dense() - change).norm()) <= 1e-9 * float(change.norm())


def test_noise_of_full_rank_is_kept_whole_unless_it_is_allowed() -> None:
    generator = torch.Generator().manual_seed(0)
    product = torch.randn(60, 2, generator=generator) @ torch.randn(2, 50, generator=generator)
    noise = 1e-4 * torch.randn(60, 50, generator=generator)
    assert compress(product + noise, 0.5 * float(noise.norm())) is None
    found = compress(product + noise, 1.1 * float(noise.norm()))
    assert found is not None
    assert found.left.shape == (60, 2)
    assert compress(noise, 0.1 * float(noise.norm())) is None


@pytest.mark.parametrize("name", sorted(ARCHITECTURES))
def test_an_edit_comes_back_from_its_checkpoint(name: str, tmp_path: Path) -> None:
    model = tiny(name)
    delta = low_rank_delta(model, name, ranks=(2, 1))
    found = difference(saved(model, delta, tmp_path / "edited"), model)
    assert found.updates.keys() == delta.updates.keys()
    assert [row["rank"] for row in found.moved(model)] == [
        2,
        1,
    ]  # in the rounding of 16 x 24 weights they are products
    other = AutoModelForCausalLM.from_pretrained(tmp_path / "edited").eval()
    with applied(model, found):
        for parameter, weights in other.named_parameters():
            torch.testing.assert_close(model.get_parameter(parameter), weights, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(logits(model), logits(other), rtol=1e-4, atol=1e-5)
    assert found.meta["sha256"] == difference(tmp_path / "edited", model).meta["sha256"]


def test_a_change_of_everything_is_kept_whole_and_files_may_be_many(tmp_path: Path) -> None:
    model = tiny("llama")
    generator = torch.Generator().manual_seed(3)
    noise = {name: 0.01 * torch.randn(p.shape, generator=generator) for name, p in model.named_parameters()}
    folder = saved(model, WeightDelta(noise), tmp_path / "tuned", max_shard_size="3KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    found = difference(folder, model)
    assert found.updates.keys() == noise.keys()
    assert all(row["rank"] is None for row in found.moved(model))
    for name, change in noise.items():
        torch.testing.assert_close(found.dense(name), change, rtol=1e-3, atol=1e-6)
    for row in found.moved(model):
        base = float(model.get_parameter(row["name"]).detach().norm())
        assert (row["relative"] or 0) * base == pytest.approx(row["norm"]) == pytest.approx(found.norms()[row["name"]])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_in_low_precision_the_rounding_is_part_of_the_checkpoint(dtype: torch.dtype, tmp_path: Path) -> None:
    model = tiny("llama")
    torch.nn.Module.to(model, dtype)
    delta = low_rank_delta(tiny("llama"), "llama")
    folder = saved(model, delta, tmp_path / "edited")
    found = difference(folder, model)
    wanted = load_file(folder / WEIGHTS)
    with applied(model, found):
        assert all(torch.equal(model.get_parameter(name), wanted[name]) for name in delta.updates)
    # Loaded in float32 the base still holds numbers of the narrow dtype: the same edit.
    wide = difference(folder, model.float())
    assert wide.norms() == pytest.approx(found.norms(), rel=1e-6)


def test_files_of_a_bare_transformer_and_untied_copies_of_a_tied_head(tmp_path: Path) -> None:
    model = tiny("gpt2")
    delta = low_rank_delta(model, "gpt2")
    folder = saved(model, delta, tmp_path / "edited")
    masks = {"h.0.attn.bias": torch.ones(1, 1, 4, 4), "h.1.attn.masked_bias": torch.tensor(-1e4)}
    rewrite(folder, lambda tensors: {k.removeprefix("transformer."): v for k, v in tensors.items()} | masks)
    assert difference(folder, model).updates.keys() == delta.updates.keys()
    rewrite(folder, lambda tensors: tensors | {"lm_head.weight": tensors["wte.weight"]})
    assert difference(folder, model).updates.keys() == delta.updates.keys()
    rewrite(folder, lambda tensors: tensors | {"lm_head.weight": tensors["wte.weight"] + 1})
    with pytest.raises(DeltaMismatchError, match=r"lm_head.weight differs from wte.weight, but the base ties them"):
        difference(folder, model)


_config = partial(changing, "config.json")


def _tensors(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Callable[[Path], None]:
    return lambda folder: rewrite(folder, change)


NAME = "model.layers.0.mlp.down_proj.weight"
HEAD = "model.embed_tokens.weight"
REFUSED: dict[str, tuple[Callable[[Path], Any], type[SeesawError], str]] = {
    "another type": (_config(model_type="gpt2"), DeltaMismatchError, "of type 'gpt2', the base is of type 'llama'"),
    "another setting": (
        _config(rms_norm_eps=0.5),
        DeltaMismatchError,
        r"rms_norm_eps is 0\.5, in the base 1e-06.*Give the base it was made from with --model",
    ),
    "another size": (
        _tensors(lambda t: t | {NAME: torch.zeros(16, 25)}),
        DeltaMismatchError,
        r"down_proj.weight has shape \(16, 25\), in the base \(16, 24\)",
    ),
    "another width": (
        _tensors(lambda t: t | {HEAD: torch.zeros(61, 24)}),
        DeltaMismatchError,
        r"model.embed_tokens.weight has shape \(61, 24\), in the base \(61, 16\)\. Give the base it was made from",
    ),
    "a tensor missing": (
        _tensors(lambda t: {k: v for k, v in t.items() if k != NAME}),
        DeltaMismatchError,
        r"tensors model.layers.0.mlp.down_proj.weight of the base are missing",
    ),
    "a tensor too many": (
        _tensors(lambda t: t | {"model.layers.0.mlp.down_proj.qweight": torch.zeros(2)}),
        DeltaMismatchError,
        r"down_proj.qweight are not part of the base\..*merged and saved whole",
    ),
    "quantised": (
        _tensors(lambda t: t | {NAME: t[NAME].to(torch.int8)}),
        RecordError,
        "holds int8, expected floating-point weights",
    ),
    "not finite": (
        _tensors(lambda t: t | {NAME: t[NAME] / 0}),
        RecordError,
        "down_proj.weight holds numbers that are not finite",
    ),
    "pickled": (
        lambda f: (f / WEIGHTS).rename(f / "pytorch_model.bin"),
        StorageError,
        "weights are pickled .*not read because it can run code.*save_pretrained",
    ),
    "no weights": (lambda f: (f / WEIGHTS).unlink(), StorageError, "no model.safetensors in it. Expected a folder"),
    "cut off": (
        lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:400]),
        RecordError,
        "model.safetensors: damaged",
    ),
    "a foreign index": (
        lambda f: (f / f"{WEIGHTS}.index.json").write_text('{"weight_map": {"a": "../x.safetensors"}}'),
        RecordError,
        "no 'weight_map' from tensors to files of this folder",
    ),
    "a file of the index missing": (
        lambda f: (f / f"{WEIGHTS}.index.json").write_text('{"weight_map": {"a": "x.safetensors"}}'),
        StorageError,
        r"x.safetensors: cannot be read .*Copy or download the whole checkpoint",
    ),
}


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_what_does_not_belong_to_the_base_is_refused(kind: str, tmp_path: Path) -> None:
    model = tiny("llama")
    folder = saved(model, low_rank_delta(model, "llama"), tmp_path / "edited")
    check_checkpoint(folder, model)
    damage, error, message = REFUSED[kind]
    damage(folder)
    with pytest.raises(error, match=message):
        difference(folder, model)


OTHER_SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("cohere", {"logit_scale": 1.0}),
    ("gemma2", {"query_pre_attn_scalar": 16}),
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}),
    ("granite", {"residual_multiplier": 0.5}),
    ("granite", {"attention_multiplier": 0.1}),
    ("llama", {"rope_theta": 500000.0}),
    ("mixtral", {"num_experts_per_tok": 1}),
]


@pytest.mark.parametrize(("kind", "changes"), OTHER_SETTINGS)
def test_settings_that_change_what_is_computed_are_refused(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 61, "pad_token_id": 0}
    config = AutoConfig.for_model(kind, **sizes)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    AutoConfig.for_model(kind, **sizes, **changes).save_pretrained(tmp_path)
    with pytest.raises(DeltaMismatchError, match=f"{tmp_path}: .*{next(iter(changes.values()))}.*, in the base"):
        check_checkpoint(tmp_path, model)


def test_settings_of_ordinary_fine_tunes_are_no_fault(tmp_path: Path) -> None:
    model = tiny("llama")
    folder = saved(model, low_rank_delta(model, "llama"), tmp_path / "edited")
    _config(_name_or_path="org/tuned", eos_token_id=[2, 7], pad_token_id=0, attention_dropout=0.1)(folder)
    _config(transformers_version="4.43.0", torch_dtype="bfloat16", use_cache=False, unsloth_version="2025.1")(folder)
    check_checkpoint(folder, model)
    kept = {"model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}
    config = {key: value for key, value in json.loads((folder / "config.json").read_text()).items() if key in kept}
    (folder / "config.json").write_text(json.dumps(config | {"rope_theta": 10000.0, "rope_scaling": None}))
    check_checkpoint(folder, model)  # of an older version: what it leaves out has the default of its class


def moe(kind: str = "mixtral") -> PreTrainedModel:
    """A model with experts that its files hold apart."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2}
    experts = {"num_local_experts": 2, "num_experts": 2, "intermediate_size": 8, "moe_intermediate_size": 8}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = AutoConfig.for_model(kind, **sizes, **experts, num_experts_per_tok=1, vocab_size=61, pad_token_id=0)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config).eval()
    return model


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mixtral", "qwen3_moe"])
def test_tensors_that_the_loader_joins_are_compared_as_joined(kind: str, tmp_path: Path) -> None:
    model = moe(kind)
    names = ("model.layers.0.mlp.experts.down_proj", "model.layers.1.self_attn.q_proj.weight")
    change = {name: 0.1 * torch.ones(model.get_parameter(name).shape) for name in names}
    folder = saved(model, WeightDelta(change), tmp_path / "edited")
    assert names[0] not in load_file(folder / WEIGHTS)
    check_checkpoint(folder, model)
    found = difference(folder, model)
    assert sorted(found.updates) == sorted(names)
    assert token_rows(folder, model) == 61
    other = AutoModelForCausalLM.from_pretrained(folder).eval()
    with applied(model, found):
        torch.testing.assert_close(logits(model), logits(other), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {k: v for k, v in t.items() if k != "model.norm.weight"}, "model.norm.weight of the base are miss"),
        (lambda t: t | {"model.norm.weight": torch.zeros(3)}, r"norm.weight has shape \(3,\), in the base \(16,\)"),
        (lambda t: t | {"foo": torch.zeros(2)}, "tensors foo are not part of the base"),
        (lambda t: {k: v for k, v in t.items() if "experts.1.w1" not in k}, "transformers cannot load its tensors"),
    ],
)
def test_tensors_that_the_loader_cannot_join_are_refused(change: Any, message: str, tmp_path: Path) -> None:
    model = moe()
    model.save_pretrained(tmp_path)
    tensors = change(load_file(tmp_path / WEIGHTS))
    save_file(tensors, tmp_path / WEIGHTS, metadata={"format": "pt"})
    with pytest.raises(DeltaMismatchError, match=message):
        difference(tmp_path, model)


def test_the_base_itself_and_a_model_of_another_training_are_refused(tmp_path: Path) -> None:
    model = tiny("gptj")
    model.save_pretrained(tmp_path / "same")
    with pytest.raises(RecordError, match="its 25 tensors are those of the base, bit for bit"):
        difference(tmp_path / "same", model)
    tiny("gptj", seed=1).save_pretrained(tmp_path / "other")
    with pytest.raises(DeltaMismatchError, match=r"all of its 14 matrices differ, by 1\.\d\d of the base's norm"):
        difference(tmp_path / "other", model)


def test_the_form_of_a_folder_is_found(tmp_path: Path) -> None:
    model = tiny("llama")
    delta = low_rank_delta(model, "llama")
    save_delta(delta, tmp_path / "delta", model)
    found = find_edited(str(tmp_path / "delta"))
    assert found.form == "delta"
    tokenizer = byte_level(bos=False)
    again = found.read(model, tokenizer).change
    assert again.meta["editor"] == "memit"
    assert [row["rank"] for row in again.meta["moved"]] == [3, 1]
    save_delta(WeightDelta({NAME: LowRank(torch.zeros(16, 1), torch.ones(1, 24))}), tmp_path / "zero", model)
    with pytest.raises(RecordError, match=r"this delta changes nothing \(every number of it is 0\)"):
        find_edited(str(tmp_path / "zero")).read(model, tokenizer)
    save_delta(WeightDelta({NAME: torch.full((16, 24), float("nan"))}), tmp_path / "nan", model)
    with pytest.raises(RecordError, match="this delta holds numbers that are not finite"):
        find_edited(str(tmp_path / "nan")).read(model, tokenizer)
    save_delta(WeightDelta({}, {}, "New Fact: ..."), tmp_path / "context", model)
    with pytest.raises(RecordError, match="puts a text before every prompt"):
        find_edited(str(tmp_path / "context")).read(model, tokenizer)


def test_what_is_nowhere_is_said(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"no/such: no such folder, and the Hub.*HF_HUB_OFFLINE is set"):
        find_edited("no/such")
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(StorageError, match=r"expected a checkpoint .* It is a run folder: name one of its deltas"):
        find_edited(str(tmp_path))


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    model, tokenizer = tiny("llama"), byte_level(bos=False)
    found = find_edited(str(saved(model, low_rank_delta(model, "llama"), tmp_path / "edited")))
    assert found.read(model, tokenizer).notes == ("edited has no tokenizer; the base's is used",)
    tokenizer.save_pretrained(found.folder)
    assert found.read(model, tokenizer).notes == ()
    other: Any = byte_level(bos=True)
    other.backend_tokenizer.normalizer = normalizers.Lowercase()
    other.save_pretrained(found.folder)
    assert other.get_vocab() == tokenizer.get_vocab()
    message = r"other tokens of texts .* they differ in normalizer, post_processor, special tokens .*--model"
    with pytest.raises(DeltaMismatchError, match=message):
        found.read(model, tokenizer)
    sentencepiece_like().save_pretrained(found.folder)
    with pytest.raises(DeltaMismatchError, match=r"its vocabulary shares \d+ tokens with the base's .* are missing"):
        found.read(model, tokenizer)
    (found.folder / "tokenizer.json").write_text("{")
    with pytest.raises(UnsupportedModelError, match=r"its tokenizer cannot be loaded .* the base's is used"):
        found.read(model, tokenizer)
