"""Simple measures of passages from the texts alone, and their correlation with survey ratings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
from scipy import stats

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError, need
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.effects.instruments import SCALE
from seesaw_cf.effects.means import plain_mean
from seesaw_cf.effects.tables import Id, Kind, floats, ids, labels, read_columns, refuse_rows, text_lists
from seesaw_cf.effects.texts import finite_mean, generation_entropy, reference_score, sentences
from seesaw_cf.stats import interval
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import MIN_EFFECTIVE

NAN = float("nan")
SIDES = ("subject", "related")
ASYMPTOTIC = 10  # edits from which the t approximation of a rank correlation is used
_NAMES = ("subject", "related", "subject_passage", "related_passage", "new_fact")
_KINDS: dict[str, Kind] = {"case_id": ids} | dict.fromkeys(_NAMES, labels)
_KINDS |= {"subject_facts": text_lists, "related_facts": text_lists}

# Measure -> the survey item it should approximate (LEME, Appendix I); by NLI, BERTScore and perplexity it is given.
_TEXTS = {
    "edit_subject": "new_fact_main_passage",
    "edit_related": "new_fact_related_passage",
    "factual_subject": "main_passage_old_facts",
    "factual_related": "related_passage_old_facts",
    "topicality": "topicality",
    "internal_subject": "main_passage_consistency",
    "internal_related": "related_passage_consistency",
    "cross_passage": "cross_passage_consistency",
}
_BY = {"rouge1": [*_TEXTS], "tfidf": [*_TEXTS][2:4], "nli": [*_TEXTS][:4], "bertscore": [*_TEXTS]}
STANDS_FOR = {f"{how}_{name}": _TEXTS[name] for how, names in _BY.items() for name in names}
STANDS_FOR |= {"ngram_entropy": "fluency", "perplexity": "fluency"}


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

    def alike(text: str, other: str) -> float:
        return (similarity or rouge1)(text, other) if text.strip() and other.strip() else NAN

    out: dict[str, list[float]] = {}
    texts = {side: getattr(columns, f"{side}_passage") for side in SIDES}
    named = [[*map(alike, getattr(columns, side), texts[side])] for side in SIDES]
    out[f"{prefix}_topicality"] = [finite_mean(values) for values in zip(*named)]
    for side, own in texts.items():
        out[f"{prefix}_edit_{side}"] = [*map(alike, columns.new_fact, own)]
        facts = zip(getattr(columns, f"{side}_facts"), own)
        out[f"{prefix}_factual_{side}"] = [finite_mean(alike(fact, text) for fact in given) for given, text in facts]
        rows = [sentences(text) for text in own]
        out[f"{prefix}_internal_{side}"] = [
            finite_mean(alike(row[i], row[j]) for i in range(len(row)) for j in range(i)) for row in rows
        ]
    out[f"{prefix}_cross_passage"] = [*map(alike, *texts.values())]
    return out


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
    checks.draws("bootstrap: draws", draws)
    checks.seed("bootstrap: seed", seed)
    for name in measures or {}:
        checks.one_of("measure", name, STANDS_FOR)
    texts = {field.name: getattr(columns, field.name) for field in fields(columns)}
    numbers = {f"measure {name}": values for name, values in (measures or {}).items()}
    numbers |= {f"ratings of {item}": values for item, values in (ratings or {}).items()}
    frame = read_columns(_KINDS | dict.fromkeys(numbers, floats), {"case_id": case_id, **texts, **numbers})
    columns = PassageColumns(**{name: frame[name].tolist() for name in texts})
    measured = text_measures(columns)
    passages = {side: getattr(columns, f"{side}_passage") for side in SIDES}
    for side, own in passages.items():
        scores = reference_score(own, getattr(columns, f"{side}_facts"))
        measured[f"tfidf_factual_{side}"] = [score if text.strip() else NAN for score, text in zip(scores, own)]
    measured["ngram_entropy"] = [generation_entropy("\n".join(both)) for both in zip(*passages.values())]
    measured |= {name: frame[f"measure {name}"].tolist() for name in measures or {}}
    names = ("value", "low", "high", "n", "note")
    means = {name: _summary(np.array(values), frame["case_id"]).columns(*names) for name, values in measured.items()}
    out: JsonObject = {"means": means, "values": measured}
    if ratings is not None:
        out["correlations"] = correlations(case_id, measured, ratings, draws=draws, seed=seed)
    return out


def _summary(values: Floats, case_id: pd.Series) -> Estimate:
    finite = np.isfinite(values)
    if not finite.any():
        return Estimate(NAN, note="no text")
    return plain_mean(values[finite], {"case": pd.factorize(case_id[finite])[0]})


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
        pair = np.array([list(values), list(ratings[item])], dtype=np.float64)
        given = pd.DataFrame({"rating": pair[1], "item": item})
        outside = given["rating"].notna() & ~given["rating"].between(min(SCALE), max(SCALE))
        refuse_rows(given, outside, ["rating", "item"], "ratings from 1 to 7: leave them empty (None), or recode them")
        rows = np.flatnonzero(np.isfinite(pair).all(axis=0))
        pair, case = pair[:, rows], pd.Series(list(case_id)).iloc[rows]
        means = pd.DataFrame(pair.T).groupby(case.tolist()).mean().to_numpy().T
        found: JsonObject = {"item": item, "spearman": _spearman(pair), "low": NAN, "high": NAN, "p": NAN}
        if means.shape[1] >= MIN_EFFECTIVE:
            code = pd.factorize(case)[0]
            own = [np.flatnonzero(code == one) for one in range(means.shape[1])]
            rng = np.random.default_rng(seed)
            picks = [rng.integers(len(own), size=len(own)) for _ in range(draws)]
            drawn = [_spearman(pair[:, np.concatenate([own[i] for i in pick])]) for pick in picks]
            found["low"], found["high"], _ = interval(np.array(drawn))
            found["p"] = _p(means, seed)
        out[name] = found | {"n": len(case), "n_cases": means.shape[1]}
    if not out:
        raise RecordError(
            f"ratings: items {sorted(ratings)}, but no measure stands for one of them; expected some of "
            f"{sorted(set(STANDS_FOR.values()))}."
        )
    return out


def _spearman(pair: Floats) -> float:
    if pair.shape[1] < 3 or (np.ptp(pair, axis=1) == 0).any():
        return NAN
    return float(stats.spearmanr(*pair).statistic)


def _p(pair: Floats, seed: int) -> float:
    """Return the two-sided p of a rank correlation, by permutation where the asymptotic one is too small."""
    if np.isnan(_spearman(pair)):
        return NAN
    if pair.shape[1] >= ASYMPTOTIC:
        return float(stats.spearmanr(*pair).pvalue)
    x, y = stats.rankdata(pair, axis=1)
    test = stats.permutation_test(
        (x,), lambda ranks, axis: ranks @ y, permutation_type="pairings", vectorized=True, rng=seed
    )
    return float(test.pvalue)
