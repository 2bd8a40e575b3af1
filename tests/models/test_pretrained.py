from __future__ import annotations

from pathlib import Path

import pytest
import torch

from seesaw_cf.errors import StorageError, UnknownNameError
from seesaw_cf.pretrained import EMBEDDED, load_model, model_path, model_texts, sample_corpus
from seesaw_cf.scoring import HFScorer
from seesaw_cf.types import Cloze


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
    assert sum(file.stat().st_size for file in files) < 8_000_000


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
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
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
