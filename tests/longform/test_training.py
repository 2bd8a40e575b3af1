"""Training annotators: data checks, grouped figures, saved folders."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.effects.leme_annotation import LABELS, macro_f1
from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.texts.annotate.by_name import load_annotator
from seesaw_cf.texts.train import recipe as recipe_module
from seesaw_cf.texts.train.annotations import read_annotations
from seesaw_cf.texts.train.recipe import RECIPES, Recipe, cross_validate, fit, predict, train
from seesaw_cf.texts.train.rows import TrainingRows
from seesaw_cf.texts.train.scores import label_scores
from tests.longform.training_models import annotation_rows, save_tiny_encoder, write_csv

Rows = list[dict[str, str]]


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
    assert data.parts == ("paragraph", "sentence", "sentence")
    assert data.groups == [0, 0, 0]


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


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"none\.csv: No such file or directory\. Check the path"):
        read_annotations(tmp_path / "none.csv")
    with pytest.raises(StorageError, match="/dev/full: a device, expected a file"):  # never ends
        read_annotations(Path("/dev/full"))
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    with pytest.raises(RecordError, match="no CSV table"):
        read_annotations(tmp_path / "empty.csv")


def test_a_class_that_is_missing(tmp_path: Path) -> None:
    rows = [row for row in annotation_rows() if row["classification"] != "neutral"]
    with pytest.raises(RecordError, match=r"training data: no row says neutral\. Bring rows of the missing class"):
        train(read_annotations(write_csv(tmp_path / "two.csv", rows)), "none", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def learned(tmp_path: Path) -> TrainingRows:
    return read_annotations(write_csv(tmp_path / "rows.csv", annotation_rows()))


@pytest.mark.slow
def test_one_call_measures_and_saves(tmp_path: Path, encoder: str) -> None:
    rows = learned(tmp_path)
    recipe = Recipe(5e-3, epochs=3, patience=1, max_length=64)
    report = train(rows, encoder, tmp_path / "out", recipe, folds=4)
    assert json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))["figures"] == report["figures"]
    assert set(report["figures"]) == {"trained", "constant"}
    constant = report["figures"]["constant"]["all"]
    assert (constant["n"], constant["n_groups"], constant["accuracy"]["value"]) == (40, 8, pytest.approx(0.4))
    assert constant["contradicts"]["support"] == 16
    assert sum(map(sum, report["figures"]["trained"]["all"]["confusion"])) == 40
    assert {file.name for file in (tmp_path / "out").iterdir()} >= {"config.json", "model.safetensors", "learned.json"}
    with pytest.raises(StorageError, match="exists and is not an empty folder"):
        train(rows, encoder, tmp_path / "out", recipe, folds=0)
    with pytest.raises(RecordError, match="9 folds of 8 independent samples, expected 0 or 2 to 8 folds"):
        train(rows, encoder, tmp_path / "more", recipe, folds=9)


@pytest.mark.slow
def test_an_encoder_learns_pairs_and_is_loaded_by_its_folder(tmp_path: Path, encoder: str) -> None:
    rows = learned(tmp_path)
    recipe = Recipe(5e-3, epochs=20, patience=0, max_length=64)
    model, tokenizer = fit(rows, encoder, recipe, seed=1)
    again = fit(rows, encoder, recipe, seed=1)
    for name, weights in model.state_dict().items():
        assert torch.equal(weights, again[0].state_dict()[name])
    model.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    found = load_annotator(tmp_path / "saved").classify(rows.pairs)
    chances = [judgement.probabilities[int(target)] for judgement, target in zip(found, rows.targets)]
    assert np.log(chances).mean() > -np.log(3), "the labels are likelier than under a guess"
    assert [LABELS.index(judgement.label) for judgement in found] == predict(rows, again, 64).astype(int).tolist()


def test_no_group_and_no_text_is_ever_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[TrainingRows] = []

    def fit_nothing(rows: TrainingRows, *_: object) -> None:
        seen.append(rows)

    def predict_nothing(rows: TrainingRows, *_: object) -> np.ndarray:
        assert set(rows.groups).isdisjoint(seen[-1].groups)
        assert {premise for premise, _ in rows.pairs}.isdisjoint(premise for premise, _ in seen[-1].pairs)
        return np.zeros(len(rows.pairs))

    monkeypatch.setattr(recipe_module, "fit", fit_nothing)
    monkeypatch.setattr(recipe_module, "predict", predict_nothing)
    # "He" is a premise of every group: too short to join them, so the training part must do without it.
    pairs = [(f"text of person {i}" if i % 3 else "He", f"claim {i % 4}") for i in range(36)]
    rows = TrainingRows(pairs, [i % 3 for i in range(36)], ["sentence"] * 36, [i // 6 for i in range(36)], LABELS)
    figures = cross_validate(rows, "none", RECIPES["small"], folds=3)
    assert len(seen) == 3
    assert figures["trained"]["all"]["supports"]["recall"] == 1


def test_published_settings() -> None:
    published = RECIPES["leme"]  # LEME, Appendix B.3
    assert (published.learning_rate, published.batch_size, published.epochs) == (6e-6, 1, 20)
    assert (published.weight_decay, published.warmup, published.accumulation, published.half) == (0.01, 1000, 4, True)
    assert published.patience == 0


def test_figures_by_hand() -> None:
    truth, answers, groups = [0] * 10 + [1] * 10, [0] * 20, [n // 2 for n in range(20)]
    found = label_scores(truth, answers, groups, LABELS)
    rows = label_scores(truth, answers, range(20), LABELS)
    assert found["accuracy"]["value"] == rows["accuracy"]["value"] == pytest.approx(0.5)
    assert found["accuracy"]["low"] < rows["accuracy"]["low"] - 0.02, "groups are all right or all wrong"
    assert found["confusion"] == [[10, 0, 0], [10, 0, 0], [0, 0, 0]]
    assert (found["supports"]["precision"], found["supports"]["recall"], found["neutral"]["recall"]) == (0.5, 1, 0)
    assert (found["n"], found["n_groups"]) == (20, 10)
    few = label_scores(truth, answers, [n // 10 for n in range(20)], LABELS)
    assert (few["accuracy"]["low"], few["accuracy"]["high"]) == (None, None)


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
