"""LEME's survey ratings by editing method: an `evaluate` module."""

from __future__ import annotations

import evaluate

from seesaw_cf.base.text import bibtex
from seesaw_cf.effects.ratings import SURVEY_COLUMNS, survey_of_columns
from seesaw_cf.metrics.module import column_arguments, describe

_COLUMNS = {"case_id": "int64", "method": "string", "item": "string", "rating": "float64"}


@describe(bibtex("leme", note="Appendix D, Tables 1 and 10-19"), _COLUMNS)
class LemeSurvey(evaluate.Metric):  # type: ignore[misc]
    """Mean rating (1 to 7) of what edited models write, per item and question type of LEME's survey: edit, factual,
    internal and cross-passage consistency, topicality, naturalness. Intervals know which ratings are about the same
    edit.

    One row per rating.

    Args:
        case_id (`list` of `int`): the edit a rating is about.
        method (`list` of `str`): the editing method, such as "memit"; "none" for the unedited model.
        item (`list` of `str`): one of the nine items, such as "new_fact_main_passage".
        rating (`list` of `float`): 1 to 7; None or NaN when the rater gave none.
        reference (`str`, optional): the method to compare each other method with, within the same edits.

    Returns:
        `dict` of plain JSON types: `methods[name]["items"][item]` and `["types"][type]` with `mean` (of case means),
        `low`, `high`, `stderr`, `n`, `n_cases`, `n_missing`, `note`, and with `reference` a `difference` with `mean`,
        `low`, `high`, `stderr`, `p`, `n_cases`, `note`; `n_ratings`, `n_missing`. None = cannot be estimated; `note`
        holds the reason.

    Examples:

        >>> metric = evaluate.load("metrics/leme_survey")
        >>> result = metric.compute(
        ...     case_id=[1, 1, 2, 2],
        ...     method=["none", "memit", "none", "memit"],
        ...     item=["new_fact_main_passage"] * 4,
        ...     rating=[1.0, 7.0, 2.0, None],
        ...     reference="none",
        ... )
        >>> memit = result["methods"]["memit"]["types"]["edit"]
        >>> memit["mean"], memit["n"], memit["n_missing"], memit["difference"]["mean"]
        (7.0, 1, 1, 6.0)
    """

    _compute = staticmethod(column_arguments(survey_of_columns, SURVEY_COLUMNS))
