"""Quality of generated texts from the texts alone: an `evaluate` module."""

from __future__ import annotations

import evaluate

from seesaw_cf.base.text import bibtex
from seesaw_cf.effects.texts import QUALITY_COLUMNS, generation_quality
from seesaw_cf.metrics.module import column_arguments, describe

_COLUMNS = {"case_id": "int64", "texts": "list of string", "references": "list of string"}


@describe(bibtex("memit", note="appendix C.2"), _COLUMNS)
class GenerationQuality(evaluate.Metric):  # type: ignore[misc]
    """N-gram entropy (as printed and as coded by its authors), repetition, length, TF-IDF reference score and, given a
    function that scores texts, perplexity.

    One row per case.

    Args:
        case_id (`list` of `int`): the edit.
        texts (`list` of `list` of `str`): the texts generated for it.
        references (`list` of `list` of `str`): texts about the new target; `[]` = no reference score.
        log_likelihood (`Callable`, optional): takes texts, gives (summed log-likelihood in nats, tokens) for each.

    Returns:
        `dict` of plain JSON types: `ngram_entropy`, `ngram_entropy_as_coded`, `repetition`, `length`,
        `reference_score`, and `perplexity` if asked, each with `value`, `low`, `high`, `n`, `note`; `n_cases`,
        `n_empty`.

    Examples:

        Four different words have three 2-grams and two 3-grams: 2/3 log2 3 + 4/3 log2 2 = 2.39 bits.

        >>> metric = evaluate.load("metrics/generation_quality")
        >>> result = metric.compute(case_id=[1], texts=[["one two three four"]], references=[["two four six"]])
        >>> round(result["ngram_entropy"]["value"], 2), result["length"]["value"], result["repetition"]["value"]
        (2.39, 4.0, 0.0)
    """

    _compute = staticmethod(column_arguments(generation_quality, QUALITY_COLUMNS))
