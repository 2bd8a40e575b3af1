"""Training annotators, and saying how good they are on samples they have not seen."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import need
from seesaw_cf.base.files import atomic_folder, write_text
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.plain import json_text
from seesaw_cf.texts.annotate.annotate import Pair, temper
from seesaw_cf.texts.annotate.folder import write_learned
from seesaw_cf.texts.annotate.lexical import LexicalAnnotator
from seesaw_cf.texts.annotate.reports import AnnotatorReport, ClassifierScores, Figures
from seesaw_cf.texts.train.annotations import AnnotationData, read_annotations
from seesaw_cf.texts.train.card import annotator_card, by_sample
from seesaw_cf.texts.train.scores import classifier_scores, grouped_folds

# What a trained annotator has to beat.


def majority(train: AnnotationData, test: AnnotationData) -> Floats:
    """Return the shares of the classes among premises of the same kind (passage or sentence) in the training part."""
    labels, units = np.array(train.labels), np.array(train.units)
    everything = {unit: labels[units == unit] for unit in set(train.units)}
    shares = {unit: np.bincount(own, minlength=len(LABELS)) / len(own) for unit, own in everything.items()}
    whole = np.bincount(labels, minlength=len(LABELS)) / len(labels)
    return np.array([shares.get(unit, whole) for unit in test.units]).reshape(-1, len(LABELS))


def lexical(train: AnnotationData, test: AnnotationData) -> Floats:
    """Return the rule of `LexicalAnnotator`, which is not trained, certain of itself."""
    judgements = LexicalAnnotator().classify(test.pairs)
    certain = [[float(judgement.label == label) for label in LABELS] for judgement in judgements]
    return np.array(certain).reshape(-1, len(LABELS))


def tfidf(train: AnnotationData, test: AnnotationData) -> Floats:
    """Return probabilities by logistic regression on TF-IDF of the words and word pairs of "premise claim".

    Classes are weighted alike.

    Raises:
        MissingExtraError: scikit-learn is missing; install `seesaw_cf[longform]`.
    """
    with need("scikit-learn", extra="longform", what_for="training"):
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    classifier = LogisticRegression(class_weight="balanced", max_iter=2000)
    texts, unseen = ([" ".join(pair) for pair in part.pairs] for part in (train, test))
    fitted = make_pipeline(words, classifier).fit(texts, train.labels)
    out = np.zeros((len(test.labels), len(LABELS)))
    out[:, fitted.classes_] = fitted.predict_proba(unseen)
    return out


_log = logging.getLogger(__name__)
SMALL = 5000  # rows below which "auto" keeps the encoder frozen


class Trained(Protocol):
    """What a recipe gives."""

    temperature: float

    def probabilities(self, pairs: Sequence[Pair]) -> Floats:
        """Return uncalibrated probabilities of `LABELS`, (n, 3)."""

    def save(self, folder: Path, settings: JsonObject) -> None:
        """Write everything that `load_annotator` needs into an existing folder."""


Fit = Callable[[AnnotationData, int], Trained]


def _match(encoder: str) -> Fit:
    from seesaw_cf.texts.annotate.embed import Embedder
    from seesaw_cf.texts.annotate.match import Featurizer
    from seesaw_cf.texts.train.match import fit_match

    featurizer = Featurizer(Embedder(encoder))
    return lambda data, seed: fit_match(data, featurizer, seed)


def _words(encoder: str) -> Fit:
    from seesaw_cf.texts.train.match import fit_words

    return fit_words


def _pair(preset: str, encoder: str) -> Fit:
    from seesaw_cf.texts.train.encoder import PRESETS, fit_pair

    return lambda data, seed: fit_pair(data, encoder, PRESETS[preset], seed)


# Recipe -> makes the function that fits it with an encoder.
RECIPES: dict[str, Callable[[str], Fit]] = {
    "words": _words,
    "match": _match,
    "pair": partial(_pair, "small"),
    "pair-whole": partial(_pair, "whole"),
    "leme-deberta": partial(_pair, "leme-deberta"),
}


def recipe_for(name: str, rows: int) -> str:
    """Return the recipe that "auto" stands for: "match" below 5,000 rows, else "pair".

    Raises:
        UnknownNameError: No such recipe.
    """
    if name == "auto":
        return "match" if rows < SMALL else "pair"
    one_of("recipe", name, ["auto", *RECIPES])
    return name


@dataclass(frozen=True, slots=True)
class HeldOutAnswers:
    """Probabilities for rows that a classifier was not fitted on.

    Attributes:
        raw, calibrated: (n, 3); equal for classifiers without temperature.
    """

    raw: Floats
    calibrated: Floats


def cross_validate(
    data: AnnotationData, fits: Mapping[str, Fit], *, folds: int = 4, seed: int = 0
) -> dict[str, HeldOutAnswers]:
    """Answer every row by classifiers that have seen nothing of its group.

    Args:
        data: All rows.
        fits: Recipe -> how to fit it.
        folds: Number of grouped folds.
        seed: Of folds and fits.

    Returns:
        Recipe (and those of `BASELINES`) -> answers in the order of the rows.

    Raises:
        RecordError: Fewer groups than folds, or a training part without one of the classes.
    """
    fold = np.array(grouped_folds(data.groups, folds, seed))
    answers = {
        name: HeldOutAnswers(*(np.zeros((len(fold), len(LABELS))) for _ in range(2))) for name in (*BASELINES, *fits)
    }
    for number in range(folds):
        train, test = data.split(fold == number)
        train = train.without_texts_of(test)  # premises too short to join groups
        train.check_classes(f"training part of fold {number + 1} of {folds}")
        for name, baseline in BASELINES.items():
            answers[name].raw[fold == number] = answers[name].calibrated[fold == number] = baseline(train, test)
        for name, fit in fits.items():
            _log.info("fold %d of %d: %s on %d rows", number + 1, folds, name, len(train.labels))
            trained = fit(train, seed)
            raw = trained.probabilities(test.pairs)
            answers[name].raw[fold == number] = raw
            answers[name].calibrated[fold == number] = temper(raw, trained.temperature)
    return answers


BASELINES: dict[str, Callable[[AnnotationData, AnnotationData], Floats]] = {
    "majority": majority,
    "lexical": lexical,
    "tfidf": tfidf,
}


def figures(data: AnnotationData, answers: HeldOutAnswers) -> Figures:
    """Return the scores on whole passages and on single sentences apart, and on all rows.

    Returns:
        "paragraph", "sentence", "sentence_decided" (neutral not offered: no highlighted sentence is), "all" -> see
        `classifier_scores`, with `ece_raw`, the calibration error before tempering.
    """
    parts = {unit: [i for i, own in enumerate(data.units) if own == unit] for unit in ("paragraph", "sentence")}
    out: Figures = {}
    for name, rows in {**parts, "all": list(range(len(data.labels)))}.items():
        if rows:
            out[name] = _scores(data, answers, rows)
    if parts["sentence"] and all(LABELS[data.labels[i]] != "neutral" for i in parts["sentence"]):
        decided = HeldOutAnswers(*(_without_neutral(side) for side in (answers.raw, answers.calibrated)))
        out["sentence_decided"] = _scores(data, decided, parts["sentence"])
    return out


def _scores(data: AnnotationData, answers: HeldOutAnswers, rows: list[int]) -> ClassifierScores:
    truth, groups = ([column[i] for i in rows] for column in (data.labels, data.groups))
    raw = classifier_scores(truth, answers.raw[rows], groups, draws=0)
    return {**classifier_scores(truth, answers.calibrated[rows], groups), "ece_raw": raw["ece"]}


def _without_neutral(probabilities: Floats) -> Floats:
    polar = probabilities * (np.arange(len(LABELS)) != LABELS.index("neutral"))
    return np.asarray(polar / np.maximum(polar.sum(axis=1, keepdims=True), 1e-12))


def train_annotator(
    data: AnnotationData | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    encoder: str = "minilm",
    recipe: str = "auto",
    folds: int = 4,
    seed: int = 0,
    zero_shot: str | None = None,
    source: str = "",
) -> AnnotatorReport:
    """Measure a recipe on unseen samples, then fit it on everything and save it.

    Args:
        data: A CSV file as `read_annotations` describes, or what it returns.
        out: New folder: the annotator for `load_annotator`, and report.json.
        encoder: "minilm", a folder or a Hub id.
        recipe: "auto" or one of `RECIPES`.
        folds: Grouped folds that measure it; 0 = do not measure.
        seed: Of folds, weights and order.
        zero_shot: An NLI model to measure for comparison.
        source: Where the data come from, and their licence, for the card (README.md).

    Returns:
        The report: `figures` per recipe and baseline, accuracy in each of the `samples`, data counts and notes.

    Raises:
        RecordError, UnknownNameError, StorageError: See `read_annotations` and `RECIPES`; the folder is not empty.
    """
    rows = data if isinstance(data, AnnotationData) else read_annotations(data)
    rows.check_classes("training data")
    name = recipe_for(recipe, len(rows.labels))
    report: AnnotatorReport = {
        "recipe": name,
        "encoder": encoder,
        "seed": seed,
        "folds": folds,
        "notes": rows.notes,
        "n": len(rows.labels),
        "n_groups": len(set(rows.groups)),
        "labels": LABELS,
    }
    with atomic_folder(out) as folder:
        fits = {name: RECIPES[name](encoder)}
        if folds:
            answers = cross_validate(rows, fits, folds=folds, seed=seed)
            if zero_shot is not None:
                answers["zero_shot"] = _zero_shot(zero_shot, rows)
            report["figures"] = {own: figures(rows, held_out) for own, held_out in answers.items()}
            last = sorted(answers, key=lambda own: own == name)
            report["samples"] = by_sample(rows, {own: answers[own].calibrated for own in last})
        fits[name](rows, seed).save(folder, {"recipe": name, "labels": LABELS, "seed": seed, "n": len(rows.labels)})
        write_learned(folder, (premise for premise, _ in rows.pairs))
        write_text(folder / "report.json", json_text(report))
        write_text(folder / "README.md", annotator_card(report, source))
    return report


def _zero_shot(model: str, data: AnnotationData) -> HeldOutAnswers:
    from seesaw_cf.texts.annotate.encoder import load_nli

    raw = load_nli(model).probabilities(data.pairs)
    return HeldOutAnswers(raw, raw)
