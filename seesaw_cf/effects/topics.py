"""Representation disparity: topics of the triples about each group, and their distance from those of other groups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base import checks
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.tables import Columns, Kind, check_lengths, ids, labels, read_clustered, wholes
from seesaw_cf.stats.bootstrap import Floats, cluster_weights, interval
from seesaw_cf.stats.multiple import holm

MIN_TRIPLES = 30
COLUMNS: dict[str, Kind] = {"identity": labels, "topic": wholes, "cluster": ids}
Numbers = dict[str, Any]
"""What was measured: name -> plain value, or numbers of a part."""
_TINY = float(np.finfo(np.float64).tiny)
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")

# Seed words of the two dimensions of the stereotype content model; replace them with your own.
# Source: Fiske et al. (2002) for the dimensions; the words are ours, with the paper's examples of both (Table 3).
_SEEDS = {
    "warmth": "friendly warm welcoming outgoing hospitable polite kind generous caring helpful sincere tolerant "
    "trustworthy good-natured cold rude hostile selfish unfriendly dishonest",
    "competence": "hardworking industrious intelligent intelligence clever smart capable competent skilled skillful "
    "efficient ambitious innovative creative resilient confident educated successful lazy stupid ignorant incompetent",
}
WordLists = Mapping[str, Sequence[str]]
DIMENSIONS: WordLists = {name: tuple(words.split()) for name, words in _SEEDS.items()}


def representative_words(
    texts: Sequence[str], topic: Sequence[int], n: int = 5, skip: frozenset[str] = frozenset()
) -> dict[int, list[str]]:
    """Return the words that distinguish a topic, best first (Table 3).

    Args:
        texts: (m,) what was sorted into topics.
        topic: (m,) topic of each; below 0 = none.
        n: Words per topic.
        skip: Words that never count, lower case.

    Source: Grootendorst (2022), class-based TF-IDF: frequency in the topic x log(1 + mean words per topic / frequency).
    """
    check_lengths({"texts": texts, "topic": topic})
    said = pd.DataFrame({"topic": list(topic), "word": [_words(text) for text in texts]})
    said = said[said["topic"] >= 0].explode("word").dropna(subset="word")
    said = said[~said["word"].isin(list(skip))]
    out: dict[int, list[str]] = {int(where): [] for where in sorted({where for where in topic if where >= 0})}
    counts = pd.crosstab(said["word"], said["topic"])  # words are sorted
    rare = np.log(1 + len(said) / max(1, len(out)) / counts.sum(axis=1))
    for where, own in counts.items():
        score = (own[own > 0] / own.sum() * rare).dropna().sort_values(ascending=False, kind="stable")
        out[int(str(where))] = score.index[:n].tolist()
    return out


def label_topics(words: Mapping[int, Sequence[str]], dimensions: WordLists = DIMENSIONS) -> dict[int, str]:
    """Return topic -> the dimension with most seed words among its representative words; "" for none or a tie."""
    out = {}
    for where, own in words.items():
        found = {word.casefold() for word in own}
        hits = {name: len(found & {word.casefold() for word in seeds}) for name, seeds in dimensions.items()}
        best = [name for name, number in hits.items() if number and number == max(hits.values())]
        out[where] = best[0] if len(best) == 1 else ""
    return out


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text) if len(word) > 1]


def topic_disparity(
    columns: Columns, *, min_triples: int = MIN_TRIPLES, smoothing: float = 0.5, draws: int = 1000, seed: int = 0
) -> Numbers:
    """Return the topic shares of every identity and the relative entropy of its topics to those of the rest.

    Args:
        columns: `identity`, the group the triple is about; `topic`, below 0 = none, left out and counted; `cluster`,
            where there is any, what depends on each other, such as the run of a crawl.
        min_triples: No share and no entropy of an identity with fewer triples.
        smoothing: Added to every count, so that a topic no other identity has does not make the entropy infinite.
        draws: Bootstrap samples and permutations.
        seed: Of both.

    Returns:
        `n_rows`, `topics`, `method`, and of every identity in `identities`: `n` triples with and `n_without_topic`
        without a topic; `shares`, topic -> value with its limits; and `relative_entropy` in nats: its `value` as
        counted, `corrected` for its bias with limits, what is `expected` if topics were dealt blindly, p for "no
        difference" (which takes triples for independent) and p_adjusted (Holm). Both are None, and `note` says why,
        with too few triples or none of another identity.

    Raises:
        RecordError: Unequal lengths, no rows, or smoothing not above 0.

    Source: "I'm not racist but...", Figures 4 and 8.
    Deviates: smoothed; the estimate, which is biased upward, is corrected by the bootstrap; intervals are basic
        (reflected) bootstrap intervals, cut off at 0. They cover .86 to .91 at 50 and .87 to .91 at 200 triples an
        identity (nominal .95; entropies of .11, .06 and .02 nats over five topics, 300 invented crawls).
    """
    checks.number("topic disparity: smoothing", smoothing, 0, checks.LARGEST, ends=False)
    checks.draws("topic disparity: draws", draws)
    checks.seed("topic disparity: seed", seed)
    frame = read_clustered(COLUMNS, columns)
    assigned = frame[frame["topic"] >= 0]
    counts = (frame["topic"] >= 0).groupby(frame["identity"]).agg(["sum", "size"])
    enough = counts.index[counts["sum"] >= max(1, min_triples)].tolist() if (counts["sum"] > 0).sum() > 1 else []
    measured = _measured(assigned, enough, smoothing, draws, seed) if enough else {}
    identities: Numbers = {}
    for name, n, rows in counts.itertuples():
        shares, entropy = measured.get(name, (None, None))
        why = f"{n} triples with a topic, fewer than {min_triples}: nothing is shown" if n < max(1, min_triples) else ""
        note = "" if name in measured else why or "no triples to compare with"
        numbers = {"n": n, "n_without_topic": rows - n, "shares": shares, "relative_entropy": entropy, "note": note}
        identities[name] = numbers
    unit = "clusters" if columns.get("cluster") is not None else "single triples, taken for independent"
    method = f"bootstrap over {unit} and label permutation, {draws} draws, seed {seed}; smoothing {smoothing:g}"
    topics = sorted(assigned["topic"].unique().tolist())
    return {"identities": identities, "n_rows": len(frame), "topics": topics, "method": method}


def _measured(
    triples: pd.DataFrame, names: list[str], smoothing: float, draws: int, seed: int
) -> dict[str, tuple[Numbers, Numbers]]:
    """Return identity -> shares and relative entropy."""
    (who, identities), (topic, topics) = (pd.factorize(triples[name], sort=True) for name in ("identity", "topic"))
    shape = len(identities), len(topics)
    counts = _table(who, topic, shape)
    value, cluster = _entropy(counts, smoothing), pd.factorize(triples["cluster"])[0]
    drawn, shares = _bootstrap(who * shape[1] + topic, cluster, counts, smoothing, draws, seed)
    rng = np.random.default_rng([seed, 2])
    permuted = [_table(rng.permutation(who), topic, shape) for _ in range(draws)]
    null = _entropy(np.array(permuted).reshape(draws, *shape), smoothing)
    rows = {name: list(identities).index(name) for name in names}
    entropies = {name: _corrected(float(value[i]), drawn[:, i], null[:, i]) for name, i in rows.items()}
    answers = {}
    for (name, i), p_adjusted in zip(rows.items(), holm(entropies).values()):
        own = {
            str(where): {"value": float(share)} | dict(zip(("low", "high"), interval(shares[:, i, number])))
            for number, (where, share) in enumerate(zip(topics, counts[i] / counts[i].sum()))
        }
        found = entropies[name]
        entropy: Numbers = {"value": float(value[i]), "corrected": found.value} | found.columns("low", "high")
        answers[name] = own, entropy | {"expected": _mean(null[:, i]), "p": found.p, "p_adjusted": p_adjusted}
    return answers


def _table(codes: NDArray[np.intp], topic: NDArray[np.intp], shape: tuple[int, int]) -> Floats:
    """Count triples by identity and topic, (identities, topics)."""
    counts = np.bincount(codes * shape[1] + topic, minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.float64)


def _entropy(counts: Floats, smoothing: float) -> Floats:
    """Return the relative entropy of each row's shares to those of the sum of all other rows, nats, (..., rows)."""
    rest = counts.sum(axis=-2, keepdims=True) - counts
    own, others = counts + smoothing, rest + smoothing
    # A share of a tiny smoothing may be too small for a float; its logarithm must exist.
    own, others = (np.maximum(part / part.sum(axis=-1, keepdims=True), _TINY) for part in (own, others))
    result: Floats = (own * np.log(own / others)).sum(axis=-1)
    return result


def _bootstrap(
    cell: NDArray[np.intp], cluster: NDArray[np.intp], counts: Floats, smoothing: float, draws: int, seed: int
) -> tuple[Floats, Floats]:
    """Return entropies (draws, identities) and shares (draws, identities, topics) in samples of whole clusters.

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


def _corrected(value: float, drawn: Floats, null: Floats) -> Estimate:
    """Correct a value for bootstrap bias, with a basic (reflected) interval, cut off at 0, if it has a width."""
    low, high, _ = interval(drawn)
    p = (1 + int((null >= value - 1e-12).sum())) / (1 + null.size) if null.size else float("nan")
    middle, low, high = (float(np.maximum(0.0, 2 * value - end)) for end in (_mean(drawn), high, low))
    return Estimate(middle, low, high, p=p) if low < high else Estimate(middle, p=p, note="no spread between samples")


def _mean(drawn: Floats) -> float:
    return float(drawn.mean()) if drawn.size else float("nan")
