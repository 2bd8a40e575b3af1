from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from seesaw_cf.errors import StorageError, UnknownNameError, UnsupportedModelError
from seesaw_cf.models.corpus import model_texts, sample_corpus
from seesaw_cf.models.load import load_model
from seesaw_cf.models.names import EMBEDDED, model_path
from seesaw_cf.scoring import HFScorer
from seesaw_cf.types import Cloze
from tests.fakes import tiny_model, tiny_tokenizer


def test_embedded_model_loads_offline_in_eval_mode_and_scores() -> None:
    model, tokenizer = load_model("seesaw-tiny", device="cpu")
    assert model.config.model_type == "llama"
    assert not model.training
    assert model.dtype == torch.float32
    scores = HFScorer(model, tokenizer, strict=True).score([Cloze("Marie Curie was born in", "Warsaw")])
    assert scores[0].logprob < 0


def test_embedded_folder_is_small_and_has_no_pickle() -> None:
    files = [file for file in model_path("seesaw-tiny").iterdir() if file.is_file()]
    assert {file.suffix for file in files} <= {".json", ".safetensors", ".md", ".txt"}
    assert sum(file.stat().st_size for file in files) < 16_000_000


def test_dtype_by_name_and_as_torch_dtype() -> None:
    assert load_model("seesaw-tiny", device="cpu", dtype="bfloat16")[0].dtype == torch.bfloat16
    assert load_model("seesaw-tiny", device="cpu", dtype=torch.float64)[0].dtype == torch.float64


def test_any_folder_loads_and_gives_the_same_weights(tmp_path: Path) -> None:
    model, tokenizer = load_model("seesaw-tiny", device="cpu")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, _ = load_model(str(tmp_path), device="cpu")
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, again.get_parameter(name))


def test_tokenizer_adds_bos_and_never_merges_across_a_space() -> None:
    _, tokenizer = load_model("seesaw-tiny", device="cpu")
    ids = tokenizer("Marie Curie was born in")["input_ids"]
    assert ids[0] == tokenizer.bos_token_id == 0
    assert ids[:-1] == tokenizer("Marie Curie was born")["input_ids"]
    text = "Ünïcode 文字, tabs\tand 123 — all round-trip."
    assert tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]) == text


@pytest.mark.parametrize("name", ["seesaw-tny", "Seesaw-Tiny", "seesaw_tiny"])
def test_misspelt_name_suggests_the_right_one(name: str) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown model .* Did you mean 'seesaw-tiny'\?"):
        load_model(name)


def test_unknown_name_says_what_was_tried_and_what_to_do_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UnknownNameError) as caught:
        load_model("nobody/no-such-model", revision="abc")
    message = str(caught.value)
    for part in ("'nobody/no-such-model'", "at revision 'abc'", "'seesaw-tiny'", "HF_HUB_OFFLINE", "hf download"):
        assert part in message


def test_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=f"folder {tmp_path} could not be loaded"):
        load_model(str(tmp_path))


def test_unknown_dtype_suggests_near_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown dtype 'float23'\. Did you mean 'float32'"):
        load_model("seesaw-tiny", dtype="float23")


def test_incomplete_package_says_how_to_repair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seesaw_cf.models.names.__file__", str(tmp_path / "names.py"))
    with pytest.raises(StorageError, match=r"model\.safetensors.*Reinstall seesaw_cf"):
        model_path("seesaw-tiny")
    with pytest.raises(UnknownNameError, match="unknown embedded model 'gpt2'"):
        model_path("gpt2")


def test_sample_corpus_is_a_seeded_draw_without_replacement() -> None:
    texts = model_texts()
    assert len(texts) >= 1000
    assert all(text.strip() for text in texts)
    assert sample_corpus() == texts
    drawn = sample_corpus(50, seed=3)
    assert drawn == sample_corpus(50, seed=3) != sample_corpus(50, seed=4)
    assert len(drawn) == 50
    assert set(drawn) <= set(texts)
    with pytest.raises(ValueError, match=f"expected 0 to {len(texts)}"):
        sample_corpus(len(texts) + 1)


def test_embedded_names_all_have_folders() -> None:
    assert all(model_path(name).is_dir() for name in EMBEDDED)


def _saved(folder: Path, kind: str = "llama") -> Path:
    tiny_model(kind).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def _drop(tensors: dict[str, torch.Tensor], name: str) -> None:
    del tensors[name]


def _add(tensors: dict[str, torch.Tensor], name: str) -> None:
    tensors["model.more"] = torch.zeros(2)


def _cut(tensors: dict[str, torch.Tensor], name: str) -> None:
    tensors[name] = tensors[name][:-1].contiguous()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_drop, r"tensors 1 missing in the files \(model\.layers\.1\.mlp\.down_proj\.weight\)"),
        (_cut, r"1 of another shape \(model\.layers\.1\.mlp\.down_proj\.weight \(\d+, \d+\) instead of \(\d+, \d+\)\)"),
    ],
)
def test_a_checkpoint_that_is_not_the_model_is_refused(
    tmp_path: Path, change: Any, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = _saved(tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    change(tensors, "model.layers.1.mlp.down_proj.weight")
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    capfd.readouterr()
    with pytest.raises(UnsupportedModelError, match=message):
        load_model(str(folder), device="cpu", progress=False)
    assert capfd.readouterr().err == ""  # neither transformers' own table nor its bar


def test_tensors_that_the_model_has_no_place_for_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = _saved(tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    _add(tensors, "")
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    load_model(str(folder), device="cpu", progress=False)
    assert "transformers leaves out tensors: 1 not part of the model (model.more)" in caplog.text


def test_a_device_that_holds_no_numbers_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="device 'meta' cannot be used"):
        load_model("seesaw-tiny", device="meta")


def test_tied_heads_and_computed_buffers_are_no_fault(tmp_path: Path) -> None:
    folder = _saved(tmp_path / "model", "gpt2")
    tensors = load_file(folder / "model.safetensors")
    assert "lm_head.weight" not in tensors  # tied to the embedding
    tensors["transformer.h.0.attn.bias"] = torch.ones(1, 1, 4, 4)
    tensors["transformer.h.0.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    load_model(str(folder), device="cpu", progress=False)


def _truncate(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:5000])


def _only_pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _no_tokenizer(folder: Path) -> None:
    for file in folder.glob("token*"):
        file.unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_truncate, "A weights file is damaged. Download it again"),
        (_only_pickle, r"pickle \(\.bin\) is not read, because it can run code\. .* convert it once"),
        (_no_tokenizer, "Expected a tokenizer beside the weights"),
        (lambda folder: (folder / "config.json").write_text("{"), r"Expected a config\.json of a transformers causal"),
        (lambda folder: (folder / "config.json").write_text("{}"), r"Expected a config\.json of a transformers causal"),
    ],
)
def test_damaged_folders_say_what_to_do(tmp_path: Path, damage: Any, message: str) -> None:
    folder = _saved(tmp_path / "model")
    damage(folder)
    with pytest.raises(UnsupportedModelError, match=message):
        load_model(str(folder), device="cpu", progress=False)
