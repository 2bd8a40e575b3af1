"""Simple measures of passages from the texts alone, and whether they stand for what people rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from seesaw_cf.effects.columns import check_lengths
from seesaw_cf.effects.leme_annotation import sentences
from seesaw_cf.effects.texts import ngram_entropy, reference_score
from seesaw_cf.errors import RecordError, SeesawError, unknown_name
from seesaw_cf.stats import interval
from seesaw_cf.stats.plain import plain

__all__ = ["STANDS_FOR", "correlations", "leme_auto", "rouge1", "text_measures"]

NAN = float("nan")
SIDES = ("subject", "related")

# Measure -> the survey item it is meant to stand for (LEME, Appendix I). The last four need a model and are given.
_CONSISTENCY = {
    "edit_subject": "new_fact_main_passage",
    "edit_related": "new_fact_related_passage",
    "factual_subject": "main_passage_old_facts",
    "factual_related": "related_passage_old_facts",
}
_TEXTS = _CONSISTENCY | {
    "topicality": "topicality",
    "internal_subject": "main_passage_consistency",
    "internal_related": "related_passage_consistency",
    "cross_passage": "cross_passage_consistency",
}
STANDS_FOR: dict[str, str] = {
    **{f"rouge1_{name}": item for name, item in _TEXTS.items()},
    "tfidf_factual_subject": "main_passage_old_facts",
    "tfidf_factual_related": "related_passage_old_facts",
    "ngram_entropy": "fluency",
    **{f"nli_{name}": item for name, item in _CONSISTENCY.items()},
    **{f"bertscore_{name}": item for name, item in _TEXTS.items()},
    "perplexity": "fluency",
}


def rouge1(candidate: str, reference: str) -> float:
    """ROUGE-1 F: overlap of single words, without stemming; 0 for texts without words.

    Raises:
        SeesawError: rouge_score is missing; install `seesaw_cf[longform]`.

    Source: Lin (2004), as `rouge_score` computes it.
    """
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise SeesawError("ROUGE needs rouge_score: pip install 'seesaw_cf[longform]'.") from error
    return float(RougeScorer(["rouge1"]).score(reference, candidate)["rouge1"].fmeasure)


def text_measures(
    subject: Sequence[str],
    related: Sequence[str],
    subject_passage: Sequence[str],
    related_passage: Sequence[str],
    new_fact: Sequence[str],
    subject_facts: Sequence[Sequence[str]],
    related_facts: Sequence[Sequence[str]],
    *,
    similarity: Callable[[str, str], float] = rouge1,
    prefix: str = "rouge1",
) -> dict[str, list[float]]:
    """One list of values per measure that compares two texts; NaN where a text is empty.

    Args:
        subject, related: Names of the two entities.
        subject_passage, related_passage: The passages.
        new_fact: The edit statement.
        subject_facts, related_facts: Ground truths as statements.
        similarity: (candidate, reference) -> higher is more alike.
        prefix: Of the measures' names.

    Returns:
        `prefix` + "_" + topicality, edit_subject, edit_related, factual_subject, factual_related, internal_subject,
        internal_related, cross_passage -> values.

    Source: LEME, Appendix I.
    """
    out: dict[str, list[float]] = {}
    names, texts = {"subject": subject, "related": related}, {"subject": subject_passage, "related": related_passage}
    facts = {"subject": subject_facts, "related": related_facts}
    alike = partial(_alike, similarity)
    topical = [[alike(n, t) for n, t in zip(names[side], texts[side])] for side in SIDES]
    out[f"{prefix}_topicality"] = [_mean(values) for values in zip(*topical)]
    for side in SIDES:
        out[f"{prefix}_edit_{side}"] = [alike(fact, text) for fact, text in zip(new_fact, texts[side])]
        out[f"{prefix}_factual_{side}"] = [
            _mean(alike(fact, text) for fact in own) for own, text in zip(facts[side], texts[side])
        ]
        out[f"{prefix}_internal_{side}"] = [_internal(sentences(text), alike) for text in texts[side]]
    out[f"{prefix}_cross_passage"] = [alike(one, other) for one, other in zip(subject_passage, related_passage)]
    return out


def _alike(similarity: Callable[[str, str], float], one: str, other: str) -> float:
    return similarity(one, other) if one.strip() and other.strip() else NAN


def _internal(rows: Sequence[str], alike: Callable[[str, str], float]) -> float:
    """Mean over all pairs of sentences."""
    return _mean(alike(rows[i], rows[j]) for i in range(len(rows)) for j in range(i))


def _mean(values: Any) -> float:
    finite = [value for value in values if np.isfinite(value)]
    return float(np.mean(finite)) if finite else NAN


def _entropy(text: str) -> float:
    """2/3 H2 + 4/3 H3 bits, as printed (MEMIT equation 27)."""
    return 2 / 3 * ngram_entropy(text, 2) + 4 / 3 * ngram_entropy(text, 3)


def leme_auto(
    case_id: Sequence[Any],
    subject: Sequence[str],
    related: Sequence[str],
    subject_passage: Sequence[str],
    related_passage: Sequence[str],
    new_fact: Sequence[str],
    subject_facts: Sequence[Sequence[str]],
    related_facts: Sequence[Sequence[str]],
    *,
    measures: Mapping[str, Sequence[float | None]] | None = None,
    ratings: Mapping[str, Sequence[float | None]] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """The measures of LEME's Appendix I, their means, and their correlation with the ratings they should stand for.

    Args:
        case_id: The edit of each row; intervals resample whole edits.
        subject, related, subject_passage, related_passage, new_fact, subject_facts, related_facts: See `text_measures`.
        measures: More measures, one value per row: those of `STANDS_FOR` that need a model.
        ratings: Survey item -> rating per row (1 to 7, None = none).
        draws, seed: Of the bootstrap.

    Returns:
        `means[measure]`: value, low, high, n; `values[measure]`: per row; with ratings `correlations[measure]`: `item`,
        `spearman`, `low`, `high`, `p`, `n`, `n_cases`.

    Raises:
        RecordError: Unequal lengths.
        UnknownNameError: A measure outside `STANDS_FOR`.
        SeesawError: rouge_score or scikit-learn is missing; install `seesaw_cf[longform]`.
    """
    texts = {"subject_passage": subject_passage, "related_passage": related_passage, "new_fact": new_fact}
    lists = {"case_id": case_id, "subject": subject, "related": related, **texts}
    facts = {"subject_facts": subject_facts, "related_facts": related_facts}
    check_lengths({**lists, **facts, **(measures or {}), **{f"ratings of {k}": v for k, v in (ratings or {}).items()}})
    for name in measures or {}:
        if name not in STANDS_FOR:
            raise unknown_name("measure", name, STANDS_FOR)
    own = (subject, related, subject_passage, related_passage, new_fact, subject_facts, related_facts)
    found = text_measures(*own)
    for side, passages in (("subject", subject_passage), ("related", related_passage)):
        scores = reference_score(passages, facts[f"{side}_facts"])
        found[f"tfidf_factual_{side}"] = [score if text.strip() else NAN for score, text in zip(scores, passages)]
    both = [f"{one}\n{other}" for one, other in zip(subject_passage, related_passage)]
    found["ngram_entropy"] = [_entropy(text) for text in both]
    for name, values in (measures or {}).items():
        found[name] = [NAN if value is None else float(value) for value in values]
    out: dict[str, Any] = {"means": {n: _summary(v, case_id, draws, seed) for n, v in found.items()}, "values": found}
    if ratings is not None:
        out["correlations"] = correlations(case_id, found, ratings, draws=draws, seed=seed)
    return dict(plain(out))


def _draws(case_id: Sequence[Any], rows: Any, draws: int, seed: int) -> list[Any]:
    code = pd.factorize(pd.Series(list(case_id)).iloc[rows])[0]
    members = [rows[code == one] for one in range(int(code.max(initial=-1)) + 1)]
    rng = np.random.default_rng(seed)
    return [np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))]) for _ in range(draws)]


def _summary(values: Sequence[float], case_id: Sequence[Any], draws: int, seed: int) -> dict[str, float]:
    column = np.asarray(values, dtype=np.float64)
    rows = np.flatnonzero(np.isfinite(column))
    if not rows.size:
        return {"value": NAN, "low": NAN, "high": NAN, "n": 0}
    low, high, _ = interval(np.array([column[pick].mean() for pick in _draws(case_id, rows, draws, seed)]))
    return {"value": float(column[rows].mean()), "low": low, "high": high, "n": int(rows.size)}


def correlations(
    case_id: Sequence[Any],
    measures: Mapping[str, Sequence[float]],
    ratings: Mapping[str, Sequence[float | None]],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Spearman's rank correlation of each measure with the item it stands for, where that item was rated.

    Args:
        case_id: The edit of each row.
        measures: Names out of `STANDS_FOR` -> value per row, NaN = none.
        ratings: Survey item -> rating per row, None = none.
        draws, seed: Bootstrap over whole edits.

    Returns:
        Measure -> `item`, `spearman`, `low`, `high`, `p` (two-sided, of edit means, so that rows of one edit are not
        counted as independent), `n`, `n_cases`.

    Raises:
        RecordError: No item of any measure was rated.

    Source: LEME, Appendix I.
    """
    out: dict[str, Any] = {}
    for name, values in measures.items():
        item = STANDS_FOR[name]
        if item not in ratings:
            continue
        pair = np.array([list(values), [NAN if r is None else r for r in ratings[item]]], dtype=np.float64)
        rows = np.flatnonzero(np.isfinite(pair).all(axis=0))
        drawn = np.array([_spearman(pair[:, pick]) for pick in _draws(case_id, rows, draws, seed)] if rows.size else [])
        low, high, _ = interval(drawn)
        means = pd.DataFrame(pair[:, rows].T).groupby([list(case_id)[row] for row in rows]).mean().to_numpy().T
        p = float(stats.spearmanr(*means).pvalue) if np.isfinite(_spearman(means)) else NAN
        out[name] = {"item": item, "spearman": _spearman(pair[:, rows]), "low": low, "high": high, "p": p}
        out[name] |= {"n": int(rows.size), "n_cases": means.shape[1]}
    if not out:
        raise RecordError(
            f"ratings: items {sorted(ratings)}, but no measure stands for one of them; expected some of "
            f"{sorted(set(STANDS_FOR.values()))}."
        )
    return out


def _spearman(pair: Any) -> float:
    if pair.shape[1] < 3 or np.ptp(pair[0]) == 0 or np.ptp(pair[1]) == 0:
        return NAN
    return float(stats.spearmanr(pair[0], pair[1]).statistic)
