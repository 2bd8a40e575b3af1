"""How good a classifier is: figures with intervals over whole samples, confusion, calibration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import lil_array
from scipy.sparse.csgraph import connected_components

from seesaw_cf.base.errors import RecordError
from seesaw_cf.effects.leme_annotation import macro_f1
from seesaw_cf.stats import cluster_weights, interval
from seesaw_cf.stats.agreement import cohen_kappa, krippendorff_alpha
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.case_means import row_share
from seesaw_cf.stats.plain import plain
from seesaw_cf.texts.annotate.reports import ClassifierScores

_BINS = 10


def calibration_error(truth: NDArray[np.intp], probabilities: Floats) -> float:
    """Return the expected calibration error: mean of |accuracy - confidence| over ten equal bins, weighted by rows.

    Source: Guo et al. (2017), equation 3.
    """
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    which = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    gaps = np.bincount(which, right - confidence, minlength=_BINS)
    return float(np.abs(gaps).sum() / len(truth)) if len(truth) else float("nan")


def classifier_scores(
    truth: Sequence[int], probabilities: Floats, groups: Sequence[int], *, draws: int = 2000
) -> ClassifierScores:
    """Return accuracy, macro-F1, agreement with the truth beyond chance, calibration error and confusion.

    Args:
        truth: Class number per row.
        probabilities: (n, classes) of the classifier, for rows it was not fitted on.
        groups: The independent sample of each row; intervals resample whole ones.
        draws: Bootstrap samples.

    Returns:
        `accuracy` and `macro_f1` (each value, low, high), `recall` (the same for each class), `cohen_kappa`,
        `krippendorff_alpha`, `ece`, `confusion` (truth in rows), `n`, `n_groups`; plain JSON types. Shares have the
        interval of `seesaw_cf.stats.case_means.row_share`, none below five groups. That of macro-F1 is the percentile
        interval of a bootstrap over groups, which covers .89, .92 and .94 at 10, 20 and 60 groups of four rows
        (nominal .95; 1,500 invented classifiers of three classes).
    """
    labels = np.asarray(truth, dtype=np.intp)
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    answers, classes = probabilities.argmax(axis=1), probabilities.shape[1]
    each = np.zeros((int(codes.max(initial=-1)) + 1, classes, classes))
    np.add.at(each, (codes, labels, answers), 1.0)
    weights = cluster_weights(len(each), draws, 0) if len(each) else np.zeros((0, 0))
    low, high, _ = interval(macro_f1(np.tensordot(weights, each, axes=1)))
    pairs = np.stack([labels, answers], axis=1).astype(np.float64)
    scores: ClassifierScores = plain({
        "accuracy": share_of_rows(answers == labels, codes),
        "macro_f1": {"value": float(macro_f1(each.sum(0))), "low": low, "high": high},
        "recall": [share_of_rows(answers[labels == c] == c, codes[labels == c]) for c in range(classes)],
        "cohen_kappa": cohen_kappa(pairs),
        "krippendorff_alpha": krippendorff_alpha(pairs),
        "ece": calibration_error(labels, probabilities),
        "confusion": each.sum(0).astype(int).tolist(),
        "n": len(labels),
        "n_groups": len(each),
    })  # fmt: skip
    return scores


def share_of_rows(hits: NDArray[np.bool_], groups: NDArray[np.intp]) -> dict[str, float]:
    """Return the share of rows that are hits, with its interval over groups; NaN without rows."""
    if not hits.size:
        return dict.fromkeys(("value", "low", "high"), float("nan"))
    share = row_share(pd.Series(hits), pd.Series(groups))
    return {"value": float(hits.mean()), "low": share["low"], "high": share["high"]}


# Splits that keep what belongs together apart from the rest: never one sample, or one text, on both sides.


def join_groups(*keys: Sequence[str]) -> list[int]:
    """Number rows so that two rows have the same number when a chain of shared keys leads from one to the other.

    Args:
        *keys: One list per kind of key (sample ids, passage texts), each with one key a row. White space and case do
            not tell texts apart; an empty key joins nothing.

    Returns:
        A group number per row, 0, 1, ... in order of first appearance.

    Raises:
        RecordError: The lists differ in length.

    Source: the connected components of the graph of shared keys.
    """
    lengths = {len(column) for column in keys}
    if len(lengths) != 1:
        raise RecordError(f"join_groups: keys for {sorted(lengths)} rows; expected as many of each kind as rows.")
    first: dict[tuple[int, str], int] = {}
    rows = lengths.pop()
    graph = lil_array((rows, rows), dtype=np.int8)
    for kind, column in enumerate(keys):
        for row, key in enumerate(column):
            if text := " ".join(key.casefold().split()):
                graph[row, first.setdefault((kind, text), row)] = 1
    return [int(group) for group in connected_components(graph, directed=False)[1]] if rows else []


def grouped_folds(groups: Sequence[int], folds: int, seed: int = 0) -> list[int]:
    """Deal whole groups into folds of about equal size, large groups first, each to the smallest fold so far.

    Args:
        groups: A group number per row.
        folds: How many; at least 2.
        seed: Decides between groups of the same size.

    Returns:
        The fold of each row, 0 to folds - 1.

    Raises:
        RecordError: Fewer groups than folds.
    """
    sizes = Counter(groups)
    if not 2 <= folds <= len(sizes):
        raise RecordError(
            f"grouped folds: {folds} folds of {len(sizes)} independent groups (samples that share no text); expected "
            f"2 to {len(sizes)}. Ask for fewer folds or bring more samples."
        )
    order = np.random.default_rng(seed).permutation(sorted(sizes))
    filled = [0] * folds
    fold_of: dict[int, int] = {}
    for group in sorted(order.tolist(), key=lambda g: -sizes[g]):
        fold_of[group] = int(np.argmin(filled))
        filled[fold_of[group]] += sizes[group]
    return [fold_of[group] for group in groups]
