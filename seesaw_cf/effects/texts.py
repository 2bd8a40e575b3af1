"""Texts alone: the claims that passages support or contradict, and the quality of generated texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.errors import RecordError, need
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.effects.means import plain_mean
from seesaw_cf.effects.prompts import check_logprobs
from seesaw_cf.effects.tables import Columns, Kind, ids, labels, optional_labels, read_columns, refuse_rows, text_lists
from seesaw_cf.stats.agreement import agreement
from seesaw_cf.stats.bootstrap import Floats, cluster_weights, interval
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.simple import clustered_share, share_estimate

NAN = float("nan")
LABELS = ("supports", "neutral", "contradicts")
CLAIM_KINDS = ("new_fact", "old_fact", "ground_truth")
CLAIM_COLUMNS: dict[str, Kind] = {"case_id": ids, "group": labels, "passage": labels, "claim_kind": labels}
CLAIM_COLUMNS |= {"label": optional_labels, "reference": optional_labels}
QUALITY_COLUMNS: dict[str, Kind] = {"case_id": ids, "texts": text_lists, "references": text_lists}
_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"')\]]))\s+(?=[\"'(]?[A-Z0-9])|\s*\n\s*")


def sentences(text: str) -> list[str]:
    """Split a text into sentences at ". ", "! ", "? " before a capital, digit or quotation mark, and at line ends."""
    return [part.strip() for part in _END.split(text) if part.strip()]


def leme_annotation(columns: Columns, *, draws: int = 2000, seed: int = 0) -> JsonObject:
    """Return the shares of labels per group, passage and kind of claim.

    Args:
        columns: `case_id`, the edit (claims of one edit are one cluster); `group`, what is compared, such as the
            editor; `passage`, "subject" or "related"; `claim_kind`, one of `CLAIM_KINDS`; `label`, one of `LABELS`,
            None or "" = not annotated, counted and left out; `reference`, labels of people for the same rows, None or
            "" where there are none.
        draws, seed: Bootstrap over edits of the agreement.

    Returns:
        `shares` per group, passage and kind of claim: label -> mean over edits of the share within the edit, clustered
        by edit, and `pooled` over all claims, the papers' value; `n_rows`, `n_missing`. With `reference` `agreement` on
        the `n` claims that have both: `accuracy` with the interval of a share, `macro_f1` with a bootstrap over edits
        (none below five), Cohen's kappa, Krippendorff's alpha, the accuracy of the commonest label, and `confusion`,
        people in rows.

    Raises:
        RecordError: Unequal lengths, an unknown kind of claim or label.

    Source: LEME, Figures 4 and 5.
    Deviates: the value is the mean over edits, with an interval that clusters by edit; the papers pool.
    """
    frame = read_columns(CLAIM_COLUMNS, columns, ["reference"])
    for name, names in (("claim_kind", CLAIM_KINDS), ("label", LABELS), ("reference", LABELS)):
        if name in frame:
            unknown = frame[name].notna() & ~frame[name].isin(names)
            refuse_rows(frame, unknown, [name], f"{', '.join(names)}: rename them")
    shares: dict[str, dict[str, dict[str, JsonObject]]] = {}
    for key, own in frame.groupby(["group", "passage", "claim_kind"], sort=True):
        who, text, kind = map(str, key)
        shares.setdefault(who, {}).setdefault(text, {})[kind] = _shares(own)
    out: JsonObject = {"shares": shares, "n_rows": len(frame), "n_missing": int(frame["label"].isna().sum())}
    if "reference" in frame:
        out["agreement"] = _agreement(frame.dropna(subset=["label", "reference"]), draws, seed)
    return out


def _shares(rows: pd.DataFrame) -> JsonObject:
    there = rows.dropna(subset=["label"])
    out: JsonObject = {"n": len(there), "n_cases": int(there["case_id"].nunique()), "n_missing": len(rows) - len(there)}
    for label in LABELS if len(there) else ():
        hit = (there["label"] == label).astype(np.float64)
        share = share_estimate(hit, there["case_id"])
        out[label] = share.columns("value", "low", "high") | {"pooled": float(hit.mean()), "note": share.note}
    return out


def _agreement(rows: pd.DataFrame, draws: int, seed: int) -> JsonObject:
    if rows.empty:
        return {"n": 0}
    truth, answers = (rows[name].map(LABELS.index).to_numpy(np.intp) for name in ("reference", "label"))
    code = pd.factorize(rows["case_id"])[0]
    each = np.zeros((int(code.max()) + 1, len(LABELS), len(LABELS)))
    np.add.at(each, (code, truth, answers), 1.0)
    drawn = np.tensordot(cluster_weights(len(each), draws, seed), each, axes=1)
    low, high, _ = interval(macro_f1(drawn)) if len(each) >= MIN_EFFECTIVE else (NAN, NAN, NAN)
    total, labels = each.sum(axis=0), np.stack([truth, answers], axis=1).astype(np.float64)
    right = clustered_share((truth == answers).astype(np.float64), np.full(len(rows), 1 / len(rows)), code)
    return {
        "accuracy": right.columns("value", "low", "high"),
        "macro_f1": {"value": float(macro_f1(total)), "low": low, "high": high},
        "cohen_kappa": agreement("cohen", labels),
        "krippendorff_alpha": agreement("nominal", labels),
        "constant": float(total.sum(axis=1).max() / total.sum()),
        "confusion": total.astype(int).tolist(),
        "n": len(rows),
        "n_cases": len(each),
    }


def macro_f1(confusion: Floats) -> Floats:
    """Return the mean F1 over the classes that occur in the truth.

    Args:
        confusion: (..., classes, classes) counts, truth in rows and answers in columns.

    Returns:
        (...), NaN without a row.
    """
    right = np.diagonal(confusion, axis1=-2, axis2=-1)
    truth, answered = confusion.sum(axis=-1), confusion.sum(axis=-2)
    f1 = 2 * right / np.maximum(truth + answered, 1)
    present = (truth > 0).sum(axis=-1)
    total = f1.sum(axis=-1, where=truth > 0)
    return np.asarray(np.divide(total, present, out=np.full(present.shape, np.nan), where=present > 0))


# Quality of generated texts.

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


def generation_entropy(text: str, two: float = 2 / 3, three: float = 4 / 3) -> float:
    """Return the entropies of 2-grams and of 3-grams, weighted and added, in bits (MEMIT equation 27 as printed)."""
    return two * ngram_entropy(text, 2) + three * ngram_entropy(text, 3)


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


def generation_quality(columns: Columns, *, log_likelihood: LogLikelihood | None = None) -> JsonObject:
    """Return entropy, repetition, length, reference score and perplexity of generated texts, averaged over cases.

    Args:
        columns: `case_id`, the edit; `texts` generated for it; `references`, texts about the new target, [] = no
            reference score for the case.
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
    frame = read_columns(QUALITY_COLUMNS, columns)
    refuse_rows(frame, frame.duplicated("case_id"), ["case_id"], "all texts of a case in one row")
    refuse_rows(frame, frame["texts"].map(len) == 0, ["case_id"], "a text in every case: leave the others out")
    texts, references = frame["texts"].tolist(), frame["references"].tolist()
    measures: dict[str, Callable[[str], float]] = {
        name: partial(generation_entropy, two=two, three=three) for name, (two, three) in WEIGHTS.items()
    }
    measures |= {"repetition": repetition, "length": lambda text: len(words(text))}
    per_case = {name: [finite_mean(map(measure, own)) for own in texts] for name, measure in measures.items()}
    per_case["reference_score"] = reference_score([" ".join(own) for own in texts], references)
    if log_likelihood is not None:
        per_case["perplexity"] = [_nll([t for t in own if words(t)], log_likelihood) for own in texts]
    out: JsonObject = {"n_cases": len(texts), "n_empty": sum(not words(t) for own in texts for t in own)}
    for name, values in per_case.items():
        mean = mean_of_cases(np.sort(values), np.arange(len(texts)), "no case")
        if name == "perplexity":
            value, low, high = (float(np.exp(end)) for end in (mean.value, mean.low, mean.high))
            mean = replace(mean, value=value, low=low, high=high)
        out[name] = mean.columns("value", "low", "high", "n", "note")
    return out


def mean_of_cases(values: Floats, case: NDArray[np.intp], nothing: str) -> Estimate:
    """Return the mean of the finite values, clustered by case; a note where there are none."""
    finite = np.isfinite(values)
    if not finite.any():
        return Estimate(NAN, note=nothing)
    return plain_mean(values[finite], {"case": case[finite]})


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
