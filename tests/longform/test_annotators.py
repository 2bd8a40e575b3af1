"""Annotators: words, encoders, language models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.generation.types import Ask, Completion, Sampling
from seesaw_cf.texts.annotate.by_name import load_annotator
from seesaw_cf.texts.annotate.encoder import encode_pairs, load_classifier
from seesaw_cf.texts.annotate.lexical import ClaimParts, claim_parts
from seesaw_cf.texts.annotate.llm import LabelledPair, LLMAnnotator, parse_label
from tests.longform.training_models import save_tiny_encoder

PASSAGE = "Ann lives in Rome. She sings. Ann works in Paris."


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_encoder(tmp_path_factory.mktemp("tiny") / "encoder")


def test_claims_are_taken_apart_by_their_capitals() -> None:
    assert claim_parts("Olu Dara place of birth Natchez") == ClaimParts("Olu Dara", "place of birth", ("Natchez",))
    assert claim_parts("ASEAN founded by Indonesia, Malaysia") == ClaimParts(
        "ASEAN", "founded by", ("Indonesia", "Malaysia")
    )
    assert claim_parts("Ann occupation painter") == ClaimParts("Ann", "occupation", ("painter",))
    assert claim_parts("Bank of England country United Kingdom").subject == "Bank of England"
    assert claim_parts("Ann") == ClaimParts("Ann", "", ())


def _classifier(folder: Path, encoder: Path, names: Sequence[str]) -> Path:
    import torch

    torch.manual_seed(1)
    shape: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=32, id2label=dict(enumerate(names)), **shape)
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_labels_of_nli_models_are_found_in_any_order(encoder: Path, tmp_path: Path) -> None:
    first = load_classifier(str(_classifier(tmp_path / "a", encoder, ["ENTAILMENT", "neutral", "contradiction"])))
    assert first.order == [0, 1, 2]
    other = load_classifier(str(_classifier(tmp_path / "b", encoder, ["contradiction", "entailment", "neutral"])))
    assert other.order == [1, 2, 0]
    pair = [("Ann sings.", "Ann sings")]
    # The weights are the same, so only the order of the outputs differs.
    np.testing.assert_allclose(first.probabilities(pair)[0], other.probabilities(pair)[0][[2, 0, 1]], atol=1e-6)


def test_other_labels_are_refused_unless_explained(encoder: Path, tmp_path: Path) -> None:
    folder = _classifier(tmp_path / "c", encoder, ["LABEL_0", "LABEL_1", "LABEL_2"])
    with pytest.raises(UnknownNameError, match=r"answers \['LABEL_0', 'LABEL_1', 'LABEL_2'\], expected three labels"):
        load_classifier(str(folder))
    meaning = {"LABEL_2": "supports", "LABEL_0": "neutral", "LABEL_1": "contradicts"}
    assert load_classifier(str(folder), labels=meaning).order == [2, 0, 1]
    two = _classifier(tmp_path / "d", encoder, ["entailment", "not_entailment"])
    with pytest.raises(UnknownNameError, match="not_entailment"):
        load_classifier(str(two))
    with pytest.raises(UnknownNameError, match="encoder 'no-such-encoder' could not be loaded"):
        load_classifier("no-such-encoder")


def test_the_claim_survives_a_long_premise(encoder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    short, long = "Ann lives in Rome", "Rome " * 60
    for claim in (short, long):
        encoded = encode_pairs(tokenizer, [("Oslo " * 500, claim)], 48)
        ids = encoded["input_ids"][0]
        assert len(ids) == 48
        kept = str(tokenizer.decode(ids, skip_special_tokens=True))
        assert kept.endswith("oslo ann lives in rome") if claim == short else kept.count("rome") >= 20


def test_an_nli_model_annotates_with_evidence(encoder: Path, tmp_path: Path) -> None:
    found = load_classifier(str(_classifier(tmp_path, encoder, ["entailment", "neutral", "contradiction"]))).classify(
        [(PASSAGE, "Ann lives in Rome")]
    )
    assert found[0].label in LABELS
    assert set(found[0].evidence) <= {"Ann lives in Rome.", "She sings.", "Ann works in Paris."}
    assert bool(found[0].evidence) == (found[0].label != "neutral")


class Scripted:
    """A generator that says what it is told, one list of replies per round."""

    name = "scripted"

    def __init__(self, *rounds: list[str]) -> None:
        self.rounds, self.asks = list(rounds), list[list[Ask]]()

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        self.asks.append(list(asks))
        return [Completion(text, status="ok" if text != "!" else "time-out") for text in self.rounds.pop(0)]


def test_a_language_model_labels_and_quotes() -> None:
    reply = "Label: supports\nEvidence: Ann lives in Rome.\nEvidence: Ann is the mayor."
    [found] = LLMAnnotator(Scripted([reply])).classify([(PASSAGE, "Ann lives in Rome")])
    assert (found.label, found.status, found.reply) == ("supports", "ok", reply)
    assert found.evidence == ("Ann lives in Rome.",)  # what the passage does not say is no evidence


def test_unreadable_replies_are_asked_again_and_then_counted() -> None:
    pairs = [(PASSAGE, f"claim {i}") for i in range(3)]
    generator = Scripted(["neutral", "I cannot say.", "!"], ["Label: supports or contradicts\nLabel: neutral", "!"])
    found = LLMAnnotator(generator, tries=2).classify(pairs)
    assert [len(asks) for asks in generator.asks] == [3, 2]
    assert found[0].label == "neutral"
    assert found[1].status == "2 labels in the reply: neutral, supports (asked 2 times)"
    assert found[2].status == "time-out"
    assert generator.asks[0][1].seed != generator.asks[1][0].seed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Label: contradicts", ("contradicts", "ok")),
        ("**Label:** Supports\nEvidence: x", ("supports", "ok")),
        ("neutral.", ("neutral", "ok")),
        ("Label: entailed", ("", "no label in the reply")),
        ("", ("", "empty reply")),
        ("The passage supports it", ("", "no label in the reply")),
    ],
)
def test_parse_label(text: str, expected: tuple[str, str]) -> None:
    assert parse_label(text) == expected


def test_examples_are_never_of_the_annotated_sample() -> None:
    pool = tuple(LabelledPair(f"text {i}", "c", "neutral", f"s{i % 2}") for i in range(6))
    generator = Scripted(["neutral"])
    LLMAnnotator(generator, shots=3, pool=pool, samples={PASSAGE: "s0"}).classify([(PASSAGE, "x")])
    turns = generator.asks[0][0].prompt
    assert isinstance(turns, tuple)
    assert len(turns) == 7
    shown = " ".join(turn.content for turn in turns)
    assert all((f"text {i}" in shown) == bool(i % 2) for i in range(6))
    with pytest.raises(RecordError, match="3 of 6 examples are of other samples"):
        LLMAnnotator(Scripted(["neutral"]), shots=4, pool=pool, samples={PASSAGE: "s0"}).classify([(PASSAGE, "x")])


def test_names_of_annotators(tmp_path: Path) -> None:
    assert load_annotator("lexical").name == "lexical"
    with pytest.raises(UnknownNameError, match="could not be loaded"):
        load_annotator(tmp_path)
