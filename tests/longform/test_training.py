"""Training: data checks, groups that are never on both sides, figures, saved folders that classify and rate."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from seesaw_cf.base.tables import write_table
from seesaw_cf.cli import main
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.texts import train as train_module
from seesaw_cf.texts.claims import CLAIMS, claim_question
from seesaw_cf.texts.classify import encode_pairs, load_classifier, load_rater
from seesaw_cf.texts.judge import LEFT_OUT, rate
from seesaw_cf.texts.survey import SurveySample, survey, survey_questions
from seesaw_cf.texts.tables import ANNOTATIONS, RATINGS, RunTexts
from seesaw_cf.texts.train import RECIPES, Recipe, cross_validate, train
from seesaw_cf.texts.training import (
    classes_of,
    label_scores,
    people_training,
    rating_scores,
    read_training,
    training_data,
)
from tests.longform.people_runs import write_run
from tests.longform.training_models import CITIES, NAMES, annotation_rows, save_tiny_encoder, write_csv
from tests.stereotypes.fakes import save_classifier

Rows = list[dict[str, str]]
ITEM = "new_fact_main_passage"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny_encoder(tmp_path_factory.mktemp("tiny") / "encoder"))


def rated_rows() -> Rows:
    """Passages that say the new fact (rated 7) or another (rated 1)."""
    rows = []
    for number, name in enumerate(NAMES):
        for shift, rating in ((0, "7"), (1, "1")):
            here, other = CITIES[number % len(CITIES)], CITIES[(number + shift) % len(CITIES)]
            content = f"Main passage: {name} lives in {other}. New fact: {name} lives in {here}"
            rows.append({"sample_id": name, "label": ITEM.replace("_", "-"), "score": rating, "content": content})
    return rows


def changed(rows: Rows, row: int, **values: str) -> Rows:
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
    data = read_training(write_csv(tmp_path / "a.csv", rows))
    assert data["pair"].tolist() == [
        ("One. Two.", "A is one, two"),
        ("One.", "A is one"),
        ("He said: Claim: no.", "A is two"),
    ]
    assert data["part"].tolist() == ["paragraph", "sentence", "sentence"]
    assert (data["group"].tolist(), classes_of(data)) == ([0, 0, 0], LABELS)


def test_ratings_are_read_in_their_authors_columns(tmp_path: Path) -> None:
    data = read_training(write_csv(tmp_path / "a.csv", rated_rows()))
    assert data["pair"][0] == (
        "Main passage: Ann lives in Rome. New fact: Ann lives in Rome",
        "The main passage is written as if the new fact is true.",
    )
    assert data[["sample", "part", "target"]].to_numpy()[:2].tolist() == [["Ann", ITEM, 7.0], ["Ann", ITEM, 1.0]]
    assert (data["group"].nunique(), classes_of(data)) == (len(NAMES), ())
    text = "\t".join(("sample_id", "content", "score", "label")) + "\n001\tMain passage: NA\t7.0\tfluency\n"
    (tmp_path / "survey_ratings_dataset.tsv").write_text(text, encoding="utf-8-sig")
    assert read_training(tmp_path / "survey_ratings_dataset.tsv")["target"][0] == 7


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (changed(annotation_rows(), 3, classification="suports"), UnknownNameError, "row 3.*'suports'. Did you mean"),
        (changed(annotation_rows(), 3, sample_id=" "), RecordError, "row 3: sample_id, passage or claim is empty"),
        (without("classification"), RecordError, r"columns \['label', 'score'\] are missing"),
        (without("premise"), RecordError, r"columns \['premise'\] are missing"),
        (changed(rated_rows(), 3, score="8"), RecordError, "row 3: score '8', expected a number from 1 to 7"),
        (changed(rated_rows(), 3, label="topicalty"), UnknownNameError, "'topicalty'. Did you mean 'topicality'"),
        (changed(rated_rows(), 3, content=" "), RecordError, "row 3: .* empty"),
    ],
)
def test_bad_rows(tmp_path: Path, rows: Rows, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_training(write_csv(tmp_path / "bad.csv", rows))


def test_too_few_samples_and_missing_classes(tmp_path: Path) -> None:
    two = [row for row in annotation_rows() if row["classification"] != "neutral"]
    with pytest.raises(RecordError, match=r"training data: no row says neutral\. Bring rows of the missing class"):
        train(read_training(write_csv(tmp_path / "two.csv", two)), "none", tmp_path / "out", RECIPES["small"])
    assert not (tmp_path / "out").exists()
    few = read_training(write_csv(tmp_path / "few.csv", rated_rows()[:2]))
    with pytest.raises(RecordError, match="4 folds of 1 independent samples"):
        train(few, "none", tmp_path / "out", RECIPES["small"])


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["", "x x x", "X x  x", "y y y"])), max_size=12))
def test_groups_are_the_connected_components(keys: list[tuple[str, str]]) -> None:
    groups = training_data([((text, "c"), 0, "p", sample, (text,)) for sample, text in keys])["group"].tolist()
    for number in range(len(keys)):
        seen, frontier = {number}, [number]  # breadth first
        while frontier:
            sample, text = keys[frontier.pop()]
            for other, (name, words) in enumerate(keys):
                same = name == sample or (text and words.casefold().split() == text.casefold().split())
                if same and other not in seen:
                    seen.add(other)
                    frontier.append(other)
        assert {i for i, group in enumerate(groups) if group == groups[number]} == seen


def answers(run: RunTexts, folder: Path) -> Path:
    """People's labels and ratings of the texts of a run."""
    place = {"editor": "memit", "relation": "P19", "phase": "post", "sample": 0, "status": "ok", "reply": ""}
    claim = {"claim": "Marie Curie was born in London", "claim_kind": "new_fact", "claim_id": "new_fact"}
    labelled = [
        place | claim | {"case_id": case, "passage": "subject", "annotator": "A1", "label": label, "evidence": [part]}
        for case, label, part in (
            (1, "supports", "was born in"),
            (2, "neutral", " "),
            (3, None, ""),
            (99, "neutral", ""),
        )
    ]
    rated = [
        place | {"case_id": case, "item": "fluency", "rater": "A1", "rating": rating, "tries": 1}
        for case, rating in ((1, 7.0), (2, 3.5), (3, None), (4, 2.0))
    ]
    write_table(folder / "annotations.parquet", pa.Table.from_pylist(labelled, schema=ANNOTATIONS))
    write_table(folder / "ratings.parquet", pa.Table.from_pylist(rated, schema=RATINGS))
    return folder


def test_answers_of_people_train_both(tmp_path: Path) -> None:
    run = RunTexts(write_run(tmp_path / "run", 4))
    folder = answers(run, tmp_path / "people")
    claims, survey = (people_training(folder / f"{name}.parquet", run) for name in ("annotations", "ratings"))
    told = [list(zip(data["target"], data["part"])) for data in (claims, survey)]
    assert told[0] == [(0, "paragraph"), (0, "sentence"), (1, "paragraph")]
    assert told[1] == [(7, "fluency"), (2, "fluency")], "whole ratings only"
    assert set(survey["group"]) == {0}, "one text"
    other = RunTexts(write_run(tmp_path / "other", 4, "Other."))
    write_table(folder / "ratings.parquet", pa.Table.from_pylist([], schema=RATINGS))
    with pytest.raises(RecordError, match=r"none of 0 answers is about a text of .*other\. Give the run"):
        people_training(folder / "ratings.parquet", other)


@pytest.mark.slow
def test_the_command_trains_on_a_folder_and_refuses_to_label_those_texts(
    tmp_path: Path, encoder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = answers(RunTexts(write_run(tmp_path / "run", 2)), tmp_path / "people"), tmp_path / "rater"
    how = ["--out", str(out), "--folds", "0", "--encoder", encoder]
    assert main(["texts", "train", str(folder / "ratings.parquet"), *how]) == 1
    assert "answers of people have no texts. Name their run with --run RUN" in capsys.readouterr().err
    assert main(["texts", "train", str(write_csv(tmp_path / "rows.csv", rated_rows())), *how]) == 0
    assert "16 rows; not measured" in capsys.readouterr().out
    text = rated_rows()[0]["content"].upper()
    table, _ = rate(survey(), survey_questions([sample(text)])[:1], load_rater(out))
    assert table["status"].to_pylist() == [LEFT_OUT]


@pytest.mark.slow
def test_one_call_measures_and_saves(tmp_path: Path, encoder: str) -> None:
    data = read_training(write_csv(tmp_path / "rows.csv", annotation_rows()))
    recipe = Recipe(5e-3, epochs=3, patience=1, max_length=64)
    report = train(data, encoder, tmp_path / "out", recipe, folds=4)
    assert json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))["figures"] == report["figures"]
    constant = report["figures"]["constant"]["all"]
    assert (constant["n"], constant["n_groups"], constant["accuracy"]["value"]) == (40, 8, pytest.approx(0.4))
    assert constant["contradicts"]["support"] == 16
    assert sum(map(sum, report["figures"]["trained"]["all"]["confusion"])) == 40
    assert {file.name for file in (tmp_path / "out").iterdir()} >= {"config.json", "model.safetensors", "learned.json"}
    pairs = [claim_question(text, "Ann sang", {}) for text in (data["pair"][0][0].upper(), "She sang in Rome.")]
    table, _ = rate(CLAIMS, pairs, load_classifier(tmp_path / "out"))
    assert table["status"].to_pylist() == [LEFT_OUT, "ok"]
    with pytest.raises(StorageError, match="exists and is not an empty folder"):
        train(data, encoder, tmp_path / "out", recipe, folds=0)
    with pytest.raises(RecordError, match="9 folds of 8 independent samples, expected 0 or 2 to 8"):
        train(data, encoder, tmp_path / "more", recipe, folds=9)


def sample(text: str) -> SurveySample:
    facts: dict[str, tuple[str, ...]] = {"subject": (), "related": ()}
    passages = {"main": text, "related": "Rome is a city."}
    return SurveySample("ft", 1, "P1", "post", 0, "Ann", "Rome", "Ann lives in Rome", facts, passages)


@pytest.mark.slow
def test_a_saved_rater_answers_the_survey_the_same_in_any_batch(tmp_path: Path, encoder: str) -> None:
    data = read_training(write_csv(tmp_path / "rows.csv", rated_rows()))
    report = train(data, encoder, tmp_path / "out", Recipe(5e-3, epochs=10, max_length=64, patience=0), folds=2)
    assert report["figures"]["constant"]["all"]["mean_absolute_error"]["value"] == 3.0
    assert report["figures"]["trained"]["all"]["n"] == 16
    rater = load_rater(tmp_path / "out")
    questions = survey_questions([sample("Eve works in Rome.")])
    rows = rate(survey(), [questions[0], questions[7]], rater)[0].to_pylist()
    assert 1 <= rows[0]["rating"] <= 7
    assert (rows[1]["rating"], rows[1]["status"]) == (None, f"the rater was trained on {ITEM} only")
    pairs = [survey_questions([sample(f"Ann lives in {city}. " * n)])[0].pair for city in CITIES for n in (1, 4)]
    alone = np.concatenate([rater.predict([pair]) for pair in pairs])
    np.testing.assert_allclose(rater.predict(pairs), alone, atol=1e-5)
    with pytest.raises(StorageError, match=r"encoder: no rater\. Expected a folder made by `seesaw-cf texts train`"):
        load_rater(encoder)


def test_no_group_and_no_text_is_ever_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[pd.DataFrame] = []

    def fit_nothing(data: pd.DataFrame, *_: object) -> None:
        seen.append(data)

    def predict_nothing(data: pd.DataFrame, *_: object) -> np.ndarray:
        assert set(data["sample"]).isdisjoint(seen[-1]["sample"])
        assert set(data["pair"].str[0]).isdisjoint(seen[-1]["pair"].str[0])
        return np.zeros(len(data))

    monkeypatch.setattr(train_module, "fit", fit_nothing)
    monkeypatch.setattr(train_module, "predict", predict_nothing)
    # "He" is a premise of every group: too short to join them, so the training part must do without it.
    texts = [f"text of person {i}" if i % 3 else "He" for i in range(36)]
    rows = [((text, f"claim {i % 4}"), i % 3, "sentence", str(i // 6), (text,)) for i, text in enumerate(texts)]
    figures: Any = cross_validate(training_data(rows), "none", RECIPES["small"], folds=3)
    assert len(seen) == 3
    assert figures["trained"]["all"]["supports"]["recall"] == 1


def test_published_settings() -> None:
    assert RECIPES["leme"] == Recipe(6e-6, 20, 1, 4, 0.01, 1000, 0, 512, half=True)  # LEME, Appendix B.3


def test_figures_of_labels_by_hand() -> None:
    truth, given_, groups = [0] * 10 + [1] * 10, [0] * 20, [n // 2 for n in range(20)]
    grouped, rows = label_scores(truth, given_, groups, LABELS), label_scores(truth, given_, range(20), LABELS)
    assert grouped["accuracy"]["value"] == rows["accuracy"]["value"] == pytest.approx(0.5)
    assert grouped["accuracy"]["low"] < rows["accuracy"]["low"] - 0.02, "groups are all right or all wrong"
    assert grouped["confusion"] == [[10, 0, 0], [10, 0, 0], [0, 0, 0]]
    recalls = (grouped["supports"]["precision"], grouped["supports"]["recall"], grouped["neutral"]["recall"])
    assert (*recalls, grouped["n"], grouped["n_groups"]) == (0.5, 1, 0, 20, 10)
    few = label_scores(truth, given_, [n // 10 for n in range(20)], LABELS)
    assert (few["accuracy"]["low"], few["accuracy"]["high"]) == (None, None)


def test_figures_of_ratings_by_hand() -> None:
    # Differences -3, -1, 0, 1, 3: three of five are within one. The released code counts four (-3 is "<= 1").
    scores = rating_scores([5, 5, 5, 5, 4], [2, 4, 5, 6, 7], [0, 1, 2, 3, 4], draws=0)
    assert (scores["within_one"]["value"], scores["exact"]["value"]) == pytest.approx((0.6, 0.2))
    assert scores["mean_absolute_error"]["value"] == pytest.approx(8 / 5)
    constant = rating_scores([1, 1, 7, 7], [1, 1, 1, 1], [0, 0, 1, 1], draws=200)
    assert constant["exact"] == {"value": pytest.approx(0.5), "low": None, "high": None}, "two samples give no interval"
    assert (constant["spearman"]["value"], constant["n_groups"]) == (None, 2)
    # Differences 0, 1, -3, 0.4 (rounds to 0): mean of their sizes 1.1.
    four = rating_scores([1, 4, 7, 2], [1, 5, 4, 2.4], [0, 1, 2, 3], draws=0)
    assert (four["within_one"]["value"], four["mean_absolute_error"]["value"]) == pytest.approx((0.75, 1.1))
    assert four["spearman"]["value"] == pytest.approx(1 - 6 * (0 + 1 + 1 + 0) / (4 * 15))
    nothing = rating_scores([], [], [], draws=5)
    assert (nothing["n"], nothing["exact"]["value"], nothing["spearman"]["value"]) == (0, None, None)


def test_labels_of_nli_models_are_found_in_any_order_or_refused(tmp_path: Path) -> None:
    first = load_classifier(save_classifier(tmp_path / "a", ["ENTAILMENT", "neutral", "contradiction"]))
    other = load_classifier(save_classifier(tmp_path / "b", ["contradiction", "entailment", "neutral"]))
    pair = [("Ann lives in Rome. She sings.", "Ann lives in Rome")]
    one, two = first.classify(pair)[0], other.classify(pair)[0]
    # The weights are the same, so only the order of the outputs differs.
    np.testing.assert_allclose(one.probabilities, np.array(two.probabilities)[[2, 0, 1]], atol=1e-6)
    assert set(one.evidence) <= {"Ann lives in Rome.", "She sings."}
    assert bool(one.evidence) == (one.label != "neutral")
    folder = save_classifier(tmp_path / "c", ["LABEL_0", "LABEL_1", "LABEL_2"])
    with pytest.raises(UnknownNameError, match=r"answers \['LABEL_0', 'LABEL_1', 'LABEL_2'\], expected three labels"):
        load_classifier(folder)
    meaning = {"LABEL_2": "supports", "LABEL_0": "neutral", "LABEL_1": "contradicts"}
    assert load_classifier(folder, labels=meaning).classify(pair)[0].label in LABELS
    with pytest.raises(UnknownNameError, match="not_entailment"):
        load_classifier(save_classifier(tmp_path / "d", ["entailment", "not_entailment"]))
    with pytest.raises(UnknownNameError, match="encoder 'no-such-encoder' could not be loaded"):
        load_classifier("no-such-encoder")


def test_the_claim_survives_a_long_premise(encoder: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    for claim in ("Ann lives in Rome", "Rome " * 60):
        ids = encode_pairs(tokenizer, [("Oslo " * 500, claim)], 48)["input_ids"][0]
        kept = str(tokenizer.decode(ids, skip_special_tokens=True))
        assert len(ids) == 48
        assert kept.endswith("oslo ann lives in rome") or kept.count("rome") >= 20
