"""How good a classifier is: figures with intervals over whole samples, confusion, calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seesaw_cf.effects.leme_annotation import accuracy, macro_f1
from seesaw_cf.longform.annotate.reports import ClassifierScores
from seesaw_cf.stats import cluster_weights, interval
from seesaw_cf.stats.agreement import cohen_kappa, krippendorff_alpha
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.plain import plain


def calibration_error(truth: NDArray[np.intp], probabilities: Floats, bins: int = 10) -> float:
    """Expected calibration error of the answers: mean over equal-width bins of |accuracy - confidence|, by rows.

    Source: Guo et al. (2017), equation 3.
    """
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = np.bincount(which, right - confidence, minlength=bins)
    return float(np.abs(gaps).sum() / len(truth)) if len(truth) else float("nan")


def classifier_scores(
    truth: Sequence[int], probabilities: Floats, groups: Sequence[int], *, draws: int = 2000, seed: int = 0
) -> ClassifierScores:
    """Accuracy, macro-F1, agreement with the truth beyond chance, calibration error and confusion.

    Args:
        truth: Class number per row.
        probabilities: (n, classes) of the classifier, for rows it was not fitted on.
        groups: The independent sample of each row; intervals resample whole ones.
        draws, seed: Of the bootstrap.

    Returns:
        `accuracy` and `macro_f1` (each value, low, high), `recall` (the same for each class), `cohen_kappa`,
        `krippendorff_alpha`, `ece`, `confusion` (truth in rows), `n`, `n_groups`; plain JSON types.
    """
    labels = np.asarray(truth, dtype=np.intp)
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    answers, classes = probabilities.argmax(axis=1), probabilities.shape[1]
    each = np.zeros((int(codes.max(initial=-1)) + 1, classes, classes))
    np.add.at(each, (codes, labels, answers), 1.0)
    weights = cluster_weights(len(each), draws, seed) if len(each) else np.zeros((0, 0))
    drawn = np.tensordot(weights, each, axes=1)
    pairs = np.stack([labels, answers], axis=1).astype(np.float64)
    scores: ClassifierScores = plain({
        "accuracy": _with_interval(accuracy(each.sum(0)), accuracy(drawn)),
        "macro_f1": _with_interval(macro_f1(each.sum(0)), macro_f1(drawn)),
        "recall": [_with_interval(_recall(each.sum(0), c), _recall(drawn, c)) for c in range(classes)],
        "cohen_kappa": cohen_kappa(pairs),
        "krippendorff_alpha": krippendorff_alpha(pairs),
        "ece": calibration_error(labels, probabilities),
        "confusion": each.sum(0).astype(int).tolist(),
        "n": len(labels),
        "n_groups": len(each),
    })  # fmt: skip
    return scores


def _recall(confusion: Floats, label: int) -> Floats:
    """Return the share of a class that is found; NaN where it does not occur."""
    hits, there = confusion[..., label, label], confusion[..., label, :].sum(-1)
    return np.asarray(np.divide(hits, there, out=np.full(np.shape(there), np.nan), where=there > 0))


def _with_interval(value: Floats, drawn: Floats) -> dict[str, float]:
    low, high, _ = interval(drawn)
    return {"value": float(value), "low": low, "high": high}
