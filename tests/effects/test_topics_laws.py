"""Topic shares and relative entropy by hand; laws of names, copies, smoothing and samples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.effects.topics import label_topics, representative_words, topic_disparity
from seesaw_cf.errors import RecordError

few = settings(derandomize=True, deadline=None, max_examples=8)
Rows = list[tuple[str, int]]
ROWS = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 3)), min_size=3, max_size=25).filter(
    lambda rows: len({name for name, _ in rows}) > 1
)


def topics(rows: Sequence[tuple[str, int]], smoothing: float = 0.5, draws: int = 20, seed: int = 0) -> dict[str, Any]:
    names, found = zip(*rows, strict=True)
    return topic_disparity(
        {"identity": names, "topic": found}, min_triples=1, smoothing=smoothing, draws=draws, seed=seed
    )


def shown(one: Mapping[str, Any]) -> tuple[dict[int, float], Any]:
    return {int(topic): share["value"] for topic, share in one["shares"].items()}, one["relative_entropy"]


def raw(rows: Sequence[tuple[str, int]], smoothing: float = 0.5) -> dict[str, float]:
    return {name: shown(one)[1]["value"] for name, one in topics(rows, smoothing, draws=0)["identities"].items()}


def test_two_groups_by_hand() -> None:
    rows = [("A", 0)] * 3 + [("A", 7)] + [("B", 0)] + [("B", 7)] * 3
    found = topics(rows)
    assert found["topics"] == [0, 7]
    shares, entropy = shown(found["identities"]["A"])
    assert shares == {0: 0.75, 7: 0.25}
    # smoothed: A (3.5, 1.5)/5 = (.7, .3), the rest (.3, .7): .7 ln(7/3) - .3 ln(7/3) = .4 ln(7/3)
    assert entropy["value"] == pytest.approx(0.4 * math.log(7 / 3))
    assert shown(found["identities"]["B"])[1]["value"] == pytest.approx(entropy["value"])


@few
@given(ROWS, st.permutations(range(4)), st.integers(2, 5), st.integers(1, 6), st.integers(1, 30))
def test_names_copies_and_missing_topics(rows: Rows, names: list[int], times: int, more: int, draws: int) -> None:
    # names copies and triples without topic
    found, renamed = topics(rows, draws=0), topics([(name, 10 * names[topic]) for name, topic in rows], draws=0)
    for name, one in found["identities"].items():
        shares, entropy = shown(one)
        others, other = shown(renamed["identities"][name])
        assert others == {10 * names[topic]: share for topic, share in shares.items()}
        assert other["value"] == pytest.approx(entropy["value"], abs=1e-12)
        assert sum(shares.values()) == pytest.approx(1)
    # copies with as much more smoothing keep the entropy
    assert raw(rows * times, 0.5 * times) == pytest.approx(raw(rows), abs=1e-12)
    # triples without topic are counted and change nothing
    found, padded = topics(rows), topics([*rows, *[("A", -1)] * more])
    assert padded["n_rows"] == found["n_rows"] + more
    for name, one in found["identities"].items():
        assert padded["identities"][name]["shares"] == one["shares"]
        assert padded["identities"][name]["relative_entropy"] == one["relative_entropy"]
        assert padded["identities"][name]["n_without_topic"] == (more if name == "A" else 0)
    # p is a count of permutations and the interval is not below zero
    for one in topics(rows, draws=draws)["identities"].values():
        entropy = shown(one)[1]
        count = entropy["p"] * (draws + 1)
        assert count == pytest.approx(round(count))
        assert 1 <= round(count) <= draws + 1
        assert entropy["p"] <= entropy["p_adjusted"] <= 1
        assert entropy["corrected"] >= 0
        assert math.isnan(entropy["low"]) or 0 <= entropy["low"] < entropy["high"]


@few
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12))
def test_more_smoothing_makes_groups_more_alike(pairs: list[tuple[int, int]]) -> None:
    """Equal numbers: both sides are mixed with the same share of the uniform, and relative entropy is convex."""
    rows = [row for a, b in pairs for row in (("A", a), ("B", b))]
    found = [raw(rows, smoothing)["A"] for smoothing in (0.1, 0.5, 2.0, 50.0)]
    assert all(math.isfinite(value) and value >= -1e-12 for value in found)
    assert all(less <= more + 1e-12 for more, less in itertools.pairwise(found))


@pytest.mark.parametrize("draws", [0, 1])
def test_without_samples_there_is_no_interval(draws: int) -> None:
    one = topics([("A", 0), ("A", 1), ("B", 0)], draws=draws)["identities"]["A"]
    shares, entropy = shown(one)
    assert shares == {0: 0.5, 1: 0.5}
    assert math.isnan(entropy["low"])
    assert math.isnan(entropy["high"])
    assert math.isnan(entropy["corrected"]) is (draws == 0)


@pytest.mark.parametrize("smoothing", [5e-324, 1e-300, 1e9])
def test_any_smoothing_gives_a_finite_entropy(smoothing: float) -> None:
    assert all(math.isfinite(value) for value in raw([("A", 0), ("A", 0), ("B", 1)], smoothing).values())


@pytest.mark.parametrize("smoothing", [0.0, -1.0, math.nan, math.inf, 1e300])
def test_no_other_number_smooths(smoothing: float) -> None:
    with pytest.raises(RecordError, match=r"smoothing is .*, expected a finite number above 0"):
        raw([("A", 0), ("B", 1)], smoothing)


def test_words_of_a_topic_by_hand() -> None:
    """Topic 0: rice 2, tea 1; topic 1: tea 1, war 2. Mean words per topic 3; rice 2/3 ln(1 + 3/2), tea 1/3 ln(1 + 3/2).

    In topic 2 nothing is left, and what stands in no topic counts nowhere.
    """
    texts = ["rice tea", "Rice", "tea war", "war", "a", "gold gold"]
    found = representative_words(texts, [0, 0, 1, 1, 2, -1])
    assert found == {0: ["rice", "tea"], 1: ["war", "tea"], 2: []}
    assert representative_words(texts, [0, 0, 1, 1, 2, -1], n=1, skip=frozenset({"rice"}))[0] == ["tea"]


def test_a_topic_is_of_the_dimension_that_most_words_name() -> None:
    seeds = {"warmth": ("kind", "cold"), "competence": ("clever",)}
    words = {0: ["Kind", "cold", "clever"], 1: ["kind", "clever"], 2: ["rice"], 3: ["CLEVER", "kindly"]}
    assert label_topics(words, seeds) == {0: "warmth", 1: "", 2: "", 3: "competence"}
