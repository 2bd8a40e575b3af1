"""The simple metrics of LEME's Appendix I that need no model, for every pair of passages of a run."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import pandas as pd

from seesaw_cf.base.errors import MissingExtraError
from seesaw_cf.effects.leme_auto import PassageColumns, text_measures
from seesaw_cf.effects.texts import ngram_entropy
from seesaw_cf.texts.rate.survey import SurveySample

log = logging.getLogger(__name__)


def simple_metrics(samples: Sequence[SurveySample]) -> pd.DataFrame | None:
    """Return ROUGE-1 against what a passage should say, and n-gram entropy in bits.

    Args:
        samples: Pairs of passages; a passage that is missing gives NaN.

    Returns:
        method, case_id, metric, value: one row per sample and metric. None when rouge_score is not installed (with a
        warning) or without samples.

    Source: LEME, Appendix I.
    """
    if not samples:
        return None
    columns = passage_columns(samples)
    try:
        measures = text_measures(columns)
    except MissingExtraError as error:
        log.warning("no simple metrics: %s", error)
        return None
    for size in (2, 3):
        measures[f"entropy_{size}_grams"] = [
            ngram_entropy(text, size) if text.strip() else float("nan") for text in columns.subject_passage
        ]
    return measure_rows(samples, measures)


def passage_columns(samples: Sequence[SurveySample]) -> PassageColumns:
    """Return what the measures of pairs of passages compare."""
    main, related = ([sample.passages.get(side, "") for sample in samples] for side in ("main", "related"))
    return PassageColumns(
        subject=[sample.subject for sample in samples],
        related=[sample.related_entity for sample in samples],
        subject_passage=main,
        related_passage=related,
        new_fact=[sample.new_fact for sample in samples],
        subject_facts=[sample.old_facts.get("subject", ()) for sample in samples],
        related_facts=[sample.old_facts.get("related", ()) for sample in samples],
    )


def measure_rows(samples: Sequence[SurveySample], measures: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    """Return measures, one value per sample, as rows: method, case_id, metric, value."""
    about = {"method": [sample.editor for sample in samples], "case_id": [sample.case_id for sample in samples]}
    parts = [pd.DataFrame({**about, "metric": name, "value": values}) for name, values in measures.items()]
    return pd.concat(parts, ignore_index=True)
