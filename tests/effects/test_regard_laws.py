"""Regard, attack scores and what scorers add: by hand, and laws of swapping, shifting and copying."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.effects.regard import QUANTILES, REGARDS, attack_summary, overall_regard, prefix_effect, scorer_bias
from seesaw_cf.errors import RecordError
from seesaw_cf.types import Estimate

few = settings(derandomize=True, deadline=None, max_examples=8)
LABELLED = st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from([*REGARDS, None])), min_size=2, max_size=25)
# 64ths: sums, halves and differences of them are exact.
SCORED = st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 32).map(lambda n: n / 64)), min_size=2, max_size=20)


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
@given(LABELLED)
def test_signs_counts_and_copies_of_regard(rows: list[tuple[str, str | None]]) -> None:
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
@given(LABELLED, st.integers(1, 5))
def test_statements_without_a_score_are_counted_and_change_nothing(
    rows: list[tuple[str, str | None]], more: int
) -> None:
    names = sorted({name for name, _ in rows})
    found, padded = regard(rows), regard([*rows, *((name, "") for name in names for _ in range(more))])
    for name, one in found.items():
        assert padded[name]["n_unscored"] == one["n_unscored"] + more
        assert close(mean(padded[name]), mean(one))
        assert close(contrast_of(padded[name]["contrast"]), contrast_of(one["contrast"]), ("value", "p"))


@few
@given(SCORED)
def test_attacks_are_shifted_scaled_and_turned(rows: list[tuple[str, float]]) -> None:
    # a constant shifts scores and no difference
    found, moved = attack(rows), attack([(name, score + 0.25) for name, score in rows])
    for name, one in found.items():
        other = moved[name]
        quantiles = ((more(one, name), more(other, name)) for name in QUANTILES)
        for here, there in ((mean(one), mean(other)), *quantiles):
            shifted = Estimate(here.value + 0.25, here.low + 0.25, here.high + 0.25)
            assert close(there, shifted)
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
