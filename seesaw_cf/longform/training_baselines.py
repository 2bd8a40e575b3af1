"""What a trained annotator has to beat."""

from __future__ import annotations

import numpy as np

from seesaw_cf.errors import SeesawError
from seesaw_cf.longform.annotate import LABELS
from seesaw_cf.longform.training_data import AnnotationData
from seesaw_cf.stats.bootstrap import Floats

__all__ = ["majority", "tfidf"]


def majority(train: AnnotationData, test: AnnotationData) -> Floats:
    """The shares of the classes in the training part, whatever is asked."""
    shares = np.bincount(train.labels, minlength=len(LABELS)) / len(train.labels)
    return np.tile(shares, (len(test.labels), 1))


def tfidf(train: AnnotationData, test: AnnotationData) -> Floats:
    """Logistic regression on TF-IDF of the words and word pairs of "premise claim", classes weighted alike.

    Raises:
        SeesawError: scikit-learn is missing; install `seesaw_cf[longform]`.
    """
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
    except ImportError as error:
        raise SeesawError("training needs scikit-learn: pip install 'seesaw_cf[longform]'.") from error
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    rows = vectorizer.fit_transform([f"{premise} {claim}" for premise, claim in train.pairs])
    fitted = LogisticRegression(class_weight="balanced", max_iter=2000).fit(rows, train.labels)
    out = np.zeros((len(test.labels), len(LABELS)))
    asked = [f"{premise} {claim}" for premise, claim in test.pairs]
    out[:, fitted.classes_] = fitted.predict_proba(vectorizer.transform(asked))
    return out
