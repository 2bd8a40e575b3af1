"""Models are loaded from names and folders, or refused in clear words; the embedded one is what its card says."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from benchmarks.tiny_model.corpus import read_people
from benchmarks.tiny_model.train import ROOT, hash_people
from seesaw_cf.errors import UnsupportedModelError
from seesaw_cf.models.corpus import sample_corpus
from seesaw_cf.models.load import load_model
from seesaw_cf.models.names import model_path
from tests.fakes import tiny_model, tiny_tokenizer


def test_sample_corpus_is_a_seeded_draw_without_replacement() -> None:
    texts = sample_corpus()
    assert len(texts) >= 1000
    assert all(text.strip() for text in texts)
    drawn = sample_corpus(50, seed=3)
    assert drawn == sample_corpus(50, seed=3) != sample_corpus(50, seed=4)
    assert len(drawn) == 50
    assert set(drawn) <= set(texts)
    with pytest.raises(ValueError, match=f"expected 0 to {len(texts)}"):
        sample_corpus(len(texts) + 1)


def _saved(folder: Path, kind: str = "llama") -> Path:
    tiny_model(kind).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


DOWN = "model.layers.1.mlp.down_proj.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop(DOWN), rf"tensors 1 missing in the files \({re.escape(DOWN)}\)"),
        (
            lambda tensors: tensors.update({DOWN: tensors[DOWN][:-1].contiguous()}),
            rf"1 of another shape \({re.escape(DOWN)} \(\d+, \d+\) instead of \(\d+, \d+\)\)",
        ),
    ],
)
def test_a_checkpoint_that_is_not_the_model_is_refused(
    tmp_path: Path, change: Any, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = _saved(tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    capfd.readouterr()
    with pytest.raises(UnsupportedModelError, match=message):
        load_model(str(folder), device="cpu", progress=False)
    assert capfd.readouterr().err == ""  # neither transformers' own table nor its bar


WEIGHTS = "model.safetensors"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda at: os.truncate(at / WEIGHTS, 5000), "A weights file is damaged. Download it again"),
        (lambda at: (at / WEIGHTS).rename(at / "pytorch_model.bin"), r"pickle \(\.bin\) is not read.* convert it once"),
        (lambda at: [file.unlink() for file in at.glob("token*")], "Expected a tokenizer beside the weights"),
        (lambda at: (at / "config.json").write_text("{"), r"Expected a config\.json of a transformers causal"),
        (lambda at: (at / "config.json").write_text("{}"), r"Expected a config\.json of a transformers causal"),
    ],
)
def test_damaged_folders_say_what_to_do(tmp_path: Path, damage: Any, message: str) -> None:
    folder = _saved(tmp_path / "model")
    damage(folder)
    with pytest.raises(UnsupportedModelError, match=message):
        load_model(str(folder), device="cpu", progress=False)


def test_model_was_trained_on_the_facts_that_are_here() -> None:
    card = (model_path("seesaw-tiny") / "README.md").read_text(encoding="utf-8")
    people = read_people(ROOT / "builder_scripts" / "sample" / "people.tsv")
    assert f"| people.tsv | {hash_people(people)} |" in card, "the facts changed: train seesaw-tiny again"
