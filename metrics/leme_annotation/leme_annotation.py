"""How many claims passages support or contradict: an `evaluate` module."""

from __future__ import annotations

import evaluate

from seesaw_cf.base.text import bibtex
from seesaw_cf.effects.texts import CLAIM_COLUMNS, leme_annotation
from seesaw_cf.metrics.module import column_arguments, describe

_COLUMNS = {"case_id": "int64"} | dict.fromkeys(("group", "passage", "claim_kind", "label"), "string")


@describe(bibtex("leme", note="sections 3.3 and 5.3, Figures 4 and 5"), _COLUMNS)
class LemeAnnotation(evaluate.Metric):  # type: ignore[misc]
    """Shares of claims (new fact, old fact, ground truth) that generated passages support, leave open or contradict,
    per group of passages, with intervals over edits; and the agreement of an annotator with people.

    One row per (passage, claim).

    Args:
        case_id (`list` of `int`): the edit.
        group (`list` of `str`): what is compared, such as the editor.
        passage (`list` of `str`): "subject" or "related".
        claim_kind (`list` of `str`): "new_fact", "old_fact" or "ground_truth".
        label (`list` of `str`): "supports", "neutral" or "contradicts"; "" = not annotated.
        reference (`list` of `str`, optional): labels of people for the same rows.
        draws (`int`): bootstrap samples of whole edits for the agreement, default 2000.
        seed (`int`): seed of the bootstrap, default 0.

    Returns:
        `dict` of plain JSON types: `shares[group][passage][claim_kind]` with, per label, `value`, `low`, `high`,
        `pooled`, `note`, and `n`, `n_cases`, `n_missing`; `n_rows`, `n_missing`; with `reference`, `agreement`
        (`accuracy`, `macro_f1`, `cohen_kappa`, `krippendorff_alpha`, `constant`, `confusion`, `n`, `n_cases`).

    Examples:

        The passages of two edits, each with two ground truths; one of the four is contradicted.

        >>> metric = evaluate.load("metrics/leme_annotation")
        >>> result = metric.compute(
        ...     case_id=[1, 1, 2, 2], group=["rome"] * 4, passage=["subject"] * 4, claim_kind=["ground_truth"] * 4,
        ...     label=["supports", "contradicts", "neutral", "supports"],
        ... )
        >>> found = result["shares"]["rome"]["subject"]["ground_truth"]
        >>> found["contradicts"]["value"], found["supports"]["value"], found["n_cases"]
        (0.25, 0.5, 2)
    """

    _compute = staticmethod(column_arguments(leme_annotation, CLAIM_COLUMNS))
