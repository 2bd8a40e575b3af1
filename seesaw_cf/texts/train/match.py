"""Fits the annotators for few labelled rows: a random forest on features, and its temperature."""

from __future__ import annotations

import numpy as np

from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.texts.annotate.annotate import fit_temperature
from seesaw_cf.texts.annotate.match import TREES, Featurizer, MatchAnnotator, fit_forest
from seesaw_cf.texts.train.annotations import AnnotationData, with_neutral_sentences
from seesaw_cf.texts.train.scores import grouped_folds

FOLDS, FEWER = 4, 100  # inner folds whose left-out rows set the temperature, and trees of their forests
WORD_TREES = 48  # keep the annotator that ships below 300 KB


def fit_words(data: AnnotationData, seed: int = 0) -> MatchAnnotator:
    """Run `fit_match` without an encoder: fewer trees, classes as often as they occur, neutral sentences added."""
    return fit_match(with_neutral_sentences(data, seed), Featurizer(), seed, WORD_TREES, None)


def fit_match(
    data: AnnotationData,
    featurizer: Featurizer,
    seed: int = 0,
    trees: int | None = None,
    class_weight: str | None = "balanced_subsample",
) -> MatchAnnotator:
    """Fit the forest on all rows, and the temperature on rows that forests of the same kind have not seen.

    Args:
        data: What to train on.
        featurizer: Of the encoder, which stays as it is.
        seed: Of the forest and the inner folds.
        trees: How many; None = `TREES`.
        class_weight: See `fit_forest`.

    Raises:
        RecordError: A class has no row.
    """
    data.check_classes("training data")
    rows, labels = featurizer.rows(data.pairs), np.array(data.labels)
    temperature = 1.0
    folds = min(FOLDS, len(set(data.groups)))
    if folds > 1:
        fold = np.array(grouped_folds(data.groups, folds, seed))
        out = np.full((len(labels), len(LABELS)), np.nan)
        for number in range(folds):
            if len(set(labels[fold != number])) == len(LABELS):
                part = rows[fold != number], labels[fold != number], len(LABELS)
                left_out = fit_forest(*part, seed, min(FEWER, trees or FEWER), class_weight)
                out[fold == number] = left_out.probabilities(rows[fold == number])
        tested = ~np.isnan(out[:, 0])
        temperature = fit_temperature(labels[tested], out[tested]) if tested.any() else 1.0
    forest = fit_forest(rows, labels, len(LABELS), seed, trees or TREES, class_weight)
    return MatchAnnotator(featurizer, forest, temperature)
