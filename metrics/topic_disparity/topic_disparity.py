"""What groups of people are spoken of as, and how far that is from the rest: an `evaluate` measurement."""

from __future__ import annotations

import evaluate

from seesaw_cf.base.text import bibtex
from seesaw_cf.effects.topics import COLUMNS, topic_disparity
from seesaw_cf.metrics.module import column_arguments, describe

_COLUMNS = {"identity": "string", "topic": "int64"}


@describe(bibtex("stereotypes", note="section 5.3"), _COLUMNS)
class TopicDisparity(evaluate.Measurement):  # type: ignore[misc]
    """Topic shares of each identity, and the relative entropy of its topics to those of all other identities, corrected
    for its bias in small samples, with intervals and a permutation test.

    One row per statement (triple).

    Args:
        identity (`list` of `str`): identity that the statement is about.
        topic (`list` of `int`): its topic; below 0 = none.
        cluster (`list`, optional): what depends on each other, such as the run of a crawl; None = every statement
            alone.
        min_triples (`int`): nothing is shown of an identity with fewer statements, default 30.
        smoothing (`float`): added to every count, default 0.5.
        draws (`int`): bootstrap samples and permutations, default 1000.
        seed (`int`): seed of both, default 0.

    Returns:
        `dict` of plain JSON types: `identities[name]` with `shares[topic]` (`value`, `low`, `high`), `relative_entropy`
        in nats (`value`, `corrected`, `low`, `high`, `expected`, `p`, `p_adjusted`), `n`, `n_without_topic`, `note`;
        and `topics`, `n_rows`, `method`. None = cannot be estimated.

    Examples:

        Three quarters of A's statements are of topic 0, one quarter of B's; the relative entropy of (3/4, 1/4) to
        (1/4, 3/4) is ln(3) / 2.

        >>> metric = evaluate.load("metrics/topic_disparity")
        >>> found = metric.compute(
        ...     identity=["A"] * 4 + ["B"] * 4, topic=[0, 0, 0, 1, 0, 1, 1, 1], min_triples=4, smoothing=1e-9, draws=100
        ... )["identities"]
        >>> found["A"]["shares"]["0"]["value"], round(found["A"]["relative_entropy"]["value"], 3)
        (0.75, 0.549)
        >>> metric.compute(identity=["A", "B"], topic=[0, 1])["identities"]["A"]["note"]
        '1 triples with a topic, fewer than 30: nothing is shown'
    """

    _compute = staticmethod(column_arguments(topic_disparity, COLUMNS))
