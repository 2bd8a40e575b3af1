"""Measures of texts: by hand, and laws of renaming, reversing and repeating words."""

import math
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.effects.texts import generation_quality, ngram_entropy, reference_score, repetition, words
from seesaw_cf.errors import RecordError
from seesaw_cf.stats.plain import as_json

few = settings(derandomize=True, deadline=None, max_examples=25)
WORDS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=15)


def equal(one: float, other: float) -> bool:
    return one == pytest.approx(other, abs=1e-12, nan_ok=True)


@few
@given(WORDS, st.permutations("abcde"), st.integers(1, 4))
def test_entropy_is_bounded_and_blind_to_names_and_direction(words: list[str], names: list[str], n: int) -> None:
    # names of words and the direction of reading carry no information
    text = " ".join(words)
    renamed = " ".join(names["abcde".index(word)] for word in words)
    for figure in (ngram_entropy, repetition):
        assert equal(figure(renamed, n), figure(text, n))
        assert equal(figure(" ".join(reversed(words)), n), figure(text, n))
    # entropy is at most that of different ngrams
    text, ngrams = " ".join(words), len(words) - n + 1
    different = " ".join(f"w{number}" for number in range(len(words)))
    if ngrams < 1:
        assert math.isnan(ngram_entropy(text, n))
        assert math.isnan(repetition(text, n))
        return
    assert -1e-12 <= ngram_entropy(text, n) <= math.log2(ngrams) + 1e-12
    assert equal(ngram_entropy(different, n), math.log2(ngrams))
    assert 0 <= repetition(text, n) <= 1 - 1 / ngrams + 1e-12
    assert repetition(different, n) == 0


def test_reference_score_by_hand() -> None:
    """One reference "a b": both words weigh ln(2/2) + 1 = 1; (1, 0) and (1, 1) have cosine 1/sqrt 2.

    Words that no reference has are not counted.
    """
    pytest.importorskip("sklearn", reason="sklearn is not installed")
    assert reference_score(["a"], [["a b"]]) == pytest.approx([1 / math.sqrt(2)])
    assert reference_score(["a c c c"], [["a b"]]) == pytest.approx([1 / math.sqrt(2)])
    assert reference_score(["c"], [["a b"]]) == [0.0]
    assert reference_score([], []) == []


@settings(few, max_examples=10)
@given(WORDS, WORDS, st.integers(2, 4))
def test_reference_score_counts_words_in_any_order_and_number(own: list[str], other: list[str], times: int) -> None:
    pytest.importorskip("sklearn", reason="sklearn is not installed")
    text, reference = " ".join(own), " ".join(other)
    (score,) = reference_score([text], [[reference]])
    assert -1e-12 <= score <= 1 + 1e-12
    for same in (" ".join(reversed(own)), " ".join(own * times), text.upper()):
        assert reference_score([same], [[reference]]) == pytest.approx([score])
    assert reference_score([text], [other]) == pytest.approx([score])  # joined


def of_cases(texts: Sequence[Sequence[str]]) -> dict[str, Any]:
    return {"case_id": list(range(len(texts))), "texts": texts, "references": [[]] * len(texts)}


def scored(table: dict[str, tuple[float, int]], cases: Sequence[Sequence[str]]) -> float:
    found: Any = generation_quality(of_cases(cases), log_likelihood=lambda own: [table[t] for t in own])
    return float(found["perplexity"]["value"])


def test_perplexity_by_hand() -> None:
    table = {"a b": (-2.0, 2), "a": (-1.0, 1), "c d": (-5.0, 2), "e": (-9.0, 3)}
    assert scored(table, [["a b"], ["e"]]) == pytest.approx(math.exp((1 + 3) / 2))  # cases weigh alike
    assert scored(table, [["a", "c d"]]) == pytest.approx(math.exp(6 / 3))  # tokens of one case are pooled
    assert scored(table, [["a", ""], [""]]) == pytest.approx(math.exp(1))  # nothing to score counts nowhere


@settings(few, max_examples=8)
@given(st.lists(WORDS.map(" ".join), min_size=2, max_size=6))
def test_copies_of_texts_and_of_cases_keep_every_mean(texts: list[str]) -> None:
    def values(cases: list[list[str]]) -> dict[str, float]:
        found: Any = generation_quality(of_cases(cases))
        return {name: one["value"] for name, one in found.items() if isinstance(one, dict)}

    once = values([[text] for text in texts])
    assert values([[text, text] for text in texts]) == pytest.approx(once, nan_ok=True)
    assert values([[text] for text in texts * 2]) == pytest.approx(once, nan_ok=True)
    assert once["ngram_entropy_as_coded"] == pytest.approx(once["ngram_entropy"] / 2, nan_ok=True)
    assert once["length"] == pytest.approx(sum(len(text.split()) for text in texts) / len(texts))


def test_an_interval_needs_five_cases_and_holds_the_mean() -> None:
    few, many = (cast(Any, generation_quality)(of_cases([["a b " * (i + 1)] for i in range(n)])) for n in (4, 9))
    assert math.isnan(few["length"]["low"])
    assert few["length"]["note"].startswith("too few ")
    length = many["length"]
    assert (length["value"], length["n"]) == (10, 9)  # 2, 4, ..., 18 words
    assert 2 <= length["low"] < length["value"] < length["high"] <= 18


def test_entropy_by_hand() -> None:
    # "a b a b": 2-grams ab, ba, ab -> 2/3, 1/3
    assert ngram_entropy("a b a b", 2) == pytest.approx(-(2 / 3 * math.log2(2 / 3) + 1 / 3 * math.log2(1 / 3)))
    assert ngram_entropy("a a a a", 2) == 0
    assert math.isnan(ngram_entropy("a", 2))
    assert words("It's 3.") == ["It", "'", "s", "3", "."]


def test_quality_per_case() -> None:
    pytest.importorskip("sklearn", reason="sklearn is not installed")
    columns = {"case_id": [1, 2], "texts": [["a b c d", ""], ["a a a a"]], "references": [[], []]}
    result = as_json(generation_quality)(columns)
    assert result["n_empty"] == 1
    assert result["reference_score"] == {"value": None, "low": None, "high": None, "n": 0, "note": "no case"}
    expected = (2 / 3 * math.log2(3) + 4 / 3 * 1 + 0) / 2
    assert result["ngram_entropy"]["value"] == pytest.approx(expected)
    assert result["length"]["value"] == pytest.approx((4 + 0) / 2 / 2 + 4 / 2)


@pytest.mark.parametrize(("scored", "message"), [([(-5.0, 3)], "1 values for 2"), ([(-5.0, 3), (5.0, 3)], "above 0")])
def test_log_likelihoods_that_cannot_be_are_refused(scored: list[tuple[float, int]], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        generation_quality(of_cases([["a b c", "d e f"]]), log_likelihood=lambda _: scored)
