"""Simple metrics of pairs of passages, by hand."""

from __future__ import annotations

import math

import pytest

from seesaw_cf.texts.rate.survey import SurveySample
from seesaw_cf.texts.report.simple import simple_metrics


def sample(main: str, related: str) -> SurveySample:
    facts = {"subject": ("Ann is a judge",), "related": ("Bo is old",)}
    passages = {side: text for side, text in {"main": main, "related": related}.items() if text}
    return SurveySample("memit", 7, "P19", "post", 0, "Ann", "Bo", "Ann lives in Rome", "Rome", "Oslo", facts, passages)


def test_values_by_hand() -> None:
    """Passage and edit statement share three of four words: precision = recall = F = 3/4. With "Ann is a judge" it
    shares one of four: 1/4. Three different bigrams: log2(3) bits."""
    found = simple_metrics([sample("Ann lives near Rome", "Bo is old")])
    assert found is not None
    value = found.set_index("metric")["value"]
    assert value["rouge1_edit_subject"] == pytest.approx(3 / 4)
    assert value["rouge1_factual_subject"] == pytest.approx(1 / 4)
    assert value["rouge1_factual_related"] == pytest.approx(1)
    assert value["entropy_2_grams"] == pytest.approx(math.log2(3))
    assert set(found["method"]) == {"memit"}
    assert set(found["case_id"]) == {7}


def test_missing_passages_are_missing_values_and_no_samples_no_table() -> None:
    found = simple_metrics([sample("Ann lives near Rome", "")])
    assert found is not None
    value = found.set_index("metric")["value"]
    assert math.isnan(value["rouge1_edit_related"])
    assert math.isnan(value["rouge1_cross_passage"])
    assert simple_metrics([]) is None
