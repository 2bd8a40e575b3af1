"""What a trained annotator has to beat."""

from __future__ import annotations

import numpy as np

from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.errors import need
from seesaw_cf.longform.annotate.lexical import LexicalAnnotator
from seesaw_cf.longform.train.annotations import AnnotationData
from seesaw_cf.stats.bootstrap import Floats


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
    return np.array([[float(judgement.label == label) for label in LABELS] for judgement in judgements]).reshape(
        -1, len(LABELS)
    )


def tfidf(train: AnnotationData, test: AnnotationData) -> Floats:
    """Logistic regression on TF-IDF of the words and word pairs of "premise claim", classes weighted alike.

    Raises:
        MissingExtraError: scikit-learn is missing; install `seesaw_cf[longform]`.
    """
    with need("scikit-learn", extra="longform", what_for="training"):
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    rows = vectorizer.fit_transform([f"{premise} {claim}" for premise, claim in train.pairs])
    fitted = LogisticRegression(class_weight="balanced", max_iter=2000).fit(rows, train.labels)
    out = np.zeros((len(test.labels), len(LABELS)))
    texts = [f"{premise} {claim}" for premise, claim in test.pairs]
    out[:, fitted.classes_] = fitted.predict_proba(vectorizer.transform(texts))
    return out
