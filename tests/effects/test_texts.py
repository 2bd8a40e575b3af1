"""Entropy, repetition, reference score and perplexity by hand."""

from __future__ import annotations

import math

import pytest

from seesaw_cf.effects.texts import generation_quality, ngram_entropy, repetition, words
from seesaw_cf.errors import RecordError
from seesaw_cf.stats.plain import as_json


def test_entropy_by_hand() -> None:
    # "a b a b": 2-grams ab, ba, ab -> 2/3, 1/3
    assert ngram_entropy("a b a b", 2) == pytest.approx(-(2 / 3 * math.log2(2 / 3) + 1 / 3 * math.log2(1 / 3)))
    assert ngram_entropy("a a a a", 2) == 0
    assert math.isnan(ngram_entropy("a", 2))
    assert words("It's 3.") == ["It", "'", "s", "3", "."]


def test_repetition_by_hand() -> None:
    # 4-grams of a b c d a b c d: abcd bcda cdab dabc abcd -> 4 of 5 differ
    assert repetition("a b c d a b c d") == pytest.approx(1 / 5)
    assert math.isnan(repetition("a b c"))


def test_quality_per_case_with_perplexity() -> None:
    pytest.importorskip("sklearn", reason="sklearn is not installed")

    def fair_coin(texts: object) -> list[tuple[float, int]]:
        return [(2 * math.log(0.5), 2) for _ in texts]  # type: ignore[attr-defined]

    columns = {"case_id": [1, 2], "texts": [["a b c d", ""], ["a a a a"]], "references": [[], []]}
    result = as_json(generation_quality)(columns, log_likelihood=fair_coin)
    assert result["perplexity"]["value"] == pytest.approx(2)
    assert result["n_empty"] == 1
    assert result["reference_score"] == {"value": None, "low": None, "high": None, "n": 0, "note": "no case"}
    expected = (2 / 3 * math.log2(3) + 4 / 3 * 1 + 0) / 2
    assert result["ngram_entropy"]["value"] == pytest.approx(expected)
    assert result["ngram_entropy_as_coded"]["value"] == pytest.approx(expected / 2)
    assert result["length"]["value"] == pytest.approx((4 + 0) / 2 / 2 + 4 / 2)


@pytest.mark.parametrize(
    ("scored", "message"),
    [
        ([(-5.0, 3)], "log_likelihood gives 1 values for 2 texts, expected one for each"),
        ([(-5.0, 3), (5.0, 3)], "log_likelihood: 1 of 2 values are above 0"),
    ],
)
def test_log_likelihoods_that_cannot_be_are_refused(scored: list[tuple[float, int]], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        generation_quality(
            {"case_id": [1], "texts": [["a b c", "d e f"]], "references": [[]]}, log_likelihood=lambda _: scored
        )
