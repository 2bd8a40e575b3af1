"""Annotators: features, forest, encoders, language models, folders."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.generation.types import Ask, Completion, Sampling
from seesaw_cf.texts.annotate.by_name import load_annotator
from seesaw_cf.texts.annotate.embed import Embedder
from seesaw_cf.texts.annotate.encoder import EncoderAnnotator, encode_pairs, load_nli, windows
from seesaw_cf.texts.annotate.features import ClaimParts, claim_parts, vector_features, word_features
from seesaw_cf.texts.annotate.llm import LabelledPair, LLMAnnotator, parse_label
from seesaw_cf.texts.annotate.match import Featurizer, fit_forest, load_forest
from seesaw_cf.texts.train.annotations import read_annotations
from seesaw_cf.texts.train.match import fit_match
from tests.longform.training_models import annotation_rows, few_trees, save_tiny_encoder, write_csv

PASSAGE = "Ann lives in Rome. She sings. Ann works in Paris."


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_encoder(tmp_path_factory.mktemp("tiny") / "encoder")


@pytest.fixture(scope="module")
def matched(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("match")
    data = read_annotations(write_csv(folder / "rows.csv", annotation_rows()))
    with pytest.MonkeyPatch.context() as patch:
        few_trees(patch)
        fit_match(data, Featurizer(Embedder(str(encoder)))).save(folder, {"recipe": "match"})
    return folder


def test_claims_are_taken_apart_by_their_capitals() -> None:
    assert claim_parts("Olu Dara place of birth Natchez") == ClaimParts("Olu Dara", "place of birth", ("Natchez",))
    assert claim_parts("ASEAN founded by Indonesia, Malaysia") == ClaimParts(
        "ASEAN", "founded by", ("Indonesia", "Malaysia")
    )
    assert claim_parts("Ann occupation painter") == ClaimParts("Ann", "occupation", ("painter",))
    assert claim_parts("Bank of England country United Kingdom").subject == "Bank of England"
    assert claim_parts("Ann") == ClaimParts("Ann", "", ())


def test_features_do_not_depend_on_what_else_is_asked(encoder: Path) -> None:
    pairs = [(PASSAGE, "Ann lives in Rome"), (PASSAGE, "Ann is a painter"), ("Bob sings.", "Bob lives in Oslo")]
    together = Featurizer(Embedder(str(encoder))).rows(pairs)
    alone = np.concatenate([Featurizer(Embedder(str(encoder))).rows([pair]) for pair in pairs])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert np.isfinite(together).all()


def test_features_by_hand(encoder: Path) -> None:
    texts = [PASSAGE, "Ann lives in Rome", "Ann lives in Rome.", "She sings.", "Ann works in Paris."]
    pair = (PASSAGE, "Ann lives in Rome")
    found = word_features(*pair) | vector_features(*pair, Embedder(str(encoder)).embed(texts))
    # Content words: ann, lives, rome; all in the passage. Value "Rome" is in the first sentence.
    assert (found["words"], found["value_best"], found["best_value"], found["last_word"]) == (1.0, 1.0, 1.0, 1.0)
    assert found["sentences"] == pytest.approx(np.log(3))
    assert found["best_other_names"] == 0.0
    # The claim's tokens all occur in its first sentence, and MaxSim of like words in like places is high.
    assert found["cosine"] >= found["cosine_second"]
    assert found["cosine_gap"] == pytest.approx(found["cosine"] - found["cosine_mean"])


@settings(max_examples=40)
@given(st.lists(st.text("abc .,Q7é中\n", min_size=1), min_size=2, max_size=2))
def test_features_exist_for_any_text(encoder: Path, texts: list[str]) -> None:
    premise, claim = (text.strip() or "x" for text in texts)
    assert np.isfinite(Featurizer(_shared(encoder)).rows([(premise, claim)])).all()


_ENCODERS: dict[Path, Embedder] = {}


def _shared(folder: Path) -> Embedder:
    return _ENCODERS.setdefault(folder, Embedder(str(folder)))


def test_the_forest_answers_as_scikit_learn_and_survives_saving(tmp_path: Path) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble", reason="sklearn.ensemble is not installed")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 5))
    labels = ((rows[:, 0] > 0).astype(int) + (rows[:, 1] > 0.5)).astype(np.intp)
    forest = fit_forest(rows, labels, 3, seed=3, trees=30)
    expected = ensemble.RandomForestClassifier(
        30, min_samples_leaf=5, max_features=0.3, class_weight="balanced_subsample", random_state=3
    ).fit(rows, labels)
    np.testing.assert_allclose(forest.probabilities(rows), expected.predict_proba(rows), atol=1e-6)
    forest.save(tmp_path / "forest.safetensors")
    again = load_forest(tmp_path / "forest.safetensors")
    np.testing.assert_array_equal(again.probabilities(rows), forest.probabilities(rows))
    (tmp_path / "bad").write_bytes(b"no")
    with pytest.raises(StorageError, match="no forest can be read"):
        load_forest(tmp_path / "bad")


@pytest.mark.slow(10)
def test_a_saved_annotator_answers_the_same_in_a_fresh_process(matched: Path) -> None:
    pairs = [(PASSAGE, "Ann lives in Rome"), (PASSAGE, "Ann works in Bonn"), (PASSAGE, "Ann is a painter")]
    found = load_annotator(matched).classify(pairs)
    assert [judgement.label for judgement in found] == ["supports", "contradicts", "neutral"]
    assert found[0].evidence == ("Ann lives in Rome.",)
    assert found[2].evidence == ()
    assert all(sum(judgement.probabilities) == pytest.approx(1) for judgement in found)
    code = (
        "import sys, json; from seesaw_cf.texts.annotate.by_name import load_annotator;"
        "a = load_annotator(sys.argv[1]);"
        "found = a.classify([tuple(p) for p in json.loads(sys.argv[2])]);"
        "print(json.dumps([a.name] + [j.probabilities for j in found]))"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(matched), json.dumps(pairs)]
    reply = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert reply[0] == load_annotator(matched).name
    np.testing.assert_allclose(reply[1:], [judgement.probabilities for judgement in found], atol=1e-6)
    assert not list(matched.rglob("*.pkl")) + list(matched.rglob("*.bin"))


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
    first = load_nli(str(_classifier(tmp_path / "a", encoder, ["ENTAILMENT", "neutral", "contradiction"])), window=0)
    assert first.order == [0, 1, 2]
    other = load_nli(str(_classifier(tmp_path / "b", encoder, ["contradiction", "entailment", "neutral"])), window=0)
    assert other.order == [1, 2, 0]
    pair = [("Ann sings.", "Ann sings")]
    # The weights are the same, so only the order of the outputs differs.
    np.testing.assert_allclose(first.probabilities(pair)[0], other.probabilities(pair)[0][[2, 0, 1]], atol=1e-6)


def test_other_labels_are_refused_unless_explained(encoder: Path, tmp_path: Path) -> None:
    folder = _classifier(tmp_path / "c", encoder, ["LABEL_0", "LABEL_1", "LABEL_2"])
    with pytest.raises(UnknownNameError, match=r"answers \['LABEL_0', 'LABEL_1', 'LABEL_2'\], expected three labels"):
        load_nli(str(folder))
    meaning = {"LABEL_2": "supports", "LABEL_0": "neutral", "LABEL_1": "contradicts"}
    assert load_nli(str(folder), labels=meaning).order == [2, 0, 1]
    two = _classifier(tmp_path / "d", encoder, ["entailment", "not_entailment"])
    with pytest.raises(UnknownNameError, match="not_entailment"):
        load_nli(str(two))
    with pytest.raises(UnknownNameError, match="encoder 'no-such-encoder' could not be loaded"):
        load_nli("no-such-encoder")


def test_the_claim_survives_a_long_premise(encoder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    short, long = "Ann lives in Rome", "Rome " * 60
    for claim in (short, long):
        encoded = encode_pairs(tokenizer, [("Oslo " * 500, claim)], 48)
        ids = encoded["input_ids"][0]
        assert len(ids) == 48
        kept = str(tokenizer.decode(ids, skip_special_tokens=True))
        assert kept.endswith("oslo ann lives in rome") if claim == short else kept.count("rome") >= 20


def test_windows_are_joined_by_the_guideline() -> None:
    assert windows(PASSAGE, 0) == [PASSAGE]
    assert windows(PASSAGE, 2) == ["Ann lives in Rome. She sings.", "She sings. Ann works in Paris."]

    class Fixed(EncoderAnnotator):
        def __init__(self) -> None:
            self.window, self.temperature = 2, 1.0

        def _plain(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
            known = {windows(PASSAGE, 2)[0]: [0.7, 0.2, 0.1], windows(PASSAGE, 2)[1]: [0.1, 0.3, 0.6]}
            return np.array([known[premise] for premise, _ in pairs])

    # Most supporting 0.7, least neutral 0.2, most contradicting 0.6: divided by their sum 1.5.
    np.testing.assert_allclose(Fixed().probabilities([(PASSAGE, "x")]), [[0.7 / 1.5, 0.2 / 1.5, 0.6 / 1.5]])


def test_an_nli_model_annotates_with_evidence(encoder: Path, tmp_path: Path) -> None:
    found = load_nli(str(_classifier(tmp_path, encoder, ["entailment", "neutral", "contradiction"]))).classify(
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


def test_folders_that_are_no_annotator(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"instrument\.json: cannot be read"):
        load_annotator(tmp_path)
    (tmp_path / "instrument.json").write_text('{"kind": "rater"}', encoding="utf-8")
    with pytest.raises(StorageError, match="holds a 'rater', expected an annotator"):
        load_annotator(tmp_path)
    assert load_annotator("lexical").name == "lexical"
