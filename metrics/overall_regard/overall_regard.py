"""Is a group spoken of well or badly: an `evaluate` measurement."""

from __future__ import annotations

import evaluate

from seesaw_cf.base.text import bibtex
from seesaw_cf.effects.regard import COLUMNS, overall_regard
from seesaw_cf.metrics.module import column_arguments, describe

_COLUMNS = {"identity": "string", "regard": "string"}


@describe(bibtex("stereotypes", note="section 5.2"), _COLUMNS)
class OverallRegard(evaluate.Measurement):  # type: ignore[misc]
    """Overall regard of each identity: the number of statements with positive regard minus the number with negative
    regard, and the same per statement, with intervals and a test against all other identities.

    One row per statement (triple).

    Args:
        identity (`list` of `str`): identity that the statement is about.
        regard (`list` of `str`): "positive", "negative", "neutral" or "other"; "" = the classifier gave nothing.
        cluster (`list`, optional): what depends on each other, such as the run of a crawl; None = every statement
            alone.
        draws (`int`): bootstrap samples of whole clusters, default 2000.
        seed (`int`): seed of the bootstrap, default 0.

    Returns:
        `dict` of plain JSON types: `identities[name]` with `n_positive`, `n_negative`, `n_neutral`, `n_other`,
        `overall` (`overall_low`, `overall_high`), `normalised` (`low`, `high`, `stderr`), `n`, `n_unscored`,
        `n_clusters` and `contrast` (`value`, `low`, `high`, `p`, `p_adjusted`, `note`); and `n_rows`, `n_unscored`,
        `method`. None = cannot be had.

    Examples:

        Three of four statements about A are positive, one is negative: +2, or 0.5 per statement.

        >>> metric = evaluate.load("metrics/overall_regard")
        >>> labels = ["positive", "positive", "positive", "negative", "neutral", "negative"]
        >>> found = metric.compute(identity=["A", "A", "A", "A", "B", "B"], regard=labels)["identities"]
        >>> found["A"]["overall"], found["A"]["normalised"], found["B"]["overall"]
        (2, 0.5, -1)
        >>> found["A"]["contrast"]["value"]
        1.0
    """

    _compute = staticmethod(column_arguments(overall_regard, COLUMNS))
