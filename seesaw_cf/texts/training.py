"""Rows to train on, grouped so that no text is on both sides of a split, and how far a model is from people on them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import lil_array
from scipy.sparse.csgraph import connected_components

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, need
from seesaw_cf.base.tables import read_table
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.instruments import DEFAULT
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.stats.agreement import agreement
from seesaw_cf.stats.bootstrap import Floats, interval
from seesaw_cf.stats.clustered import clustered_mean
from seesaw_cf.stats.plain import plain
from seesaw_cf.stats.simple import share_estimate
from seesaw_cf.texts.claims import answered_claims, claim_questions
from seesaw_cf.texts.released import content_parts, read_csv
from seesaw_cf.texts.survey import answered_questions, survey_samples
from seesaw_cf.texts.tables import ANNOTATIONS, RATINGS, RunTexts

_RATING = re.compile(r"[1-6](\.\d+)?|7(\.0*)?")


Row = tuple[tuple[str, str], float, str, str, tuple[str, ...]]


def training_data(rows: Sequence[Row]) -> pd.DataFrame:
    """Return rows to train on.

    Returns:
        `pair`, two texts of which the second is never cut; `target`, the place of a label in `LABELS`, or a rating from
        1 to 7; `part`, what figures are given for apart: "paragraph" or "sentence" of a claim, or the survey item;
        `sample` and `passages`, the texts that a row is about; `group`, equal where a chain of shared samples and
        passages leads from one row to the other: those are on one side of a split. White space and case do not tell
        passages apart; those of one or two words are slips of highlighting and join nothing.
    """
    first: dict[str, int] = {}
    graph = lil_array((max(1, len(rows)), max(1, len(rows))), dtype=np.int8)
    for number, (*_, sample, passages) in enumerate(rows):
        texts = [" ".join(text.casefold().split()) for text in passages if len(text.split()) > 2]
        for key in [f"sample {sample}", *(f"text {text}" for text in texts)]:
            graph[number, first.setdefault(key, number)] = 1
    data = pd.DataFrame(rows, columns=["pair", "target", "part", "sample", "passages"])
    return data.assign(group=connected_components(graph, directed=False)[1][: len(rows)])


def classes_of(data: pd.DataFrame) -> tuple[str, ...]:
    """Return what is told apart: `LABELS` of claims, () of ratings."""
    return LABELS if data["part"].isin(["paragraph", "sentence"]).all() else ()


def read_training(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a CSV file of labelled claims or of ratings.

    Claims: `classification` (one of `LABELS`), `sample_id`, and either `content` ("Passage: ... Claim: ...", as the
    annotated data of LEME; an empty line before "Claim:" marks a whole passage, anything else a highlighted sentence)
    or `premise` and `claim`. Other columns (method, kind of claim) are never read: they would tell the label.

    Ratings, as their authors keep them (LEME, `train_rater_model.py`): `sample_id`, `label` (the item), `score` (1 to
    7) and `content` (all that the item shows).

    Raises:
        StorageError: The file cannot be read.
        RecordError: Columns are missing, or a cell cannot be used; the message has the row.
        UnknownNameError: A label or an item that there is not.
    """
    frame, rows = read_csv(path), list[Row]()
    claims, content = "classification" in frame, "content" in frame
    needed = ["sample_id", *(["content"] if content else ["premise", "claim"]), *([] if claims else ["label", "score"])]
    if missing := [name for name in needed if name not in frame]:
        raise RecordError(
            f"{path}: columns {missing} are missing; it has {list(frame.columns)}. Expected sample_id, classification "
            "and content, or premise and claim; or sample_id, label, score and content."
        )
    for number, row in enumerate(frame.to_dict("records")):
        where = f"{path}, row {number}"
        if claims:
            parts = content_parts(where, row["content"]) if content else (row["premise"], row["claim"], True)
            pair, part = (parts[0].strip(), parts[1].strip()), "paragraph" if parts[2] else "sentence"
            target: float = LABELS.index(one_of(f"classification in {where}:", row["classification"], LABELS))
        else:
            part = one_of(f"survey item in {where}:", row["label"].strip().replace("-", "_"), DEFAULT.items)
            pair = row["content"].strip(), f"{DEFAULT.items[part].statement}."
            if not _RATING.fullmatch(row["score"].strip()):
                raise RecordError(f"{where}: score {row['score']!r}, expected a number from 1 to 7.")
            target = float(row["score"])
        if not all((row["sample_id"].strip(), *pair)):
            raise RecordError(f"{where}: sample_id, passage or claim is empty. Fill it in or drop the row.")
        rows.append((pair, target, part, row["sample_id"], pair[:1]))
    return training_data(rows)


def people_training(file: Path, run: RunTexts) -> pd.DataFrame:
    """Return people's answers about the texts of a run, as `people import` writes them.

    Args:
        file: Labels of claims (a row for the passage, one for each stretch marked as evidence), or ratings.
        run: The run.

    Raises:
        RecordError: No answer is about a text of the run.
    """
    table, rows = read_table(file), list[Row]()
    claims = "claim" in table.column_names
    if claims:
        asked = claim_questions(*run.couples)
        for question, judgement in answered_claims(asked, read_table(file, ANNOTATIONS)):
            (premise, claim), sample = question.pair, str(question.row["case_id"])
            units = [(premise, "paragraph"), *((part, "sentence") for part in judgement.evidence if part.strip())]
            label = LABELS.index(judgement.label)
            rows += [((part, claim), label, unit, sample, question.texts) for part, unit in units]
    else:
        for question, rating in answered_questions(survey_samples(*run.couples), read_table(file, RATINGS)):
            item, sample = str(question.row["item"]), str(question.row["case_id"])
            rows.append((question.pair, float(rating), item, sample, question.texts))
    if not rows:
        count = f"none of {table.num_rows} answers is about a text of {run.folder}"
        raise RecordError(f"{file}: {count}. Give the run that people were asked about.")
    return training_data(rows)


def label_scores(
    truth: Sequence[float], answers: Sequence[float], groups: Sequence[int], classes: Sequence[str]
) -> dict[str, Any]:
    """Return how often a classifier is right.

    Args:
        truth, answers: Class numbers, of rows that the classifier was not fitted on.
        groups: The independent sample of each row; the interval resamples whole ones, none below five.
        classes: Their names.

    Returns:
        `accuracy` (value, low, high), each class and "macro avg" as scikit-learn's `classification_report`,
        `krippendorff_alpha`, `confusion` (truth in rows), `n`, `n_groups`; plain JSON types.

    Raises:
        MissingExtraError: scikit-learn is missing; install `seesaw_cf[longform]`.
    """
    with need("scikit-learn", extra="longform", what_for="training"):
        from sklearn.metrics import classification_report, confusion_matrix
    people, own, numbers = np.asarray(truth), np.asarray(answers), list(range(len(classes)))
    by_class: dict[str, Any] = classification_report(
        people, own, labels=numbers, target_names=list(classes), output_dict=True, zero_division=0.0
    )
    scores: dict[str, Any] = plain({
        **{name: by_class[name] for name in (*classes, "macro avg")},
        "accuracy": _share(people == own, np.asarray(groups)),
        "krippendorff_alpha": agreement("nominal", np.stack([people, own], axis=1).astype(np.float64)),
        "confusion": confusion_matrix(people, own, labels=numbers).tolist(),
        "n": len(people),
        "n_groups": len(set(groups)),
    })  # fmt: skip
    return scores


def _share(hits: NDArray[np.bool_], groups: NDArray[np.intp]) -> dict[str, Any]:
    """Return the share of rows that are hits, with its interval over groups; NaN without rows."""
    share = share_estimate(pd.Series(hits), pd.Series(groups), np.full(hits.size, 1 / max(1, hits.size)))
    return share.columns("value", "low", "high")


def rating_scores(
    truth: Sequence[float], ratings: Sequence[float], groups: Sequence[int], *, draws: int = 1000
) -> dict[str, Any]:
    """Return how far a rater's ratings are from people's.

    Args:
        truth: People's ratings.
        ratings: The rater's, any real numbers.
        groups: The independent sample of each row; intervals resample whole ones.
        draws: Bootstrap samples.

    Returns:
        `spearman`, `mean_absolute_error`, `exact` (share equal after rounding), `within_one` (share at most 1 away, on
        either side, after rounding), each value, low, high; `krippendorff_interval`, `n`, `n_groups`; plain JSON types.
        Shares have the interval of a clustered share, the mean error that of a clustered mean, none below five groups.
        That of rho is the percentile interval of a bootstrap over groups, which covers .92 and .95 at 10 and 20
        groups of five rows (nominal .95; 400 invented raters).

    Source: LEME, Appendix F, Table 9.
    Deviates: `within_one` is two-sided; the released code counts every rating that is too low as a hit.
    """
    people, rater = np.asarray(truth, dtype=np.float64), np.asarray(ratings, dtype=np.float64)
    names, codes = np.unique(np.asarray(groups), return_inverse=True)
    members, rng = [np.flatnonzero(codes == code) for code in range(len(names))], np.random.default_rng(0)
    picks = [
        np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))])
        for _ in range(draws if members else 0)
    ]
    low, high, _ = interval(np.array([_spearman(people[rows], rater[rows]) for rows in picks]))
    away, error = np.abs(np.round(rater) - people), np.abs(people - rater)
    mean = Estimate(float("nan"))
    if len(error):
        mean = clustered_mean(error, [np.full(len(error), 1 / len(error))], {"group": codes})
    scores: dict[str, Any] = plain({
        "spearman": {"value": _spearman(people, rater), "low": low, "high": high},
        "mean_absolute_error": mean.columns("value", "low", "high") | {"low": np.maximum(0.0, mean.low)},
        "exact": _share(away == 0, codes),
        "within_one": _share(away <= 1, codes),
        "krippendorff_interval": agreement("interval", np.stack([people, np.round(rater)], axis=1)),
        "n": len(people),
        "n_groups": len(members),
    })  # fmt: skip
    return scores


def _spearman(people: Floats, rater: Floats) -> float:
    if len(people) < 3 or np.ptp(people) == 0 or np.ptp(rater) == 0:
        return float("nan")
    return float(stats.spearmanr(people, rater).statistic)
