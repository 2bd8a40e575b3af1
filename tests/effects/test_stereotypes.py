"""Regard, attack scores and topics: by hand, by simulation, and laws of swapping, shifting, smoothing and copying."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.effects.regard import QUANTILES, REGARDS, attack_summary, overall_regard, prefix_effect, scorer_bias
from seesaw_cf.effects.topics import label_topics, representative_words, topic_disparity
from seesaw_cf.errors import RecordError, UnknownNameError
from seesaw_cf.stats.plain import as_json
from seesaw_cf.types import Estimate

few = settings(derandomize=True, deadline=None, max_examples=8)
LABELLED = st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from([*REGARDS, None])), min_size=2, max_size=25)


def regard(rows: Sequence[tuple[str, str | None]], draws: int = 30) -> dict[str, Any]:
    names, found = zip(*rows, strict=True)
    return dict(overall_regard({"identity": names, "regard": found}, draws=draws)["identities"])


def attack(rows: Sequence[tuple[str, float]], draws: int = 30) -> dict[str, Any]:
    names, found = zip(*rows, strict=True)
    return dict(attack_summary({"identity": names, "attack": found}, draws=draws)["identities"])


def mean(row: Mapping[str, Any]) -> Estimate:
    value = row["normalised"] if "normalised" in row else row["mean"]
    return Estimate(value, row["low"], row["high"], row["stderr"], n=row["n"])


def more(row: Mapping[str, Any], name: str) -> Estimate:
    return Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"])


def contrast_of(row: Mapping[str, Any]) -> Estimate:
    return Estimate(row["value"], row["low"], row["high"], p=row["p"])


def close(one: Estimate, other: Estimate, names: Sequence[str] = ("value", "low", "high")) -> bool:
    found, expected = ([getattr(each, name) for name in names] for each in (one, other))
    return found == pytest.approx(expected, abs=1e-9, nan_ok=True)


def turned(one: Estimate) -> Estimate:
    return Estimate(-one.value, -one.high, -one.low, one.stderr, one.p)


SWAP = {"positive": "negative", "negative": "positive"}


@few
@given(LABELLED, st.integers(1, 5))
def test_signs_counts_and_copies_of_regard(rows: list[tuple[str, str | None]], times: int) -> None:
    # swapping good and bad turns every number around
    found, swapped = regard(rows), regard([(name, SWAP.get(label or "", label)) for name, label in rows])
    for name, one in found.items():
        other = swapped[name]
        assert close(mean(other), turned(mean(one)), ("value", "low", "high", "stderr"))
        assert close(more(other, "overall"), turned(more(one, "overall")))
        assert close(
            contrast_of(other["contrast"]), turned(contrast_of(one["contrast"])), ("value", "low", "high", "p")
        )
        assert (other["n_positive"], other["n_neutral"]) == (one["n_negative"], one["n_neutral"])
    # overall is the mean times the number and the labels add up
    for name, one in regard(rows).items():
        assert sum(one[f"n_{label}"] for label in REGARDS) == mean(one).n
        assert mean(one).n + one["n_unscored"] == sum(own == name for own, _ in rows)
        if mean(one).n:
            assert more(one, "overall").value == pytest.approx(mean(one).value * mean(one).n)
    # statements without a score are counted and change nothing
    padded = regard([*rows, *((name, "") for name in found for _ in range(times))])
    for name, one in found.items():
        assert padded[name]["n_unscored"] == one["n_unscored"] + times
        assert close(mean(padded[name]), mean(one))
        assert close(contrast_of(padded[name]["contrast"]), contrast_of(one["contrast"]), ("value", "p"))
    # copies inside a cluster are no evidence
    names, labels = (list(column) for column in zip(*rows, strict=True))
    columns = {"identity": names, "regard": labels, "cluster": [number % 4 for number in range(len(rows))]}
    once = overall_regard(columns, draws=30)["identities"]
    often = overall_regard({name: own * 3 for name, own in columns.items()}, draws=30)["identities"]
    for name, one in once.items():
        assert close(mean(often[name]), mean(one), ("value", "low", "high", "stderr"))
        assert close(contrast_of(often[name]["contrast"]), contrast_of(one["contrast"]), ("value", "low", "high", "p"))
        assert often[name]["n_clusters"] == one["n_clusters"]
        assert more(often[name], "overall").value == 3 * more(one, "overall").value


@few
# 64ths: sums, halves and differences of them are exact.
@given(st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 32).map(lambda n: n / 64)), min_size=2, max_size=20))
def test_attacks_are_shifted_scaled_and_turned(rows: list[tuple[str, float]]) -> None:
    # a constant shifts scores and no difference
    found, moved = attack(rows), attack([(name, score + 0.25) for name, score in rows])
    for name, one in found.items():
        other = moved[name]
        quantiles = ((more(one, name), more(other, name)) for name in QUANTILES)
        for here, there in ((mean(one), mean(other)), *quantiles):
            assert close(there, Estimate(here.value + 0.25, here.low + 0.25, here.high + 0.25))
        assert close(more(other, "iqr"), more(one, "iqr"))
        assert close(contrast_of(other["contrast"]), contrast_of(one["contrast"]), ("value", "low", "high"))
    # half the scores are half of every number
    found, halved = attack(rows), attack([(name, score / 2) for name, score in rows])
    for name, one in found.items():
        quantiles = ((more(one, q), more(halved[name], q)) for q in (*QUANTILES, "iqr"))
        pairs = [(mean(one), mean(halved[name])), *quantiles]
        for here, there in pairs:
            assert close(there, Estimate(here.value / 2, here.low / 2, here.high / 2))
    # quantiles of the complement are the complements
    found, other = attack(rows), attack([(name, 1 - score) for name, score in rows])
    for name, one in found.items():
        for lower, upper in (("q25", "q75"), ("median", "median"), ("q75", "q25")):
            assert more(other[name], upper).value == pytest.approx(1 - more(one, lower).value)
        assert more(other[name], "iqr").value == pytest.approx(more(one, "iqr").value)


def test_prefix_effect_by_hand() -> None:
    columns: dict[str, Any] = {"kind": ["r"] * 5 + ["g"] * 2, "identity": ["A", "B", "A", "B", "A", "C", "C"]}
    columns |= {
        "attack": [0.3, 0.4, 0.1, 0.2, None, 0.5, 0.7],
        "prefixed": [True, True, False, False, True, True, True],
    }
    found = prefix_effect(columns)
    row = found["r"]
    assert (row["mean_with"], row["mean_without"]) == pytest.approx((0.35, 0.15))
    assert (row["n_with"], row["n_without"], row["n_unscored"]) == (2, 2, 1)
    assert row["difference"] == pytest.approx(0.2)
    # {.3, .4} above {.1, .2}: one of the 6 orders, two-sided 2/6; the only tested class of its family
    assert row["p_rank"] == row["p_rank_adjusted"] == pytest.approx(1 / 3)
    alone = found["g"]
    assert alone["mean_with"] == pytest.approx(0.6)
    assert alone["n_without"] == 0
    assert alone["note"] == "one side is empty"
    assert math.isnan(alone["mean_without"])


def test_scorer_bias_by_hand_and_turned() -> None:
    change = np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.0, 0.1, -0.1, 0.0, 0.1, -0.1])
    columns = {"identity": ["A"] * 6 + ["B"] * 6, "content": [*range(6)] * 2}
    found = scorer_bias(columns | {"change": change})
    (a, p_a), (b, p_b) = found["A"], found["B"]
    assert (a.value, b.value) == pytest.approx((0.2, 0.0))
    # each sentence once: the error is s / sqrt(6), s of .1 .2 .3 .1 .2 .3 = sqrt(.04 / 5)
    assert a.stderr == pytest.approx(math.sqrt(0.04 / 5 / 6))
    assert b.p == p_b == pytest.approx(1.0)
    assert p_a == pytest.approx(2 * a.p)
    other, _ = scorer_bias(columns | {"change": -change})["A"]
    assert close(other, turned(a), ("value", "low", "high", "p"))


def test_columns_of_another_kind_are_named() -> None:
    with pytest.raises(RecordError, match="lengths"):
        prefix_effect({"kind": ["r"], "identity": ["A"], "attack": [0.1, 0.2], "prefixed": [True]})
    with pytest.raises(RecordError, match=r"cluster\[1\] is None, expected a whole number"):
        overall_regard({"identity": ["A", "B"], "regard": ["positive", "other"], "cluster": [1, None]})


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
    found = topics([("A", 0)] * 3 + [("A", 7)] + [("B", 0)] + [("B", 7)] * 3)
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


def test_any_number_above_0_smooths_to_a_finite_entropy() -> None:
    for smoothing in (5e-324, 1e-300, 1e9):
        assert all(math.isfinite(value) for value in raw([("A", 0), ("A", 0), ("B", 1)], smoothing).values())
    for smoothing in (0.0, -1.0, math.nan, math.inf, 1e300):
        with pytest.raises(RecordError, match="smoothing"):
            raw([("A", 0), ("B", 1)], smoothing)


def test_words_of_a_topic_by_hand() -> None:
    """Topic 0: rice 2, tea 1; topic 1: tea 1, war 2. Mean words per topic 3; rice 2/3 ln(1 + 3/2), tea 1/3 ln(1 + 3/2).

    In topic 2 nothing is left, and what stands in no topic counts nowhere.
    """
    texts = ["rice tea", "Rice", "tea war", "war", "a", "gold gold"]
    assert representative_words(texts, [0, 0, 1, 1, 2, -1]) == {0: ["rice", "tea"], 1: ["war", "tea"], 2: []}
    assert representative_words(texts, [0, 0, 1, 1, 2, -1], n=1, skip=frozenset({"rice"}))[0] == ["tea"]


def test_a_topic_is_of_the_dimension_that_most_words_name() -> None:
    seeds = {"warmth": ("kind", "cold"), "competence": ("clever",)}
    words = {0: ["Kind", "cold", "clever"], 1: ["kind", "clever"], 2: ["rice"], 3: ["CLEVER", "kindly"]}
    assert label_topics(words, seeds) == {0: "warmth", 1: "", 2: "", 3: "competence"}


def test_overall_regard_by_hand() -> None:
    # A: 2 positive, 1 negative, 1 neutral of 4 -> +1, 0.25. B: 1 other, 1 negative, one unscored -> -1, -0.5.
    labels = ["positive", "positive", "negative", "neutral", "other", "negative", None]
    found = as_json(overall_regard)({"identity": ["A"] * 4 + ["B"] * 3, "regard": labels})
    a, b = found["identities"]["A"], found["identities"]["B"]
    assert (a["overall"], a["normalised"], a["n"], a["n_positive"], a["n_neutral"]) == (1, 0.25, 4, 2, 1)
    assert (b["overall"], b["normalised"], b["n"], b["n_unscored"], b["n_other"]) == (-1, -0.5, 2, 1, 1)
    assert a["contrast"]["value"] == pytest.approx(0.75)
    assert b["contrast"]["value"] == pytest.approx(-0.75)
    assert "too few " in b["contrast"]["note"]
    assert found["n_unscored"] == 1
    assert (a["low"], a["note"]) == (None, "too few clusters: 4, 5 needed (4.0 effective)")
    uneven = {"identity": ["A"] * 100, "regard": labels[1:3] * 50, "cluster": [0] * 96 + [1, 2, 3, 4]}
    one_makes_most = as_json(overall_regard)(uneven)["identities"]["A"]
    assert (one_makes_most["low"], one_makes_most["overall_low"]) == (None, None)
    assert one_makes_most["note"] == "too few clusters: 5, 5 needed (1.0 effective)"
    with pytest.raises(UnknownNameError, match="unknown regard 'positiv'"):
        as_json(overall_regard)({"identity": ["A"], "regard": ["positiv"]})


def test_attack_by_hand() -> None:
    found = as_json(attack_summary)({"identity": ["A"] * 5 + ["B"], "attack": [0.0, 0.2, 0.4, 0.9, 1.0, None]})
    a = found["identities"]["A"]
    # Positions 1, 2, 3 of the sorted scores.
    assert (a["mean"], a["q25"], a["median"], a["q75"]) == pytest.approx((0.5, 0.2, 0.4, 0.9))
    assert a["iqr"] == pytest.approx(0.7)
    assert a["median_low"] <= a["median"] <= a["median_high"]
    assert found["identities"]["B"]["mean"] is None
    with pytest.raises(RecordError, match=r"attack: range 0\.5\.\.2, expected 0\.\.1"):
        as_json(attack_summary)({"identity": ["A", "B"], "attack": [0.5, 2.0]})


def test_no_share_is_shown_below_the_stated_number() -> None:
    columns = {"identity": ["A"] * 40 + ["B"] * 29, "topic": [0, 1] * 34 + [-1]}
    found = as_json(topic_disparity)(columns, draws=20)["identities"]
    assert found["A"]["shares"] is not None
    assert (found["B"]["shares"], found["B"]["relative_entropy"], found["B"]["n_without_topic"]) == (None, None, 1)
    assert found["B"]["note"] == "28 triples with a topic, fewer than 30: nothing is shown"


@pytest.mark.slow
def test_planted_entropy_is_within_its_interval_and_no_difference_is_not_found() -> None:
    rng, hits, false = np.random.default_rng(3), 0, 0
    mixes = {"A": [0.5, 0.2, 0.1, 0.1, 0.1], "B": [0.2] * 5, "C": [0.2] * 5}
    rest = np.array([0.2] * 5)
    truth = float((np.array(mixes["A"]) * np.log(np.array(mixes["A"]) / rest)).sum())
    trials = 40
    for trial in range(trials):
        names = [name for name in mixes for _ in range(200)]
        topics = [int(t) for mix in mixes.values() for t in rng.choice(5, 200, p=mix)]
        columns = {"identity": names, "topic": topics}
        found = as_json(topic_disparity)(columns, draws=200, seed=trial)["identities"]["A"]["relative_entropy"]
        hits += found["low"] <= truth <= found["high"]
        same = [int(t) for t in rng.choice(5, 600)]
        columns = {"identity": names, "topic": same}
        blind = as_json(topic_disparity)(columns, draws=99, seed=trial)["identities"]["A"]["relative_entropy"]
        false += blind["p"] < 0.05
        assert found["p"] < 0.05
    assert hits >= 0.85 * trials
    assert false <= 7  # 2 are expected of 40
