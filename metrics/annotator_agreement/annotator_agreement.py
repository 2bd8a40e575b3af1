"""How far annotators agree, raw and beyond chance: an `evaluate` module."""

from __future__ import annotations

import evaluate

from seesaw_cf.base.text import bibtex
from seesaw_cf.metrics.module import describe
from seesaw_cf.stats.agreement import annotator_agreement
from seesaw_cf.stats.plain import as_json

_COLUMNS = {"ratings": "list of float64"}


@describe(bibtex("seesaw_cf", note="Table 21"), _COLUMNS)
class AnnotatorAgreement(evaluate.Metric):  # type: ignore[misc]
    """Pairwise and n-way percent agreement, Cohen's and Fleiss' kappa and Krippendorff's alpha (nominal, ordinal,
    interval) of annotators who labelled the same items, with intervals over items and missing labels.

    One row per item.

    Args:
        ratings (`list` of `list` of `float`): the item's labels, one per annotator in a fixed order; None = missing.
        names (`list` of `str`, optional): names of the annotators.
        scale (`list` of `float`, optional): the allowed labels; any other is an error.
        groups (`list`, optional): what each item belongs to, such as its edit; items of one are not independent.
        draws (`int`): items invented for the error at each agreement tested, default 1000; 0 leaves intervals
            out.
        seed (`int`): seed of them, default 0.

    Returns:
        `dict` of plain JSON types: `percent` (per pair and "all"), `cohen` (per pair and "mean"), `fleiss`,
        `krippendorff` (per level), each with `value`, `low`, `high`, `n`; `n_items`, `n_missing`, `majority_share`.

    Examples:

        Three annotators, four items; they all agree on two of four.

        >>> metric = evaluate.load("metrics/annotator_agreement")
        >>> result = metric.compute(ratings=[[0, 0, 0], [1, 1, 1], [0, 1, 0], [0, 0, 1]], draws=50)
        >>> result["percent"]["all"]["value"], result["percent"]["1/2"]["value"]
        (50.0, 75.0)
        >>> round(result["fleiss"]["value"], 3)
        0.314
    """

    _compute = staticmethod(as_json(annotator_agreement))
