"""Deltas as folders: bit-exact round trip, refusal of other bases, clear words for damage; full checkpoints."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from seesaw_cf.errors import DeltaMismatchError, EditError, RecordError, StorageError
from seesaw_cf.models.weights import LowRank, WeightDelta, applied, digest, parameter_hashes
from seesaw_cf.sharing import load_delta, merge_and_save, save_delta

from .tiny import ARCHITECTURES, VOCABULARY, changing, logits, low_rank_delta, tiny


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_round_trip_is_bit_exact_and_carries_everything(name: str, tmp_path: Path) -> None:
    model = tiny(name)
    delta = low_rank_delta(model, name)
    save_delta(delta, tmp_path / "edit", model)
    back = load_delta(tmp_path / "edit", model)
    assert sorted(path.name for path in (tmp_path / "edit").iterdir()) == ["delta.json", "delta.safetensors"]
    for parameter, update in delta.updates.items():
        found = back.updates[parameter]
        assert isinstance(update, LowRank)
        assert isinstance(found, LowRank)
        assert torch.equal(update.left, found.left)
        assert torch.equal(update.right, found.right)
    assert back.meta["editor"] == "memit"
    assert back.meta["config"] == {"layers": [0, 1]}  # JSON has no tuples
    assert back.meta["requests"] == delta.meta["requests"]
    assert back.meta["loss"] == [0.5]
    assert back.meta["base"]["fingerprint"] == digest(parameter_hashes(model))
    with applied(model, delta):
        wanted = logits(model)
    with applied(model, back):
        assert torch.equal(logits(model), wanted)


@settings(max_examples=20, deadline=None)
@given(
    rank=st.integers(1, 4),
    dtype=st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]),
    dense=st.booleans(),
    context=st.text(max_size=20),
)
def test_any_dtype_shape_and_context_survives(
    tmp_path_factory: pytest.TempPathFactory, rank: int, dtype: torch.dtype, dense: bool, context: str
) -> None:
    folder = tmp_path_factory.mktemp("delta") / "edit"
    left, right = torch.randn(5, rank).to(dtype), torch.randn(rank, 7).to(dtype)
    delta = WeightDelta({"a.weight": left @ right if dense else LowRank(left, right)}, {"note": "ü"}, context)
    save_delta(delta, folder)
    back = load_delta(folder)
    assert back.context == context
    assert back.meta == {"note": "ü"}
    assert torch.equal(back.dense("a.weight"), delta.dense("a.weight"))
    assert back.dense("a.weight").dtype == dtype


def test_views_and_transposes_are_stored_by_value(tmp_path: Path) -> None:
    shared = torch.arange(12.0).reshape(3, 4)
    save_delta(WeightDelta({"a": LowRank(shared.T, shared), "b": shared.T}), tmp_path / "edit")
    back = load_delta(tmp_path / "edit")
    assert torch.equal(back.dense("a"), shared.T @ shared)
    assert torch.equal(back.dense("b"), shared.T)


def test_another_base_is_refused_with_both_fingerprints(tmp_path: Path) -> None:
    model, other = tiny("llama"), tiny("llama", seed=5)
    save_delta(low_rank_delta(model, "llama"), tmp_path / "edit", model)
    with pytest.raises(DeltaMismatchError) as caught:
        load_delta(tmp_path / "edit", other)
    assert digest(parameter_hashes(model)) in str(caught.value)
    assert digest(parameter_hashes(other)) in str(caught.value)
    assert "any_base=True" in str(caught.value)
    assert load_delta(tmp_path / "edit", other, any_base=True).updates


def test_an_existing_folder_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "edit").mkdir()
    (tmp_path / "edit" / "thesis.tex").write_text("years of work")
    with pytest.raises(StorageError, match="not an empty folder"):
        save_delta(WeightDelta(), tmp_path / "edit")
    assert (tmp_path / "edit" / "thesis.tex").read_text() == "years of work"


def test_a_failed_save_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="JSON has no form"):
        save_delta(WeightDelta({}, {"odd": object()}), tmp_path / "edit")
    assert list(tmp_path.iterdir()) == []


def _file(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    file = "delta.safetensors"
    return lambda folder: (folder / file).write_bytes(change((folder / file).read_bytes()))


_json = partial(changing, "delta.json")


@pytest.mark.parametrize(
    ("damage", "error", "words"),
    [
        (_file(lambda content: content[:-3]), RecordError, "truncated or was changed"),
        (_file(lambda content: content[:-1] + bytes([content[-1] ^ 1])), RecordError, "truncated or was changed"),
        (lambda folder: (folder / "delta.safetensors").unlink(), StorageError, "Copy the whole folder"),
        (lambda folder: (folder / "delta.json").unlink(), StorageError, "No such file"),
        (lambda folder: (folder / "delta.json").write_text('{"format": '), RecordError, "not JSON"),
        (lambda folder: (folder / "delta.json").write_text("[1]"), RecordError, "Expected an object"),
        (_json(format="other"), RecordError, "Give what save_delta wrote"),
        (_json(format_version=99), RecordError, "install the version of seesaw_cf"),
        (_json(context=None), RecordError, "context is None. The file is damaged"),
        (_json(updates={"x.weight": {"kind": "dense", "shape": [1]}}), RecordError, "do not agree"),
    ],
)
def test_damage_is_named(damage, error, words: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    model = tiny("llama")
    save_delta(low_rank_delta(model, "llama"), tmp_path / "edit", model)
    damage(tmp_path / "edit")
    with pytest.raises(error, match=words):
        load_delta(tmp_path / "edit", model)


def test_a_shape_that_contradicts_the_json_is_named(tmp_path: Path) -> None:
    save_delta(WeightDelta({"a": torch.zeros(2, 3)}), tmp_path / "edit")
    _json(updates={"a": {"kind": "dense", "shape": [3, 2]}})(tmp_path / "edit")
    with pytest.raises(RecordError, match=r"shape \(2, 3\)"):
        load_delta(tmp_path / "edit")


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = {chr(97 + index) if index < 26 else f"t{index}": index for index in range(VOCABULARY)}
    raw = Tokenizer(models.WordLevel(letters, unk_token="a"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="a", pad_token="b")


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_checkpoint_is_the_edited_model(name: str, dtype: torch.dtype, tokenizer: Any, tmp_path: Path) -> None:
    model: Any = tiny(name, dtype=dtype)
    before = digest(parameter_hashes(model))
    delta = low_rank_delta(model, name)
    merge_and_save(model, tokenizer, delta, tmp_path / "edited")
    assert digest(parameter_hashes(model)) == before
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "edited", dtype=dtype).eval()
    with applied(model, delta):
        assert torch.equal(logits(loaded), logits(model))
    assert AutoTokenizer.from_pretrained(tmp_path / "edited")("c d")["input_ids"] == [2, 3]
    assert json.loads((tmp_path / "edited" / "seesaw_cf.json").read_text())["base"]["fingerprint"] == before


def test_a_text_context_has_no_checkpoint(tokenizer: Any, tmp_path: Path) -> None:
    with pytest.raises(EditError, match="a checkpoint holds weights only"):
        merge_and_save(tiny("gpt2"), tokenizer, WeightDelta({}, {}, "Q: a? A: b\n"), tmp_path / "edited")
    assert not (tmp_path / "edited").exists()
