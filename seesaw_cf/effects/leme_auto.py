"""Simple measures of passages from the texts alone, and their correlation with survey ratings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError, need
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.effects.instruments import SCALE
from seesaw_cf.effects.leme_annotation import sentences
from seesaw_cf.effects.reader import Id, Kind, floats, ids, labels, read_columns, text_lists
from seesaw_cf.effects.texts import finite_mean, ngram_entropy, reference_score
from seesaw_cf.stats import clustered_mean, interval
from seesaw_cf.stats.clustered import MIN_EFFECTIVE

NAN = float("nan")
SIDES = ("subject", "related")
ASYMPTOTIC = 10  # edits from which the t approximation of a rank correlation is used
_NAMES = ("subject", "related", "subject_passage", "related_passage", "new_fact")
_KINDS: dict[str, Kind] = {"case_id": ids} | dict.fromkeys(_NAMES, labels)
_KINDS |= {"subject_facts": text_lists, "related_facts": text_lists}

# Measure -> the survey item it should approximate (LEME, Appendix I). The last four need a model and are given.
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
    """Return ROUGE-1 F: overlap of single words, without stemming; 0 for texts without words.

    Raises:
        MissingExtraError: rouge_score is missing; install `seesaw_cf[longform]`.

    Source: Lin (2004), as `rouge_score` computes it.
    """
    with need("rouge_score", extra="longform", what_for="ROUGE"):
        from rouge_score.rouge_scorer import RougeScorer
    return float(RougeScorer(["rouge1"]).score(reference, candidate)["rouge1"].fmeasure)


@dataclass(frozen=True, slots=True)
class PassageColumns:
    """One row per pair of passages.

    Attributes:
        subject, related: Names of the two entities.
        subject_passage, related_passage: The passages.
        new_fact: The edit statement.
        subject_facts, related_facts: Ground truths as statements.
    """

    subject: Sequence[str]
    related: Sequence[str]
    subject_passage: Sequence[str]
    related_passage: Sequence[str]
    new_fact: Sequence[str]
    subject_facts: Sequence[Sequence[str]]
    related_facts: Sequence[Sequence[str]]


def text_measures(
    columns: PassageColumns, *, similarity: Callable[[str, str], float] | None = None, prefix: str = "rouge1"
) -> dict[str, list[float]]:
    """Return one list of values per measure that compares two texts; NaN where a text is empty.

    Args:
        columns: The passages.
        similarity: (candidate, reference) -> higher is more alike; `rouge1` when None.
        prefix: Of the measures' names.

    Returns:
        `prefix` + "_" + topicality, edit_subject, edit_related, factual_subject, factual_related, internal_subject,
        internal_related, cross_passage -> values.

    Source: LEME, Appendix I.
    """
    out: dict[str, list[float]] = {}
    names = {"subject": columns.subject, "related": columns.related}
    texts = {"subject": columns.subject_passage, "related": columns.related_passage}
    facts = {"subject": columns.subject_facts, "related": columns.related_facts}
    alike = partial(_alike, similarity or rouge1)
    topical = [[alike(n, t) for n, t in zip(names[side], texts[side])] for side in SIDES]
    out[f"{prefix}_topicality"] = [finite_mean(values) for values in zip(*topical)]
    for side in SIDES:
        out[f"{prefix}_edit_{side}"] = [alike(fact, text) for fact, text in zip(columns.new_fact, texts[side])]
        out[f"{prefix}_factual_{side}"] = [
            finite_mean(alike(fact, text) for fact in own) for own, text in zip(facts[side], texts[side])
        ]
        out[f"{prefix}_internal_{side}"] = [_internal(sentences(text), alike) for text in texts[side]]
    out[f"{prefix}_cross_passage"] = [alike(first, other) for first, other in zip(*texts.values())]
    return out


def _alike(similarity: Callable[[str, str], float], text: str, other: str) -> float:
    return similarity(text, other) if text.strip() and other.strip() else NAN


def _internal(rows: Sequence[str], alike: Callable[[str, str], float]) -> float:
    """Return the mean similarity over all pairs of sentences."""
    return finite_mean(alike(rows[i], rows[j]) for i in range(len(rows)) for j in range(i))


def _entropy(text: str) -> float:
    """Return 2/3 H2 + 4/3 H3 in bits, as printed (MEMIT equation 27)."""
    return 2 / 3 * ngram_entropy(text, 2) + 4 / 3 * ngram_entropy(text, 3)


def leme_auto(
    case_id: Sequence[Id],
    columns: PassageColumns,
    *,
    measures: Mapping[str, Sequence[float | None]] | None = None,
    ratings: Mapping[str, Sequence[float | None]] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> JsonObject:
    """Return the measures of LEME's Appendix I, their means, and their correlation with the ratings they stand for.

    Args:
        case_id: The edit of each row; intervals are clustered by it.
        columns: The passages.
        measures: More measures, one value per row: those of `STANDS_FOR` that need a model.
        ratings: Survey item -> rating per row (1 to 7, None = none).
        draws, seed: Of the bootstrap of the correlations.

    Returns:
        `means`: measure -> its mean, clustered by edit; `values`: measure -> value per row, NaN = none; with ratings
        `correlations`.

    Raises:
        RecordError: Unequal lengths, or a rating outside 1 to 7.
        UnknownNameError: A measure outside `STANDS_FOR`.
        MissingExtraError: rouge_score or scikit-learn is missing; install `seesaw_cf[longform]`.
    """
    texts = {field.name: getattr(columns, field.name) for field in fields(columns)}
    others = {f"ratings of {item}": values for item, values in (ratings or {}).items()}
    numbers = {f"measure {name}": values for name, values in (measures or {}).items()} | others
    kinds = _KINDS | dict.fromkeys(numbers, floats)
    frame = read_columns(kinds, {"case_id": case_id, **texts, **numbers})
    columns = PassageColumns(**{name: frame[name].tolist() for name in texts})
    for name in measures or {}:
        checks.one_of("measure", name, STANDS_FOR)
    checks.draws("bootstrap: draws", draws)
    checks.seed("bootstrap: seed", seed)
    measured = text_measures(columns)
    for side in SIDES:
        passages = getattr(columns, f"{side}_passage")
        scores = reference_score(passages, getattr(columns, f"{side}_facts"))
        measured[f"tfidf_factual_{side}"] = [score if text.strip() else NAN for score, text in zip(scores, passages)]
    joined = [f"{subject}\n{related}" for subject, related in zip(columns.subject_passage, columns.related_passage)]
    measured["ngram_entropy"] = [_entropy(text) for text in joined]
    for name in measures or {}:
        measured[name] = frame[f"measure {name}"].tolist()
    names = ("value", "low", "high", "n", "note")
    means = {name: _summary(values, case_id).columns(*names) for name, values in measured.items()}
    out: JsonObject = {"means": means, "values": measured}
    if ratings is not None:
        out["correlations"] = correlations(case_id, measured, ratings, draws=draws, seed=seed)
    return out


def _draws(case_id: Sequence[Id], rows: NDArray[np.intp], draws: int, seed: int) -> list[NDArray[np.intp]]:
    code = pd.factorize(pd.Series(list(case_id)).iloc[rows])[0]
    members = [rows[code == cluster] for cluster in range(int(code.max(initial=-1)) + 1)]
    rng = np.random.default_rng(checks.seed("bootstrap: seed", seed))
    checks.draws("bootstrap: draws", draws)
    return [np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))]) for _ in range(draws)]


def _summary(values: Sequence[float], case_id: Sequence[Id]) -> Estimate:
    column = np.asarray(values, dtype=np.float64)
    rows = np.flatnonzero(np.isfinite(column))
    if not rows.size:
        return Estimate(NAN, note="no text")
    code = pd.factorize(pd.Series(list(case_id)).iloc[rows])[0]
    return clustered_mean(column[rows], [np.full(rows.size, 1 / rows.size)], {"case": code})


def correlations(
    case_id: Sequence[Id],
    measures: Mapping[str, Sequence[float]],
    ratings: Mapping[str, Sequence[float | None]],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> dict[str, JsonObject]:
    """Return Spearman's rank correlation of each measure with the item it stands for, where that item was rated.

    Args:
        case_id: The edit of each row.
        measures: Names out of `STANDS_FOR` -> value per row, NaN = none.
        ratings: Survey item -> rating per row (1 to 7), None = none.
        draws, seed: Bootstrap over whole edits.

    Returns:
        Measure -> `item`, `spearman` over `n` rows with a bootstrap over edits, `p` (two-sided) of edit means, so that
        rows of one edit are not counted as independent, by permutation below ten edits; neither below five.

    Raises:
        RecordError: No item of any measure was rated, or a rating is outside 1 to 7.
        UnknownNameError: No such measure.

    Source: LEME, Appendix I.
    """
    out: dict[str, JsonObject] = {}
    for name, values in measures.items():
        item = STANDS_FOR[checks.one_of("measure", name, STANDS_FOR)]
        if item not in ratings:
            continue
        pair = np.array([list(values), [NAN if r is None else r for r in ratings[item]]], dtype=np.float64)
        outside = pair[1][(pair[1] < min(SCALE)) | (pair[1] > max(SCALE))]
        if outside.size:
            raise RecordError(
                f"{outside.size} ratings outside 1 to 7, first: {outside[0]:g} for {item!r}. Leave them empty "
                "(None), or recode them."
            )
        rows = np.flatnonzero(np.isfinite(pair).all(axis=0))
        means = pd.DataFrame(pair[:, rows].T).groupby([list(case_id)[row] for row in rows]).mean().to_numpy().T
        enough = means.shape[1] >= MIN_EFFECTIVE
        drawn = [_spearman(pair[:, pick]) for pick in _draws(case_id, rows, draws, seed)] if enough else []
        low, high, _ = interval(np.array(drawn))
        p = _p(means, seed) if enough and np.isfinite(_spearman(means)) else NAN
        found = {"item": item, "spearman": _spearman(pair[:, rows]), "low": low, "high": high, "p": p}
        out[name] = {**found, "n": int(rows.size), "n_cases": means.shape[1]}
    if not out:
        raise RecordError(
            f"ratings: items {sorted(ratings)}, but no measure stands for one of them; expected some of "
            f"{sorted(set(STANDS_FOR.values()))}."
        )
    return out


def _spearman(pair: NDArray[np.float64]) -> float:
    if pair.shape[1] < 3 or np.ptp(pair[0]) == 0 or np.ptp(pair[1]) == 0:
        return NAN
    return float(stats.spearmanr(pair[0], pair[1]).statistic)


def _p(pair: NDArray[np.float64], seed: int) -> float:
    """Return the two-sided p of a rank correlation, by permutation where the asymptotic one is too small."""
    if pair.shape[1] >= ASYMPTOTIC:
        return float(stats.spearmanr(pair[0], pair[1]).pvalue)
    x, y = stats.rankdata(pair, axis=1)
    test = stats.permutation_test(
        (x,), lambda ranks, axis: ranks @ y, permutation_type="pairings", vectorized=True, rng=seed
    )
    return float(test.pvalue)
