"""Quality of generated texts from the texts alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from seesaw_cf.base.errors import RecordError, need
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.effects.prompts import check_logprobs
from seesaw_cf.effects.reader import ids, read_columns, text_lists
from seesaw_cf.stats import clustered_mean

LogLikelihood = Callable[[Sequence[str]], Sequence[tuple[float, int]]]
_WORD = re.compile(r"\w+|[^\w\s]")
# Weights of the 2-gram and 3-gram entropies: as printed (MEMIT equation 27), and as coded (their mean: half of it).
WEIGHTS = {"ngram_entropy": (2 / 3, 4 / 3), "ngram_entropy_as_coded": (1 / 3, 2 / 3)}


def words(text: str) -> list[str]:
    """Return the words and punctuation marks of a text."""
    return _WORD.findall(text)


def ngram_entropy(text: str, n: int) -> float:
    """Return the entropy of the text's n-gram frequencies in bits; NaN for texts of fewer than n words."""
    tokens = words(text)
    counts = np.array(list(Counter(zip(*(tokens[i:] for i in range(n)))).values()), dtype=np.float64)
    if not counts.size:
        return float("nan")
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def repetition(text: str, n: int = 4) -> float:
    """Return the share of n-grams that occurred before in the text, 0..1; NaN for texts of fewer than n words."""
    tokens = words(text)
    grams = list(zip(*(tokens[i:] for i in range(n))))
    return 1 - len(set(grams)) / len(grams) if grams else float("nan")


def reference_score(texts: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """Return the cosine of TF-IDF vectors of each text and its reference texts joined; NaN where these have no words.

    Document frequencies come from all references.

    Raises:
        MissingExtraError: scikit-learn is missing; install `seesaw_cf[longform]`.

    Source: MEMIT appendix C.2, Reference Score.
    """
    joined = [" ".join(refs) for refs in references]
    usable = [text for text in joined if words(text)]
    if not usable or not len(texts):
        return [float("nan")] * len(texts)
    with need("scikit-learn", extra="longform", what_for="the reference score"):
        from sklearn.feature_extraction.text import TfidfVectorizer
    vectorizer = TfidfVectorizer(token_pattern=r"\w+").fit(usable)
    left, right = (vectorizer.transform(part) for part in (texts, joined))
    scores = np.asarray(left.multiply(right).sum(axis=1)).ravel()
    return [float(s) if words(ref) else float("nan") for s, ref in zip(scores, joined)]


def generation_quality(
    case_id: Sequence[int],
    texts: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    log_likelihood: LogLikelihood | None = None,
) -> JsonObject:
    """Return entropy, repetition, length, reference score and perplexity of generated texts, averaged over cases.

    Args:
        case_id: The edit.
        texts: The texts generated for it.
        references: Reference texts about the new target; [] = no reference score for the case.
        log_likelihood: Gives (summed log-likelihood in nats, scored tokens) per text; without it no perplexity.

    Returns:
        Name -> mean over the `n` cases that have it, with a t interval over cases, none below five: `ngram_entropy`
        (2/3 H2 + 4/3 H3 bits, as printed), `ngram_entropy_as_coded` (half of it), `repetition`, `length` (words),
        `reference_score`, `perplexity` (exponential of the mean over cases of the mean negative log-likelihood per
        token); `n_cases`, and `n_empty` texts without a word, which count in nothing but `length`.

    Raises:
        RecordError: Unequal lengths, a case without texts or in several rows, or values of `log_likelihood` that are
            above 0 or not one for each text.

    Source: MEMIT appendix C.2, equation 27 and Reference Score.
    """
    kinds = {"case_id": ids, "texts": text_lists, "references": text_lists}
    frame = read_columns(kinds, {"case_id": case_id, "texts": texts, "references": references})
    repeats = frame.loc[frame.duplicated("case_id"), "case_id"].tolist()
    if repeats:
        raise RecordError(
            f"{len(repeats)} rows repeat a case, first: case {repeats[0]}. Put all texts of a case into one row."
        )
    texts, references = frame["texts"].tolist(), frame["references"].tolist()
    bare = [case for case, own in zip(frame["case_id"], texts) if not own]
    if bare:
        raise RecordError(f"{len(bare)} cases have no generated text, first: case {bare[0]}. Leave them out.")
    per_case: dict[str, list[float]] = {
        name: [finite_mean(a * ngram_entropy(t, 2) + b * ngram_entropy(t, 3) for t in own) for own in texts]
        for name, (a, b) in WEIGHTS.items()
    }
    per_case["repetition"] = [finite_mean(repetition(t) for t in own) for own in texts]
    per_case["length"] = [finite_mean(len(words(t)) for t in own) for own in texts]
    per_case["reference_score"] = reference_score([" ".join(own) for own in texts], references)
    if log_likelihood is not None:
        per_case["perplexity"] = [_nll([t for t in own if words(t)], log_likelihood) for own in texts]
    measures = {name: _summary(values) for name, values in per_case.items()}
    if "perplexity" in measures:
        mean = measures["perplexity"]
        value, low, high = (float(np.exp(end)) for end in (mean.value, mean.low, mean.high))
        measures["perplexity"] = replace(mean, value=value, low=low, high=high)
    names = ("value", "low", "high", "n", "note")
    out: JsonObject = {name: measure.columns(*names) for name, measure in measures.items()}
    return out | {"n_cases": len(texts), "n_empty": sum(not words(t) for own in texts for t in own)}


def finite_mean(values: Iterable[float]) -> float:
    """Return the mean of the finite values; None counts as missing; NaN without any."""
    column = np.array(list(values), dtype=np.float64)
    finite = column[np.isfinite(column)]
    return float(finite.mean()) if finite.size else float("nan")


def _nll(texts: Sequence[str], log_likelihood: LogLikelihood) -> float:
    scored = log_likelihood(texts)
    if len(scored) != len(texts):
        raise RecordError(f"log_likelihood gives {len(scored)} values for {len(texts)} texts, expected one for each.")
    check_logprobs("log_likelihood", np.array([total for total, _ in scored], np.float64))
    tokens = sum(n for _, n in scored)
    return -sum(total for total, _ in scored) / tokens if tokens else float("nan")


def _summary(values: list[float]) -> Estimate:
    finite = np.sort([value for value in values if np.isfinite(value)])
    if not finite.size:
        return Estimate(float("nan"), note="no case")
    return clustered_mean(finite, [np.full(finite.size, 1 / finite.size)], {"case": np.arange(finite.size)})
