"""Trained raters: data, agreement, a saved folder that answers survey questions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seesaw_cf.cli import main
from seesaw_cf.effects.survey_items import ITEMS
from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.texts.annotate.learned import LEFT_OUT
from seesaw_cf.texts.rate.survey import SurveyQuestion, SurveySample, survey
from seesaw_cf.texts.rate.trained import load_rater
from seesaw_cf.texts.train.ratings import rater_texts, read_ratings
from seesaw_cf.texts.train.recipe import Recipe, train
from seesaw_cf.texts.train.scores import rating_scores
from tests.longform.training_models import CITIES, NAMES, save_tiny_encoder, write_csv

ITEM = "new_fact_main_passage"
Rows = list[dict[str, str]]


def rows() -> Rows:
    """Passages that say the new fact (rated 7) or another (rated 1)."""
    found = []
    for number, name in enumerate(NAMES):
        for shift, rating in ((0, "7"), (1, "1")):
            here, said = CITIES[number % len(CITIES)], CITIES[(number + shift) % len(CITIES)]
            texts = {
                "main": f"{name} lives in {said}.",
                "new_fact": f"{name} lives in {here}",
                "related": "Rome is a city.",
            }
            found.append({"sample_id": name, "item": ITEM, "rating": rating, **texts})
    return found


def changed(**values: str) -> Rows:
    found = rows()
    found[3] |= values
    return found


def test_texts_show_what_the_item_shows_and_nothing_else(tmp_path: Path) -> None:
    data = read_ratings(write_csv(tmp_path / "a.csv", rows()))
    assert data.pairs[0] == (
        "Main passage: Ann lives in Rome.",
        "The main passage is written as if the new fact is true. New fact: Ann lives in Rome.",
    )
    assert data.targets[:2] == (7.0, 1.0)
    assert len(set(data.groups)) == len(NAMES)
    with pytest.raises(UnknownNameError, match=r"unknown survey item 'fluncy'. Did you mean 'fluency'"):
        rater_texts("fluncy", ITEMS[0].good)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (changed(rating="8"), RecordError, "row 3: rating '8', expected a number from 1 to 7"),
        (changed(rating="good"), RecordError, "row 3: rating 'good'"),
        (changed(item="topicalty"), UnknownNameError, "unknown survey item 'topicalty'"),
        (changed(main=" "), RecordError, r"row 3: item new_fact_main_passage shows \['main'\], which is empty"),
        (changed(sample_id=""), RecordError, "row 3: no sample_id"),
        (changed(item="topicality"), RecordError, r"columns \['related_entity', 'subject'\] are missing"),
        ([{"sample_id": "a", "rating": "1"}], RecordError, r"columns \['item'\] are missing"),
    ],
)
def test_bad_rows(tmp_path: Path, given: Rows, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_ratings(write_csv(tmp_path / "bad.csv", given))


def test_within_one_is_two_sided() -> None:
    # Differences -3, -1, 0, 1, 3: three of five are within one. The released code counts four (-3 is "<= 1").
    found = rating_scores([5, 5, 5, 5, 4], [2, 4, 5, 6, 7], [0, 1, 2, 3, 4], draws=0)
    assert found["within_one"]["value"] == 0.6
    assert found["exact"]["value"] == 0.2
    assert found["mean_absolute_error"]["value"] == pytest.approx(8 / 5)


def test_agreement_counts_whole_samples_and_a_constant_has_no_correlation() -> None:
    found = rating_scores([1, 1, 7, 7], [1, 1, 1, 1], ["a", "a", "b", "b"], draws=200)  # type: ignore[list-item]
    assert found["exact"] == {"value": 0.5, "low": None, "high": None}, "two samples give no interval"
    assert found["spearman"]["value"] is None
    assert found["n_groups"] == 2


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rater")
    encoder = save_tiny_encoder(folder / "encoder")
    recipe = Recipe(5e-3, epochs=10, max_length=64, patience=0)
    data = read_ratings(write_csv(folder / "rows.csv", rows()))
    report = train(data, str(encoder), folder / "out", recipe, folds=2)
    assert set(report["figures"]) == {"trained", "constant"}
    assert report["figures"]["constant"]["all"]["mean_absolute_error"]["value"] == 3.0
    assert report["figures"]["trained"]["all"]["n"] == 16
    return folder / "out"


def sample(text: str) -> SurveySample:
    facts = {"subject": (), "related": ()}
    passages = {"main": text, "related": "Rome is a city."}
    return SurveySample(
        "ft", 1, "P1", "post", 0, "Ann", "Rome", "Ann lives in Rome", "Rome", "Oslo", facts, passages
    )  # fmt: skip


@pytest.mark.slow
def test_a_saved_rater_answers_the_survey(trained: Path) -> None:
    rater = load_rater(trained)
    table, _ = survey([sample("Eve works in Rome."), sample("Eve works in Oslo.")], rater)
    found = {item: [r["rating"] for r in table.to_pylist() if r["item"] == item] for item in (ITEM, "topicality")}
    assert all(1 <= rating <= 7 for rating in found[ITEM])
    statuses = {row["status"] for row in table.to_pylist() if row["item"] == "topicality"}
    assert statuses == {"the rater was trained on new_fact_main_passage only"}
    assert found["topicality"] == [None, None]
    again = [
        rating.rating for rating in load_rater(trained).rate([SurveyQuestion(ITEMS[0], sample("Eve works in Rome."))])
    ]
    assert again == pytest.approx(found[ITEM][:1], abs=1e-5)
    learned, _ = survey([sample("Ann lives in Rome.")], rater, (ITEM,))
    assert [(row["rating"], row["status"]) for row in learned.to_pylist()] == [(None, LEFT_OUT)]


@pytest.mark.slow
def test_batches_change_nothing(trained: Path) -> None:
    rater = load_rater(trained)
    pairs = [
        rater_texts(ITEM, SurveyQuestion(ITEMS[0], sample(f"Ann lives in {city}. " * n)).shown)
        for city in CITIES
        for n in (1, 4)
    ]
    together = rater.predict(pairs)
    np.testing.assert_allclose(together, np.concatenate([rater.predict([pair]) for pair in pairs]), atol=1e-5)


def test_bad_folders_and_too_few_samples(tmp_path: Path) -> None:
    encoder = save_tiny_encoder(tmp_path / "encoder")
    with pytest.raises(
        StorageError, match=r"encoder: no rater\. Expected a folder made by `seesaw-cf leme train-rater`"
    ):
        load_rater(encoder)
    with pytest.raises(RecordError, match="4 folds of 1 independent samples"):
        train(read_ratings(write_csv(tmp_path / "few.csv", rows()[:2])), "none", tmp_path / "out")


def test_the_command_explains_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_csv(tmp_path / "bad.csv", changed(rating="9"))
    assert main(["leme", "train-rater", "--data", str(file), "--encoder", "none", "--out", str(tmp_path / "out")]) == 1
    assert "row 3: rating '9', expected a number from 1 to 7" in capsys.readouterr().err
