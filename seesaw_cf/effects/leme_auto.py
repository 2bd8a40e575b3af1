"""Simple measures of passages from the texts alone, and their correlation with survey ratings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError, need
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.instruments import SCALE
from seesaw_cf.effects.tables import Columns, Kind, floats, ids, labels, read_columns, refuse_rows, text_lists
from seesaw_cf.effects.texts import finite_mean, generation_entropy, mean_of_cases, reference_score, sentences
from seesaw_cf.stats.bootstrap import Floats, interval
from seesaw_cf.stats.clustered import MIN_EFFECTIVE

NAN = float("nan")
SIDES = ("subject", "related")
ASYMPTOTIC = 10  # edits from which the t approximation of a rank correlation is used
COLUMNS: dict[str, Kind] = {"case_id": ids}
COLUMNS |= dict.fromkeys(("subject", "related", "subject_passage", "related_passage", "new_fact"), labels)
COLUMNS |= {"subject_facts": text_lists, "related_facts": text_lists}

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


Values = Mapping[str, Sequence[float | None]]
"""By name, one for each row; None or NaN: there is none."""


def rouge1(candidate: str, reference: str) -> float:
    """Return ROUGE-1 F: overlap of single words, without stemming; 0 for texts without words.

    Raises:
        MissingExtraError: rouge_score is missing; install `seesaw_cf[longform]`.

    Source: Lin (2004), as `rouge_score` computes it.
    """
    with need("rouge_score", extra="longform", what_for="ROUGE"):
        from rouge_score.rouge_scorer import RougeScorer
    return float(RougeScorer(["rouge1"]).score(reference, candidate)["rouge1"].fmeasure)


def text_measures(
    columns: pd.DataFrame, *, similarity: Callable[[str, str], float] | None = None, prefix: str = "rouge1"
) -> dict[str, list[float]]:
    """Return one list of values per measure that compares two texts; NaN where a text is empty.

    Args:
        columns: `subject` and `related`, names of the two entities; `subject_passage` and `related_passage`;
            `new_fact`, the edit statement; `subject_facts` and `related_facts`, lists of ground truths as statements.
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
    texts = {side: columns[f"{side}_passage"] for side in SIDES}
    named = [[*map(alike, columns[side], texts[side])] for side in SIDES]
    out[f"{prefix}_topicality"] = [finite_mean(values) for values in zip(*named)]
    for side, own in texts.items():
        out[f"{prefix}_edit_{side}"] = [*map(alike, columns["new_fact"], own)]
        facts = zip(columns[f"{side}_facts"], own)
        out[f"{prefix}_factual_{side}"] = [finite_mean(alike(fact, text) for fact in given) for given, text in facts]
        rows = [sentences(text) for text in own]
        out[f"{prefix}_internal_{side}"] = [
            finite_mean(alike(row[i], row[j]) for i in range(len(row)) for j in range(i)) for row in rows
        ]
    out[f"{prefix}_cross_passage"] = [*map(alike, *texts.values())]
    return out


def leme_auto(
    columns: Columns, *, measures: Values | None = None, ratings: Values | None = None, draws: int = 1000, seed: int = 0
) -> JsonObject:
    """Return the measures of LEME's Appendix I, their means, and their correlation with the ratings they stand for.

    Args:
        columns: Those of `text_measures`, and `case_id`, the edit of each row; intervals are clustered by it.
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
    numbers = {f"measure {name}": values for name, values in (measures or {}).items()}
    numbers |= {f"ratings of {item}": values for item, values in (ratings or {}).items()}
    frame = read_columns(COLUMNS | dict.fromkeys(numbers, floats), {**columns, **numbers})
    measured = text_measures(frame)
    passages = {side: frame[f"{side}_passage"].tolist() for side in SIDES}
    for side, own in passages.items():
        scores = reference_score(own, frame[f"{side}_facts"].tolist())
        measured[f"tfidf_factual_{side}"] = [score if text.strip() else NAN for score, text in zip(scores, own)]
    measured["ngram_entropy"] = [generation_entropy("\n".join(both)) for both in zip(*passages.values())]
    measured |= {name: frame[f"measure {name}"].tolist() for name in measures or {}}
    names = ("value", "low", "high", "n", "note")
    case = pd.factorize(frame["case_id"])[0]
    means = {name: mean_of_cases(np.array(own), case, "no text").columns(*names) for name, own in measured.items()}
    out: JsonObject = {"means": means, "values": measured}
    if ratings is None:
        return out
    return out | {"correlations": correlations(frame["case_id"], measured, ratings, draws=draws, seed=seed)}


def correlations(
    case_id: Iterable[object], measures: Values, ratings: Values, *, draws: int = 1000, seed: int = 0
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
    names = ["measure", "rating"]
    for name, values in measures.items():
        item = STANDS_FOR[checks.one_of("measure", name, STANDS_FOR)]
        if item not in ratings:
            continue
        rows = pd.DataFrame({"case": list(case_id), "item": item})
        rows[names] = np.array([list(values), list(ratings[item])], dtype=np.float64).T
        outside = rows["rating"].notna() & ~rows["rating"].between(min(SCALE), max(SCALE))
        refuse_rows(rows, outside, ["rating", "item"], "ratings from 1 to 7: leave them empty (None), or recode them")
        rows = rows[np.isfinite(rows[names].to_numpy()).all(axis=1)]
        pair, means = (own.to_numpy().T for own in (rows[names], rows.groupby("case")[names].mean()))
        found: JsonObject = {"item": item, "spearman": _spearman(pair), "low": NAN, "high": NAN, "p": NAN}
        if means.shape[1] >= MIN_EFFECTIVE:
            code = pd.factorize(rows["case"])[0]
            own = [np.flatnonzero(code == one) for one in range(means.shape[1])]
            rng = np.random.default_rng(seed)
            picks = [rng.integers(len(own), size=len(own)) for _ in range(draws)]
            drawn = [_spearman(pair[:, np.concatenate([own[i] for i in pick])]) for pick in picks]
            found["low"], found["high"], _ = interval(np.array(drawn))
            found["p"] = _p(means, seed)
        out[name] = found | {"n": len(rows), "n_cases": means.shape[1]}
    if not out:
        known = sorted(set(STANDS_FOR.values()))
        got = f"items {sorted(ratings)}, but no measure stands for one of them"
        raise RecordError(f"ratings: {got}; expected some of {known}.")
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
