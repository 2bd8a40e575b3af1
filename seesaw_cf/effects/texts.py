"""Quality of generated texts from the texts alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from seesaw_cf.effects.columns import check_lengths
from seesaw_cf.errors import RecordError, SeesawError
from seesaw_cf.stats import cluster_weights, interval, ratio_draws
from seesaw_cf.stats.plain import plain

__all__ = ["generation_quality", "ngram_entropy", "reference_score", "repetition", "words"]

LogLikelihood = Callable[[Sequence[str]], Sequence[tuple[float, int]]]
_WORD = re.compile(r"\w+|[^\w\s]")
# Weights of the 2-gram and 3-gram entropies: as printed (MEMIT equation 27), and as coded (their mean: half of it).
WEIGHTS = {"ngram_entropy": (2 / 3, 4 / 3), "ngram_entropy_as_coded": (1 / 3, 2 / 3)}


def words(text: str) -> list[str]:
    """Words and punctuation marks of a text."""
    return _WORD.findall(text)


def ngram_entropy(text: str, n: int) -> float:
    """Entropy of the text's n-gram frequencies in bits; NaN for texts of fewer than n words."""
    tokens = words(text)
    counts = np.array(list(Counter(zip(*(tokens[i:] for i in range(n)))).values()), dtype=np.float64)
    if not counts.size:
        return float("nan")
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def repetition(text: str, n: int = 4) -> float:
    """Share of n-grams that occurred before in the text, 0..1; NaN for texts of fewer than n words."""
    tokens = words(text)
    grams = list(zip(*(tokens[i:] for i in range(n))))
    return 1 - len(set(grams)) / len(grams) if grams else float("nan")


def reference_score(texts: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """Cosine of TF-IDF vectors of each text and its reference texts joined; NaN without references.

    Document frequencies come from all references.

    Raises:
        SeesawError: scikit-learn is missing; install `seesaw_cf[longform]`.

    Source: MEMIT appendix C.2, Reference Score.
    """
    joined = [" ".join(refs) for refs in references]
    known = [text for text in joined if words(text)]
    if not known:
        return [float("nan")] * len(texts)
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise SeesawError("the reference score needs scikit-learn: pip install 'seesaw_cf[longform]'.") from error
    vectorizer = TfidfVectorizer(token_pattern=r"\w+").fit(known)
    left, right = (vectorizer.transform(part) for part in (texts, joined))
    scores = np.asarray(left.multiply(right).sum(axis=1)).ravel()
    return [float(s) if words(ref) else float("nan") for s, ref in zip(scores, joined)]


def generation_quality(
    case_id: Sequence[int],
    texts: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    log_likelihood: LogLikelihood | None = None,
    draws: int = 2000,
    seed: int = 0,
) -> dict[str, Any]:
    """Entropy, repetition, length, reference score and perplexity of generated texts, averaged over cases.

    Args:
        case_id: The edit.
        texts: The texts generated for it.
        references: Reference texts about the new target; [] = no reference score for the case.
        log_likelihood: Gives (summed log-likelihood in nats, scored tokens) per text; without it no perplexity.
        draws, seed: Bootstrap over cases.

    Returns:
        Per measure {value, low, high, n}: `ngram_entropy` (2/3 H2 + 4/3 H3 bits, as printed), `ngram_entropy_as_coded`
        (half of it), `repetition`, `length` (words), `reference_score`, `perplexity` (exponential of the mean over
        cases of the mean negative log-likelihood per token). `n_cases`, `n_empty` texts, which count in nothing but
        `length`.

    Raises:
        RecordError: Unequal lengths, or a case without texts.

    Source: MEMIT appendix C.2, equation 27 and Reference Score.
    """
    check_lengths({"case_id": case_id, "texts": texts, "references": references})
    bare = [case for case, own in zip(case_id, texts) if not len(own)]
    if bare:
        raise RecordError(f"{len(bare)} cases have no generated text, first: case {bare[0]}. Leave them out.")
    per_case: dict[str, list[float]] = {
        name: [_mean(a * ngram_entropy(t, 2) + b * ngram_entropy(t, 3) for t in own) for own in texts]
        for name, (a, b) in WEIGHTS.items()
    }
    per_case["repetition"] = [_mean(repetition(t) for t in own) for own in texts]
    per_case["length"] = [_mean(len(words(t)) for t in own) for own in texts]
    per_case["reference_score"] = reference_score([" ".join(own) for own in texts], references)
    if log_likelihood is not None:
        per_case["perplexity"] = [_nll(log_likelihood([t for t in own if words(t)])) for own in texts]
    result: dict[str, Any] = {name: _summary(values, draws, seed) for name, values in per_case.items()}
    if "perplexity" in result:
        result["perplexity"] |= {k: float(np.exp(result["perplexity"][k])) for k in ("value", "low", "high")}
    result["n_cases"] = len(texts)
    result["n_empty"] = sum(not words(t) for own in texts for t in own)
    return dict(plain(result))


def _mean(values: Any) -> float:
    finite = [value for value in values if np.isfinite(value)]
    return float(np.mean(finite)) if finite else float("nan")


def _nll(scored: Sequence[tuple[float, int]]) -> float:
    tokens = sum(n for _, n in scored)
    return -sum(total for total, _ in scored) / tokens if tokens else float("nan")


def _summary(values: list[float], draws: int, seed: int) -> dict[str, float]:
    kept = np.sort([value for value in values if np.isfinite(value)])
    nan = float("nan")
    if kept.size < 2 or not draws:
        return {"value": float(kept.mean()) if kept.size else nan, "low": nan, "high": nan, "n": int(kept.size)}
    samples = ratio_draws(cluster_weights(kept.size, draws, seed), kept[:, None], np.ones((kept.size, 1)))
    low, high, _ = interval(samples[:, 0])
    return {"value": float(kept.mean()), "low": low, "high": high, "n": int(kept.size)}
