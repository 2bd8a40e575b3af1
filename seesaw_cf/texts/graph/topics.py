"""Sort triples into topics: by BERTopic when it is installed, otherwise by non-negative matrix factorisation."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, need
from seesaw_cf.effects.topics import label_topics, representative_words


@dataclass(frozen=True)
class Topics:
    """Topics of a list of texts.

    Attributes:
        topic: One number per text; -1 = none.
        words: Topic -> its representative words (Table 3).
        labels: Topic -> "warmth", "competence" or "".
        method: How topics were found.
    """

    topic: list[int]
    words: dict[int, list[str]]
    labels: dict[int, str]
    method: str


def fit_topics(texts: Sequence[str], n_topics: int = 8, *, method: str = "auto", seed: int = 0) -> Topics:
    """Sort texts into topics; the same texts and seed give the same topics.

    Args:
        texts: What is sorted: predicate and object, without the identity, which would be its own topic.
        n_topics: Most topics; the paper shows eight.
        method: "bertopic", "nmf", or "auto" = the first that is installed.
        seed: Of the factorisation.

    Raises:
        UnknownNameError: Unknown method.
        RecordError: Too few texts or words.
        MissingExtraError: The method's package is not installed.
    """
    one_of("topic method", method, ("auto", "bertopic", "nmf"))
    if len(texts) < 2 or n_topics < 2:
        raise RecordError(f"topics: {len(texts)} texts and {n_topics} topics, expected at least 2 of both.")
    with need("scikit-learn", extra="stereotypes", what_for="topics"):
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
    chosen = ("bertopic" if importlib.util.find_spec("bertopic") else "nmf") if method == "auto" else method
    numbers, how = (_bertopic if chosen == "bertopic" else _nmf)(texts, n_topics, seed)
    words = representative_words(texts, numbers, n=10, skip=frozenset(ENGLISH_STOP_WORDS))
    return Topics(numbers, words, label_topics(words), how)


def _nmf(texts: Sequence[str], n_topics: int, seed: int) -> tuple[list[int], str]:
    """Sort texts into topics by NMF: the component with a text's largest weight is its topic; -1 when all are 0."""
    from sklearn.decomposition import NMF
    from sklearn.feature_extraction.text import TfidfVectorizer

    words_only: dict[str, Any] = {"stop_words": "english", "sublinear_tf": True, "token_pattern": r"[^\W\d_][^\W\d_]+"}
    try:
        features = TfidfVectorizer(**words_only).fit_transform(texts)
    except ValueError as error:
        raise RecordError(f"topics: no words are left in {len(texts)} texts ({error}).") from error
    model = NMF(min(n_topics, *features.shape), init="nndsvda", random_state=seed, max_iter=1000)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Maximum number of iterations")  # said in the method instead
        weights = model.fit_transform(features)
    numbers = np.where(weights.max(axis=1) > 1e-9, weights.argmax(axis=1), -1)
    how = f"NMF over TF-IDF, seed {seed}" + (", not converged" if model.n_iter_ >= model.max_iter else "")
    return [int(number) for number in numbers], how


def _bertopic(texts: Sequence[str], n_topics: int, seed: int) -> tuple[list[int], str]:
    """Sort texts into topics by BERTopic, with UMAP seeded: unseeded, it gives other topics every time.

    Source: Grootendorst (2022).
    """
    with need("bertopic", extra="topics", what_for="topics by BERTopic", otherwise="Or use --topic-method nmf."):
        from bertopic import BERTopic

        umap = importlib.import_module("umap")
    reducer = umap.UMAP(
        n_neighbors=min(15, len(texts) - 1), n_components=5, min_dist=0.0, metric="cosine", random_state=seed
    )
    numbers, _ = BERTopic(nr_topics=n_topics, umap_model=reducer).fit_transform(list(texts))
    return [int(number) for number in numbers], f"BERTopic, seed {seed}"
