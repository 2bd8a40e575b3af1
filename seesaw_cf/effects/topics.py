"""Representation disparity: what each group is spoken of as, and how far that is from the others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.effects.columns import check_lengths
from seesaw_cf.errors import RecordError
from seesaw_cf.stats import adjust, cluster_weights, interval
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.plain import plain

__all__ = ["DIMENSIONS", "MIN_TRIPLES", "label_topics", "representative_words", "topic_disparity"]

MIN_TRIPLES = 30
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")

# Seed words of the two dimensions of the stereotype content model; replace them with your own.
# Source: Fiske et al. (2002) for the dimensions; the words are ours, with the paper's examples of both (Table 3).
DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    "warmth": (
        "friendly", "warm", "welcoming", "outgoing", "hospitable", "polite", "kind", "generous", "caring", "helpful",
        "sincere", "tolerant", "trustworthy", "good-natured", "cold", "rude", "hostile", "selfish", "unfriendly",
        "dishonest",
    ),
    "competence": (
        "hardworking", "industrious", "intelligent", "intelligence", "clever", "smart", "capable", "competent",
        "skilled", "skillful", "efficient", "ambitious", "innovative", "creative", "resilient", "confident", "educated",
        "successful", "lazy", "stupid", "ignorant", "incompetent",
    ),
}  # fmt: skip


def representative_words(
    texts: Sequence[str], topic: Sequence[int], n: int = 5, skip: frozenset[str] = frozenset()
) -> dict[int, list[str]]:
    """The words that tell a topic from the others, best first (Table 3).

    Args:
        texts: (m,) what was sorted into topics.
        topic: (m,) topic of each; below 0 = none.
        n: Words per topic.
        skip: Words that never count, lower case.

    Source: Grootendorst (2022), class-based TF-IDF: frequency in the topic x log(1 + mean words per topic / frequency).
    """
    check_lengths({"texts": texts, "topic": topic})
    counts: dict[int, Counter[str]] = {}
    for text, where in zip(texts, topic):
        if where >= 0:
            counts.setdefault(int(where), Counter()).update(w for w in _words(text) if w not in skip)
    total: Counter[str] = sum(counts.values(), Counter())
    mean = sum(total.values()) / max(1, len(counts))
    out = {}
    for where, own in sorted(counts.items()):
        size = max(1, sum(own.values()))
        score = {word: number / size * np.log(1 + mean / total[word]) for word, number in own.items()}
        out[where] = sorted(score, key=lambda word: (-score[word], word))[:n]
    return out


def label_topics(
    words: Mapping[int, Sequence[str]], dimensions: Mapping[str, Sequence[str]] = DIMENSIONS
) -> dict[int, str]:
    """The dimension that most of a topic's representative words are seed words of; "" for none or a tie."""
    out = {}
    for where, own in words.items():
        hits = {
            name: len({w.casefold() for w in seeds} & {w.casefold() for w in own}) for name, seeds in dimensions.items()
        }
        best = [name for name, number in hits.items() if number and number == max(hits.values())]
        out[where] = best[0] if len(best) == 1 else ""
    return out


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text) if len(word) > 1]


def topic_disparity(
    identity: Sequence[str],
    topic: Sequence[int],
    cluster: Sequence[Any] | None = None,
    *,
    min_triples: int = MIN_TRIPLES,
    smoothing: float = 0.5,
    draws: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Topic shares of every identity and the relative entropy of its topics to those of all others.

    Args:
        identity: (n,) whom the triple is about.
        topic: (n,) its topic; below 0 = none, left out and counted.
        cluster: (n,) what depends on each other, such as the run of a crawl; None = every triple alone.
        min_triples: No share and no entropy of an identity with fewer triples.
        smoothing: Added to every count, so that a topic nobody else has does not make the entropy infinite.
        draws: Bootstrap samples and permutations.
        seed: Of both.

    Returns:
        `identities[name]`: `n`, `n_without_topic`, `shares` (topic -> `value`, `low`, `high`), `relative_entropy` in
        nats (`value`; `corrected` for its upward bias at small n, with `low`, `high`; `expected` when topics were dealt
        out blindly; `p` for "no difference", which takes triples for independent; `p_adjusted`, Holm over identities),
        `note`; and `n_rows`, `topics`, `method`.

    Raises:
        RecordError: Unequal lengths, no rows, or smoothing not above 0.

    Source: "I'm not racist but...", Figures 4 and 8.
    Deviates: smoothed; the estimate, which is biased upward, is corrected by the bootstrap; intervals are basic
        (reflected) bootstrap intervals, cut off at 0.
    """
    if not smoothing > 0:
        raise RecordError(f"topic disparity: smoothing is {smoothing:g}, expected above 0.")
    columns = {"identity": identity, "topic": topic} | ({} if cluster is None else {"cluster": cluster})
    n = check_lengths(columns)
    frame = pd.DataFrame({name: list(column) for name, column in columns.items()}).astype({"identity": str})
    frame["cluster"] = pd.factorize(frame["cluster"])[0] if cluster is not None else np.arange(n)
    found = frame[frame["topic"] >= 0]
    topics = sorted(int(t) for t in found["topic"].unique())
    names = sorted(frame["identity"].unique())
    rows = {name: {"n": int((found["identity"] == name).sum())} for name in names}
    for name in names:
        rows[name]["n_without_topic"] = int((frame["identity"] == name).sum()) - rows[name]["n"]
    enough = [name for name in names if rows[name]["n"] >= max(1, min_triples)]
    out = _measured(found, enough, topics, smoothing, draws, seed)
    identities: dict[str, Any] = {}
    for name in names:
        why = (
            "" if name in out else f"{rows[name]['n']} triples with a topic, fewer than {min_triples}: nothing is shown"
        )
        identities[name] = rows[name] | out.get(name, {"shares": None, "relative_entropy": None}) | {"note": why}
    unit = "clusters" if cluster is not None else "single triples, taken for independent"
    method = f"bootstrap over {unit} and label permutation, {draws} draws, seed {seed}; smoothing {smoothing:g}"
    return dict(plain({"identities": identities, "n_rows": n, "topics": topics, "method": method}))


def _measured(
    found: pd.DataFrame, names: list[str], topics: list[int], smoothing: float, draws: int, seed: int
) -> dict[str, dict[str, Any]]:
    if not names:
        return {}
    who = pd.Categorical(found["identity"], categories=sorted(found["identity"].unique()))
    topic = np.asarray(pd.Categorical(found["topic"], categories=topics).codes, dtype=np.intp)
    codes = np.asarray(who.codes, dtype=np.intp)
    shape = (len(who.categories), len(topics))
    counts = _table(codes, topic, shape)
    value = _entropy(counts, smoothing)
    cluster = pd.factorize(found["cluster"])[0]
    drawn, shares = _bootstrap(codes * shape[1] + topic, cluster, counts, smoothing, draws, seed)
    rng = np.random.default_rng([seed, 2])
    blind = _entropy(np.stack([_table(rng.permutation(codes), topic, shape) for _ in range(draws)]), smoothing)
    out: dict[str, dict[str, Any]] = {}
    for name in names:
        i = list(who.categories).index(name)
        out[name] = {
            "shares": _shares(topics, counts[i] / counts[i].sum(), shares[:, i]),
            "relative_entropy": _relative_entropy(float(value[i]), drawn[:, i], blind[:, i]),
        }
    for row, p in zip(out.values(), adjust([row["relative_entropy"]["p"] for row in out.values()])):
        row["relative_entropy"]["p_adjusted"] = float(p)
    return out


def _table(codes: NDArray[np.intp], topic: NDArray[np.intp], shape: tuple[int, int]) -> Floats:
    """Counts (identities, topics)."""
    counts = np.bincount(codes * shape[1] + topic, minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.float64)


def _entropy(counts: Floats, smoothing: float) -> Floats:
    """Relative entropy of each row's shares to those of the sum of all other rows, nats; (..., rows, topics) in."""
    rest = counts.sum(axis=-2, keepdims=True) - counts
    own, others = counts + smoothing, rest + smoothing
    own, others = own / own.sum(axis=-1, keepdims=True), others / others.sum(axis=-1, keepdims=True)
    result: Floats = (own * np.log(own / others)).sum(axis=-1)
    return result


def _bootstrap(
    cell: NDArray[np.intp], cluster: NDArray[np.intp], counts: Floats, smoothing: float, draws: int, seed: int
) -> tuple[Floats, Floats]:
    """Entropies (draws, identities) and shares (draws, identities, topics) in samples of whole clusters.

    Without clusters, triples are drawn within their identity, as they were collected.

    Args:
        cell: (n,) identity x topics + topic of each triple.
        cluster: (n,) codes.
        counts: (identities, topics).
        smoothing, draws, seed: See `topic_disparity`.
    """
    clusters = int(cluster.max()) + 1
    if clusters == len(cluster):
        rng = np.random.default_rng([seed, 1])
        samples = [rng.multinomial(int(row.sum()), row / row.sum(), size=draws) for row in counts]
        drawn: Floats = np.stack(samples, axis=1).astype(np.float64)
    else:
        flat = np.zeros((clusters, counts.size))
        np.add.at(flat, (cluster, cell), 1.0)
        drawn = (cluster_weights(clusters, draws, seed) @ flat).reshape(draws, *counts.shape)
    total = drawn.sum(axis=2, keepdims=True)
    shares = np.divide(drawn, total, out=np.full(drawn.shape, np.nan), where=total > 0)
    return _entropy(drawn, smoothing), shares


def _shares(topics: list[int], value: Floats, drawn: Floats) -> dict[str, dict[str, float]]:
    out = {}
    for number, topic in enumerate(topics):
        low, high, _ = interval(drawn[:, number])
        out[str(topic)] = {"value": float(value[number]), "low": low, "high": high}
    return out


def _relative_entropy(value: float, drawn: Floats, blind: Floats) -> dict[str, float]:
    low, high, _ = interval(drawn)
    p = (1 + int((blind >= value - 1e-12).sum())) / (1 + blind.size) if blind.size else float("nan")
    return {
        "value": value,
        "corrected": max(0.0, 2 * value - float(drawn.mean())),
        "low": max(0.0, 2 * value - high),
        "high": max(0.0, 2 * value - low),
        "expected": float(blind.mean()),
        "p": p,
    }
