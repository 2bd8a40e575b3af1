"""Simple measures of passages, beside the ratings they should stand for: an `evaluate` module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import datasets
import evaluate

from seesaw_cf.citations import bibtex
from seesaw_cf.effects.leme_auto import PassageColumns, leme_auto
from seesaw_cf.stats.plain import as_json

_DESCRIPTION = """\
ROUGE-1 in five uses, TF-IDF consistency and n-gram entropy of passages written by an edited model, and the rank
correlation of each, and of measures from models (NLI, BERTScore, perplexity), with the rating it is meant to stand for.
"""

_CITATION = bibtex("leme", note="Appendix I")

_INPUTS = """
One row per (edit, text): the passage about the edit's subject and the one about its related entity.

Args:
    case_id (`list` of `int`): the edit.
    subject, related (`list` of `str`): names of the two entities.
    subject_passage, related_passage (`list` of `str`): the passages.
    new_fact (`list` of `str`): the edit statement.
    subject_facts, related_facts (`list` of `list` of `str`): what is true of the entities, as statements.
    measures (`dict`, optional): values from models, one per row: `nli_edit_subject`, `bertscore_topicality`,
        `perplexity`, ... (`seesaw_cf.longform.report.auto` computes them).
    ratings (`dict`, optional): survey item -> rating per row (1 to 7, None = none).
    draws (`int`): bootstrap samples of whole edits, default 1000.
    seed (`int`): seed of the bootstrap, default 0.

Returns:
    `dict` of plain JSON types: `means[measure]` (`value`, `low`, `high`, `n`), `values[measure]`, and with ratings
    `correlations[measure]` (`item`, `spearman`, `low`, `high`, `p`, `n`, `n_cases`).

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


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _INPUTS)
class LemeAuto(evaluate.Metric):  # type: ignore[misc]
    """Simple measures of passages and what they stand for."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        texts = ("subject", "related", "subject_passage", "related_passage", "new_fact")
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                {
                    "case_id": datasets.Value("int64"),
                    **dict.fromkeys(texts, text),
                    "subject_facts": datasets.List(text),
                    "related_facts": datasets.List(text),
                }
            ),
        )

    def _compute(
        self,
        case_id: Sequence[int],
        subject: Sequence[str],
        related: Sequence[str],
        subject_passage: Sequence[str],
        related_passage: Sequence[str],
        new_fact: Sequence[str],
        subject_facts: Sequence[Sequence[str]],
        related_facts: Sequence[Sequence[str]],
        measures: Mapping[str, Sequence[float | None]] | None = None,
        ratings: Mapping[str, Sequence[float | None]] | None = None,
        draws: int = 1000,
        seed: int = 0,
    ) -> dict[str, object]:
        rows = PassageColumns(
            subject, related, subject_passage, related_passage, new_fact, subject_facts, related_facts
        )
        return as_json(leme_auto)(case_id, rows, measures=measures, ratings=ratings, draws=draws, seed=seed)
