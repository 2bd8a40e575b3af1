"""Training annotators: data checks, grouped figures, saved folders."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.annotators import random_split
from seesaw_cf.effects.leme_annotation import LABELS, macro_f1
from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.texts.annotate.annotate import fit_temperature, temper
from seesaw_cf.texts.annotate.by_name import load_annotator
from seesaw_cf.texts.train.annotations import AnnotationData, read_annotations
from seesaw_cf.texts.train.annotator import cross_validate, recipe_for, train_annotator
from seesaw_cf.texts.train.encoder import PRESETS, EncoderRecipe, fit_pair
from seesaw_cf.texts.train.scores import calibration_error, classifier_scores, grouped_folds
from tests.longform.training_models import annotation_rows, few_trees, save_tiny_encoder, write_csv

Rows = list[dict[str, str]]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny_encoder(tmp_path_factory.mktemp("tiny") / "encoder"))


def changed(row: int, **values: str) -> Rows:
    rows = annotation_rows()
    rows[row] |= values
    return rows


def without(column: str) -> Rows:
    return [{key: value for key, value in row.items() if key != column} for row in annotation_rows()]


def test_content_is_taken_apart_and_its_form_says_what_the_premise_is(tmp_path: Path) -> None:
    base = {"classification": "supports", "sample_id": "a"}
    rows = [
        base | {"content": "Passage: One. Two. \n\n Claim: A is one, two"},
        base | {"content": "Passage: One.\nClaim: A is one"},
        base | {"content": "Passage: He said: Claim: no. Claim: A is two"},
    ]
    data = read_annotations(write_csv(tmp_path / "a.csv", rows))
    assert data.pairs == (("One. Two.", "A is one, two"), ("One.", "A is one"), ("He said: Claim: no.", "A is two"))
    assert data.units == ("paragraph", "sentence", "sentence")
    assert data.groups == (0, 0, 0)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (
            changed(3, classification="suports"),
            UnknownNameError,
            "row 3: unknown classification 'suports'. Did you mean",
        ),
        (changed(3, sample_id=" "), RecordError, "1 rows have no sample_id, first: row 3"),
        (changed(3, claim=""), RecordError, "row 3: the claim is empty"),
        (changed(3, premise=" "), RecordError, "row 3: the passage is empty"),
        (without("classification"), RecordError, r"columns \['classification'\] are missing"),
        (without("premise"), RecordError, r"columns \['premise'\] are missing"),
    ],
)
def test_bad_rows(tmp_path: Path, rows: Rows, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_annotations(write_csv(tmp_path / "bad.csv", rows))


def test_edited_ids_and_shared_texts(tmp_path: Path) -> None:
    rows = [row | {"example_id": str(i)} for i, row in enumerate(annotation_rows())]
    rows[7]["example_id"] = "0"  # an example of Ann, now one of Bob too
    with pytest.raises(RecordError, match=r"example '0' to \['Ann', 'Bob'\]. Ids were edited"):
        read_annotations(write_csv(tmp_path / "a.csv", rows))
    # Sample ids edited: one passage of Ann under another name. The text still keeps both together.
    data = read_annotations(write_csv(tmp_path / "b.csv", changed(0, sample_id="Zoe")))
    assert len(set(data.groups)) == 8
    assert "9 samples share texts and make 8 independent groups" in data.notes


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"none\.csv: No such file or directory\. Check the path"):
        read_annotations(tmp_path / "none.csv")
    with pytest.raises(StorageError, match="/dev/full: a device, expected a file"):  # never ends
        read_annotations(Path("/dev/full"))
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    with pytest.raises(RecordError, match="no CSV table"):
        read_annotations(tmp_path / "empty.csv")


def test_a_class_that_is_missing(tmp_path: Path, encoder: str) -> None:
    rows = [row for row in annotation_rows() if row["classification"] != "neutral"]
    file = write_csv(tmp_path / "two.csv", rows)
    with pytest.raises(RecordError, match=r"training data: no row says neutral \(32 rows: .*Bring rows of the missing"):
        train_annotator(file, tmp_path / "out", encoder=encoder)
    assert not (tmp_path / "out").exists()
    lone = [row for row in annotation_rows() if row["classification"] != "neutral" or row["sample_id"] == "Ann"]
    with pytest.raises(RecordError, match=r"training part of fold \d of 4: no row says neutral"):
        train_annotator(write_csv(tmp_path / "lone.csv", lone), tmp_path / "out", encoder=encoder)


@pytest.mark.slow
def test_one_call_measures_and_saves(tmp_path: Path, encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few_trees(monkeypatch)
    file = write_csv(tmp_path / "rows.csv", annotation_rows())
    report = train_annotator(file, tmp_path / "out", encoder=encoder, folds=4)
    assert report["recipe"] == "match"
    assert json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))["figures"] == report["figures"]
    figures = {name: parts["paragraph"] for name, parts in report["figures"].items()}
    assert set(figures) == {"majority", "lexical", "tfidf", "match"}
    assert (figures["match"]["n"], figures["match"]["n_groups"]) == (40, 8)
    # Which city goes with which verb is the same task for people never seen; words alone do not tell.
    assert figures["match"]["macro_f1"]["value"] == 1.0 > (figures["tfidf"]["macro_f1"]["value"] or 0.0)
    assert figures["majority"]["accuracy"]["value"] == pytest.approx(0.4)
    [found] = load_annotator(tmp_path / "out").classify([("Ike lives in Lima. Ike sings.", "Ike lives in Lima")])
    assert found.label == "supports"
    with pytest.raises(StorageError, match="exists and is not an empty folder"):
        train_annotator(file, tmp_path / "out", encoder=encoder, folds=0)


def test_no_group_and_no_text_is_ever_on_both_sides() -> None:
    seen: list[tuple[set[int], set[str], tuple[str, ...]]] = []
    # "He" is a premise of every group: too short to join them, so the training part must do without it.
    pairs = tuple((f"text of person {i}" if i % 3 else "He", f"claim {i % 4}") for i in range(36))
    data = AnnotationData(pairs, tuple(i % 3 for i in range(36)), ("sentence",) * 36, tuple(i // 6 for i in range(36)))
    data = data.take([i for i in range(36) if i % 3 or i in (0, 33)])

    class Watched:
        temperature = 1.0

        def __init__(self, train: AnnotationData) -> None:
            self.train = train

        def probabilities(self, pairs: Any) -> np.ndarray:
            seen.append((set(self.train.groups), {p for p, _ in self.train.pairs}, tuple(p for p, _ in pairs)))
            return np.full((len(pairs), 3), 1 / 3)

        def save(self, folder: Path, settings: Mapping[str, object]) -> None: ...

    data = AnnotationData(data.pairs, tuple(i % 3 for i in range(len(data.pairs))), data.units, data.groups)
    cross_validate(data, {"own": lambda train, seed: Watched(train)}, folds=3)
    fold = grouped_folds(data.groups, 3)
    assert len(seen) == 3
    for one, (groups, texts, asked) in enumerate(seen):
        assert groups.isdisjoint({g for g, f in zip(data.groups, fold) if f == one})
        assert texts.isdisjoint(asked)


def test_the_published_split_is_contaminated() -> None:
    rows = annotation_rows()
    pairs = tuple((row["premise"], row["claim"]) for row in rows)
    groups = tuple(i // 5 for i in range(40))
    data = AnnotationData(pairs, tuple(LABELS.index(r["classification"]) for r in rows), ("paragraph",) * 40, groups)
    found, overlap = random_split(data, {})
    assert overlap["sample"] == 1.0
    assert found["tfidf"]["paragraph"]["n"] == 8


def test_recipes() -> None:
    assert (recipe_for("auto", 1003), recipe_for("auto", 8000)) == ("match", "pair")
    with pytest.raises(UnknownNameError, match=r"unknown recipe 'mtch'. Did you mean 'match'"):
        recipe_for("mtch", 5)
    # LEME, Appendix B.3.
    published = PRESETS["leme-deberta"]
    assert (published.learning_rate, published.batch_size, published.epochs) == (6e-6, 1, 20)
    assert (published.weight_decay, published.warmup, published.accumulation, published.half) == (0.01, 1000, 4, True)


@pytest.mark.slow
def test_an_encoder_learns_pairs_and_is_saved(tmp_path: Path, encoder: str) -> None:
    data = read_annotations(write_csv(tmp_path / "rows.csv", annotation_rows()))
    recipe = EncoderRecipe(learning_rate=5e-3, epochs=20, frozen_layers=-1, max_length=64, patience=0, window=0)
    found = fit_pair(data, encoder, recipe, seed=1)
    again = fit_pair(data, encoder, recipe, seed=1)
    np.testing.assert_array_equal(found.probabilities(data.pairs), again.probabilities(data.pairs))
    chances = found.probabilities(data.pairs)[np.arange(len(data.labels)), np.array(data.labels)]
    assert np.log(chances).mean() > -np.log(3)  # it has learnt: the labels are likelier than under a guess
    found.save(tmp_path, {"recipe": "pair"})
    loaded = load_annotator(tmp_path)
    assert loaded.name == found.name
    expected = [judgement.probabilities for judgement in found.classify(data.pairs[:4])]
    np.testing.assert_allclose([j.probabilities for j in loaded.classify(data.pairs[:4])], expected, atol=1e-6)


@pytest.mark.slow
def test_early_stopping_keeps_the_best_epoch_and_frozen_layers_stay(tmp_path: Path, encoder: str) -> None:
    data = read_annotations(write_csv(tmp_path / "rows.csv", annotation_rows()))
    found = fit_pair(data, encoder, EncoderRecipe(epochs=2, patience=1, frozen_layers=1, max_length=64), seed=0)
    from transformers import AutoModel

    start, now = AutoModel.from_pretrained(encoder).state_dict(), found.model.state_dict()
    same = {
        name
        for name in start
        if name in {n.removeprefix("bert.") for n in now} and (start[name] == now[f"bert.{name}"]).all()
    }
    assert any("layer.0." in name for name in same)
    assert "encoder.layer.1.attention.self.query.weight" not in same


def test_macro_f1_by_hand() -> None:
    # Class 0: 2 right, 1 given to 2. Class 2: 1 right. Class 1 does not occur in the truth, one answer of it is wrong.
    confusion = np.array([[2, 1, 1], [0, 0, 0], [0, 0, 1]], dtype=float)
    # F1 of class 0: 2*2 / (4 + 2) = 2/3; of class 2: 2*1 / (1 + 2) = 2/3.
    assert float(macro_f1(confusion)) == pytest.approx(2 / 3)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_macro_f1_as_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="sklearn.metrics is not installed")
    truth, given_ = zip(*pairs)
    confusion = np.zeros((3, 3))
    np.add.at(confusion, (list(truth), list(given_)), 1)
    expected = metrics.f1_score(truth, given_, labels=sorted(set(truth)), average="macro")
    assert float(macro_f1(confusion)) == pytest.approx(expected)


def test_calibration_by_hand() -> None:
    # Confidence 0.8 twice, one right: |0.5 - 0.8| = 0.3. Confidence 0.55, right: 0.45. (2 * 0.3 + 0.45) / 3 = 0.35.
    chances = np.array([[0.8, 0.2, 0.0], [0.8, 0.1, 0.1], [0.45, 0.55, 0.0]])
    assert calibration_error(np.array([0, 1, 1]), chances) == pytest.approx(0.35)


def test_temperature_undoes_overconfidence() -> None:
    rng = np.random.default_rng(0)
    honest = rng.dirichlet([1, 1, 1], size=4000)
    truth = np.array([rng.choice(3, p=row) for row in honest])
    assert fit_temperature(truth, temper(honest, 0.5)) == pytest.approx(2.0, rel=0.1)
    np.testing.assert_allclose(temper(honest, 1.0), np.maximum(honest, 1e-6), atol=1e-5)


def test_intervals_count_whole_groups() -> None:
    truth, chances = [0] * 10 + [1] * 10, np.eye(3)[[0] * 20]
    found, rows = (classifier_scores(truth, chances, groups) for groups in ([n // 2 for n in range(20)], range(20)))
    assert [scores["accuracy"]["value"] for scores in (found, rows)] == pytest.approx([0.5, 0.5])
    low, high = (scores["accuracy"]["low"] for scores in (found, rows))
    assert low is not None
    assert high is not None
    assert low < high - 0.05, "groups are all right or all wrong"
    assert found["confusion"] == [[10, 0, 0], [10, 0, 0], [0, 0, 0]]
    assert (found["n"], found["n_groups"]) == (20, 10)
    assert found["recall"][2] == {"value": None, "low": None, "high": None}
    few = classifier_scores(truth, chances, [n // 10 for n in range(20)])
    assert (few["accuracy"]["low"], few["accuracy"]["high"]) == (None, None)


def test_stored_figures_say_that_the_frozen_encoder_beats_every_baseline() -> None:
    """What `python -m benchmarks.annotators` measured on samples that were not trained on."""
    stored = json.loads((ROOT / "benchmarks" / "results" / "annotators.json").read_text(encoding="utf-8"))
    assert (stored["n"], stored["n_groups"], stored["folds"]) == (1003, 8, 4)
    for unit in ("paragraph", "sentence"):
        scores = {name: parts[unit] for name, parts in stored["recipes"].items()}
        for baseline in ("majority", "tfidf"):
            for figure in ("accuracy", "macro_f1"):
                assert scores["match"][figure]["value"] > scores[baseline][figure]["value"] + 0.05
        assert scores["match"]["accuracy"]["low"] > scores["majority"]["accuracy"]["value"]
