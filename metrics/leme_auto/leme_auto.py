"""Simple measures of passages, next to the ratings they should stand for: an `evaluate` module."""

from __future__ import annotations

import evaluate

from seesaw_cf.base.text import bibtex
from seesaw_cf.effects.leme_auto import COLUMNS, leme_auto
from seesaw_cf.metrics.module import column_arguments, describe

_COLUMNS = {
    "case_id": "int64",
    **dict.fromkeys(("subject", "related", "subject_passage", "related_passage", "new_fact"), "string"),
    **dict.fromkeys(("subject_facts", "related_facts"), "list of string"),
}


@describe(bibtex("leme", note="Appendix I"), _COLUMNS)
class LemeAuto(evaluate.Metric):  # type: ignore[misc]
    """ROUGE-1 in five uses, TF-IDF consistency and n-gram entropy of passages written by an edited model, and the rank
    correlation of each, and of measures from models (NLI, BERTScore, perplexity), with the rating it is meant to stand
    for.

    One row per (edit, text): the passage about the edit's subject and the one about its related entity.

    Args:
        case_id (`list` of `int`): the edit.
        subject, related (`list` of `str`): names of the two entities.
        subject_passage, related_passage (`list` of `str`): the passages.
        new_fact (`list` of `str`): the edit statement.
        subject_facts, related_facts (`list` of `list` of `str`): what is true of the entities, as statements.
        measures (`dict`, optional): values from models, one per row: `nli_edit_subject`, `bertscore_topicality`,
            `perplexity`, ... (`seesaw_cf.texts.report.measures` computes them).
        ratings (`dict`, optional): survey item -> rating per row (1 to 7, None = none).
        draws (`int`): bootstrap samples of whole edits, for the correlations, default 1000.
        seed (`int`): seed of the bootstrap, default 0.

    Returns:
        `dict` of plain JSON types: `means[measure]` (`value`, `low`, `high`, `n`, `note`), `values[measure]`, and with
        ratings `correlations[measure]` (`item`, `spearman`, `low`, `high`, `p`, `n`, `n_cases`).

    Examples:

        Each name has one of the four words of its passage: ROUGE-1 is 2 * (1 * 1/4) / (1 + 1/4) = 0.4.

        >>> metric = evaluate.load("metrics/leme_auto")
        >>> result = metric.compute(
        ...     case_id=[1], subject=["Ann"], related=["Bob"],
        ...     subject_passage=["Ann lives in Rome"], related_passage=["Bob lives in Paris"],
        ...     new_fact=["Ann lives in Rome"], subject_facts=[["Ann lives in Oslo"]], related_facts=[["Bob sings"]],
        ... )
        >>> result["values"]["rouge1_topicality"], result["values"]["rouge1_edit_subject"]
        ([0.4], [1.0])
        >>> result["values"]["rouge1_cross_passage"]
        [0.5]
    """

    _compute = staticmethod(column_arguments(leme_auto, COLUMNS))
