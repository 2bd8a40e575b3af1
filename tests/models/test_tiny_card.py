from __future__ import annotations

import re

import pytest

from benchmarks.tiny_model.card import held_out_texts, knowledge_table
from benchmarks.tiny_model.corpus import Person, prompts, read_people
from benchmarks.tiny_model.evaluate import knowledge, perplexity, rank
from benchmarks.tiny_model.train import ROOT, hash_people
from seesaw_cf.models.load import load_model
from seesaw_cf.models.names import model_path

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
