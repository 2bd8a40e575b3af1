"""Models are loaded from names and folders, or refused in clear words; the embedded one is what its card says."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from benchmarks.tiny_model.card import held_out_texts, knowledge_table
from benchmarks.tiny_model.corpus import Person, prompts, read_people
from benchmarks.tiny_model.evaluate import knowledge, perplexity, rank
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


SHARE = re.compile(r"([\d.]+)% \[[\d.]+, [\d.]+\] n = (\d+)")


@pytest.fixture(scope="module")
def card() -> str:
    return (model_path("seesaw-tiny") / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def people() -> list[Person]:
    return read_people(ROOT / "builder_scripts" / "sample" / "people.tsv")


def table(text: str) -> dict[str, list[tuple[float, int]]]:
    rows = [line.split("|") for line in text.splitlines() if re.match(r"\| P\d+ \w+ \|", line)]
    found = {row[1].split()[0]: [(float(a), int(n)) for a, n in SHARE.findall("|".join(row))] for row in rows}
    return {relation_id: cells for relation_id, cells in found.items() if cells}


def test_model_was_trained_on_the_facts_that_are_here(card: str, people: list[Person]) -> None:
    assert f"| people.tsv | {hash_people(people)} |" in card, "the facts changed: train seesaw-tiny again"


@pytest.mark.slow(30)
@pytest.mark.exhaustive
def test_figures_of_the_card_are_those_of_the_model(card: str, people: list[Person]) -> None:
    model, tokenizer = load_model("seesaw-tiny", device="cpu")
    claims = table(card)
    again = table(knowledge_table(knowledge(rank(model, tokenizer, people, list(prompts(people, 0))))))
    for relation_id, cells in again.items():
        for (value, n), (claimed, claimed_n) in zip(cells, claims[relation_id], strict=True):
            assert n == claimed_n
            assert value == pytest.approx(claimed, abs=0.2)  # near-ties may fall otherwise on another machine
    documents, small_talk = (perplexity(model, tokenizer, texts)[0] for texts in held_out_texts(people, 0))
    match = re.search(r"per token: ([\d.]+) on documents \(\d+ tokens\),\s+([\d.]+) on small talk", card)
    assert match is not None
    assert documents == pytest.approx(float(match[1]), rel=0.01)
    assert small_talk == pytest.approx(float(match[2]), rel=0.01)
