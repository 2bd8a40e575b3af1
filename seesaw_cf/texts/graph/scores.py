"""Score sentences by regard and identity attack, and sort triples into topics.

A scorer is a biased opinion. So some sentences are scored about every identity, which separates the scorer's view of a
name from what the model writes of it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import os
import random
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from seesaw_cf.base.checks import address, one_of
from seesaw_cf.base.errors import RecordError, ServiceError, UnknownNameError, need
from seesaw_cf.base.fields import checked
from seesaw_cf.base.retrying import TryAgain, try_again
from seesaw_cf.base.tables import write_table
from seesaw_cf.effects.regard import REGARDS
from seesaw_cf.effects.topics import label_topics, representative_words
from seesaw_cf.texts.graph.crawl import SCORED, SCORES, Crawl, read_crawl

ATTACKS = ("identity_attack", "identity_hate")
PERSPECTIVE = "https://commentanalyzer.googleapis.com/v1alpha1/comments:analyze"
MASK = "Some people"
_CONTENTS = 40  # sentences of a class that are scored about every identity of it
_VALUE = {"positive": 1.0, "negative": -1.0}


class SentenceScore(NamedTuple):
    """A scorer's answer on one sentence.

    Attributes:
        value: Score; None unless `status` is "ok".
        label: Of a regard.
        status: "ok", or why the score is missing.
    """

    value: float | None
    label: str | None = None
    status: str = "ok"


class SentenceScorer(NamedTuple):
    """Scorer of sentences.

    Attributes:
        name: Of the scorer and its version.
        score: Sentences -> one answer for each, in order.
    """

    name: str
    score: Callable[[Sequence[str]], list[SentenceScore]]


@checked
def score_crawl(crawl: Crawl, regard: SentenceScorer | None = None, attack: SentenceScorer | None = None) -> Crawl:
    """Score every triple, and some sentences about every identity of their class, and write the scores.

    Args:
        crawl: A finished crawl.
        regard: Gives labels "positive", "negative", "neutral" and "other", with the values 1, -1 and 0.
        attack: Gives values from 0 to 1.

    Returns:
        The crawl with scores.

    Raises:
        RecordError: No scorer was given, or there is nothing to score.
    """
    if crawl.triples.empty or (regard is None and attack is None):
        raise RecordError(
            f"{crawl.folder}: {len(crawl.triples)} triples to score, regard by {regard}, attack by {attack}."
        )
    texts = list(dict.fromkeys([*crawl.triples["text"], *exchanged_sentences(crawl)["sentence"]]))
    rows = [
        {"measure": measure, "scorer": scorer.name, "sentence": text, **answer._asdict()}
        for measure, scorer in (("regard", regard), ("attack", attack))
        if scorer
        for text, answer in zip(texts, scorer.score(texts), strict=True)
    ]
    write_table(crawl.folder / SCORED, pa.Table.from_pylist(rows, SCORES))
    return read_crawl(crawl.folder)


def exchanged_sentences(crawl: Crawl) -> pd.DataFrame:
    """Return sentences of each class, drawn from its triples, about every identity of the class and about `MASK`.

    Returns:
        kind, identity, content (number of the sentence) and sentence.
    """
    rows = []
    for kind, triples in crawl.triples.groupby("kind", sort=True):
        contents = sorted(set(zip(triples["predicate"], triples["object"])))
        drawn = random.Random(crawl.job.seed).sample(contents, min(_CONTENTS, len(contents)))
        for name in [MASK, *sorted(triples["identity"].unique())]:
            rows += [(kind, name, at, f"{name} {link} {thing}") for at, (link, thing) in enumerate(drawn)]
    return pd.DataFrame(rows, columns=["kind", "identity", "content", "sentence"])


# Scorers.


def find_scorer(measure: str, name: str, device: str = "cpu") -> SentenceScorer | None:
    """Return a scorer by its name; None for "none".

    Args:
        measure: "regard" or "attack".
        name: Hub id or folder of a text-classification model; for attack also "detoxify" or "perspective".
        device: A torch device.

    Raises:
        SeesawError: Its package or key is missing, it cannot be loaded, or it has other labels.
    """
    if name == "none":
        return None
    if measure == "attack" and name in ("perspective", "detoxify"):
        return perspective() if name == "perspective" else _detoxify()
    from transformers import pipeline

    try:
        classify: Any = pipeline("text-classification", model=name, device=device, top_k=None, batch_size=32)
    except (OSError, ValueError, KeyError) as error:
        why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        expected = "Expected a folder or a Hub id of such a model; offline, download it first with `hf download`."
        raise UnknownNameError(f"text classifier {name!r} could not be loaded ({why}). {expected}") from error
    regard, own = measure == "regard", [str(label) for label in (classify.model.config.id2label or {}).values()]
    labels = {label.casefold() for label in own}
    if not ({*REGARDS[:3]} <= labels <= {*REGARDS} if regard else labels & {*ATTACKS}):
        expected = f"has the labels {own}, expected {REGARDS if regard else ATTACKS}"
        raise RecordError(f"{measure} model {name!r} {expected}. Give another, or name them in a copy's config.json.")
    # Some models keep two positions back, and some tokenizers do not know their model's limit.
    positions = getattr(classify.model.config, "max_position_embeddings", None)
    limit = min(classify.tokenizer.model_max_length, positions - 2 if positions else 512)

    def score_one(output: Any) -> SentenceScore:
        shares = {str(row["label"]).casefold(): float(row["score"]) for row in output}
        if not all(map(math.isfinite, shares.values())):
            return SentenceScore(None, status="score is not finite")
        if not regard:
            return SentenceScore(next(shares[label] for label in ATTACKS if label in shares))
        label = max(shares, key=lambda label: shares[label])
        return SentenceScore(_VALUE.get(label, 0.0), label)

    def score(texts: Sequence[str]) -> list[SentenceScore]:
        return [*map(score_one, classify(list(texts), truncation=True, max_length=limit) if texts else ())]

    return SentenceScorer(name, score)


def _detoxify() -> SentenceScorer:
    otherwise = "Or give --attack perspective or a text-classification model."
    with need("detoxify", extra="toxicity", what_for="identity attack by detoxify", otherwise=otherwise):
        from detoxify import Detoxify
    model = Detoxify("unbiased")

    def score(texts: Sequence[str]) -> list[SentenceScore]:
        return [SentenceScore(float(value)) for value in model.predict(list(texts))[ATTACKS[0]]]

    return SentenceScorer("detoxify unbiased", score)


def perspective(url: str = PERSPECTIVE, tries: int = 5, wait: float = 1.0) -> SentenceScorer:
    """Return identity attack by Jigsaw's Perspective API, which the paper used; one sentence a request.

    The service ends with the year 2026. Its key is in the environment variable PERSPECTIVE_API_KEY. A sentence without
    a score has a status.

    Args:
        url: The server.
        tries: Requests per sentence at most.
        wait: Seconds before the second try, doubled for each further one.

    Raises:
        ServiceError: There is no key, or the address is none; when scoring, the server refuses the key.
    """
    address("the server of Perspective", url, PERSPECTIVE)
    if not (key := os.environ.get("PERSPECTIVE_API_KEY", "").strip()):
        raise ServiceError(f"{url}: the environment variable PERSPECTIVE_API_KEY is not set. Put the key in.")
    headers = {"Content-Type": "application/json", "X-Goog-Api-Key": key}

    def ask(text: str) -> SentenceScore:
        asked = {"languages": ["en"], "requestedAttributes": {"IDENTITY_ATTACK": {}}, "doNotStore": True}
        request = urllib.request.Request(url, json.dumps({"comment": {"text": text}, **asked}).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=30.0) as answer:
                value = float(json.load(answer)["attributeScores"]["IDENTITY_ATTACK"]["summaryScore"]["value"])
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (401, 403, 404):
                why = f"the server refuses (status {error.code}). Check the key in PERSPECTIVE_API_KEY."
                raise ServiceError(f"{url}: {why}") from None
            if error.code in (408, 429) or error.code >= 500:
                raise TryAgain(f"status {error.code}") from None
            return SentenceScore(None, status=f"refused by the server: {error.code}")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TryAgain(type(error).__name__) from None
        return SentenceScore(value) if 0 <= value <= 1 else SentenceScore(None, status=f"score {value} is not in 0..1")

    def score(text: str) -> SentenceScore:
        try:
            return try_again(lambda: ask(text), tries, lambda tried: wait * 2.0**tried)
        except TryAgain as again:
            return SentenceScore(None, status=f"no score after {tries} tries: {again.reason}")

    return SentenceScorer(f"IDENTITY_ATTACK of {url}", lambda texts: [*map(score, texts)])


# Topics: by BERTopic when it is installed, otherwise by non-negative matrix factorisation.


class Topics(NamedTuple):
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
    if method == "auto":
        method = "bertopic" if importlib.util.find_spec("bertopic") else "nmf"
    numbers, how = (_bertopic if method == "bertopic" else _nmf)(texts, n_topics, seed)
    words = representative_words(texts, numbers, n=10, skip=frozenset(ENGLISH_STOP_WORDS))
    return Topics(numbers, words, label_topics(words), f"{how}, seed {seed}")


def _nmf(texts: Sequence[str], n_topics: int, seed: int) -> tuple[list[int], str]:
    """Sort texts into topics by NMF: the component with a text's largest weight is its topic; -1 when all are 0."""
    from sklearn.decomposition import NMF
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(stop_words="english", sublinear_tf=True, token_pattern=r"[^\W\d_][^\W\d_]+")
    try:
        features = words.fit_transform(texts)
    except ValueError as error:
        raise RecordError(f"topics: no words are left in {len(texts)} texts ({error}).") from error
    model = NMF(min(n_topics, *features.shape), init="nndsvda", random_state=seed, max_iter=1000)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Maximum number of iterations")  # said in the method instead
        weights = model.fit_transform(features)
    numbers = np.where(weights.max(axis=1) > 1e-9, weights.argmax(axis=1), -1)
    return numbers.tolist(), "NMF over TF-IDF" + (", not converged" if model.n_iter_ >= model.max_iter else "")


def _bertopic(texts: Sequence[str], n_topics: int, seed: int) -> tuple[list[int], str]:
    """Sort texts into topics by BERTopic, with UMAP seeded: unseeded, it gives other topics every time.

    Source: Grootendorst (2022).
    """
    with need("bertopic", extra="topics", what_for="topics by BERTopic", otherwise="Or use --topic-method nmf."):
        from bertopic import BERTopic

        umap = importlib.import_module("umap")
    near = min(15, len(texts) - 1)
    reducer = umap.UMAP(n_neighbors=near, n_components=5, min_dist=0.0, metric="cosine", random_state=seed)
    numbers, _ = BERTopic(nr_topics=n_topics, umap_model=reducer).fit_transform(list(texts))
    return [*map(int, numbers)], "BERTopic"
